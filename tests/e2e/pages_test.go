package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// page is a page of the manual whose commands and programs a test runs.
type page struct {
	t    *testing.T
	text string
}

func open(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return page{t, string(text)}
}

// block is the fenced text below a mark.
func (g page) block(mark string) string {
	g.t.Helper()
	m := regexp.MustCompile("(?s)<!-- " + regexp.QuoteMeta(mark) + " -->\n```\\w+\n(.*?)```\n").FindStringSubmatch(g.text)
	if m == nil {
		g.t.Fatalf("the page has no block %s", mark)
	}
	return m[1]
}

// program builds an example of the page.
func (g page) program(p *place, file string) string {
	g.t.Helper()
	name := strings.TrimSuffix(filepath.Base(file), "_test.go")
	program := filepath.Join(p.dir, name+".bin")
	out, err := exec.Command("go", "build", "-o", program, p.write(name+"/main.go", g.block("example:"+file))).CombinedOutput()
	if err != nil {
		g.t.Fatalf("%s does not compile: %v\n%s", file, err, out)
	}
	return program
}

// shell runs the commands of a block, with its words in capitals replaced, and returns what the last one says.
func (g page) shell(p *place, url, mark string, words map[string]string) string {
	g.t.Helper()
	said := ""
	for line := range strings.Lines(g.block("shell:" + mark)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		for word, value := range words {
			line = strings.ReplaceAll(line, word, value)
		}
		if m := regexp.MustCompile(`^nats pub (\S+) '(.*)'$`).FindStringSubmatch(line); m != nil {
			publish(g.t, url, m[1], m[2])
			continue
		}
		c := exec.Command("sh", "-c", line)
		c.Dir, c.Env = p.dir, append(p.env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if said = string(out); err != nil {
			g.t.Fatalf("%s: %v\n%s", line, err, said)
		}
	}
	return said
}

// publish is what natscli's pub does.
func publish(t *testing.T, url, subject, body string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Publish(subject, []byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// shown is what a command prints of a call that waits.
type shown struct {
	App, Session, Reply string
	Confirmation        *struct{ ID string }
}

func (p *place) words(call string) map[string]string {
	p.t.Helper()
	s := decode[shown](p.t, p.ok("calls", "show", call, "--output", "json"))
	words := map[string]string{"CALL": call, "SESSION": s.Session, "APP": s.App, "REPLY": s.Reply}
	if s.Confirmation != nil {
		words["CONFIRMATION"] = s.Confirmation.ID
	}
	return words
}

const vacationScript = `rules:
  - user: '(?P<days>\d+) days'
    calls:
      - {tool: request_vacation, args: {days: {json: '{{ .days }}'}}}
  - user: 'days'
    after: [request_vacation]
    text: 'It is {{ json .results.request_vacation }}.'
`

// upWith starts everything with an agent that follows a script, and returns the server's address.
func (p *place) upWith(agent, script, tool string, flags ...string) (url string) {
	p.t.Helper()
	p.write("agents/"+agent+"/script.yaml", script)
	p.write("agents/"+agent+"/root_agent.yaml", "name: "+agent+"\nmodel: scripted:script.yaml\ninstruction: Use the tools.\ntools:\n  - name: "+tool+"\n")
	up := p.up(append([]string{"--agents", "agents"}, flags...)...)
	url = up.says(&up.stderr, "is up at (nats://[0-9.:]+)")[1]
	p.env = append(p.env, "TOOLFABRIC_NATS="+url)
	return url
}

func TestTheVacationGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	g, p := open(t, "toolkit/tool/confirmations.md"), newPlace(t)
	program := g.program(p, "worker/example_vacation_test.go")
	decide := g.program(p, "coordinator/client/example_decide_test.go")
	p.write("policy.yaml", g.block("file:policy.yaml"))
	url := p.upWith("hr", vacationScript, "request_vacation", "--policy", "policy.yaml")
	first := p.startProgram(program)
	await(t, "the tool is accepted", func() bool { return p.run("tools", "show", "request_vacation").exit() == 0 })

	// Through an agent: the first stage on one process, which is killed, the second on another one.
	p.ok("run", "--agent", "hr", "I want 5 days off")
	var waiting []struct{ Call, Session string }
	await(t, "the question is listed", func() bool {
		waiting = decode[struct {
			Parked []struct{ Call, Session string }
		}](t, p.ok("approvals", "ls", "--output", "json")).Parked
		return len(waiting) == 1
	})
	first.kill()
	p.startProgram(program)
	g.shell(p, url, "cli", p.words(waiting[0].Call))
	await(t, "the agent answers with fewer days", func() bool {
		said := p.ok("sessions", "show", waiting[0].Session)
		return strings.Contains(said, "It is ") && strings.Contains(said, `"approved":3`) && strings.Contains(said, `"asked":5`)
	})

	// Each other way to answer, on calls of their own.
	ends := func(session, want string) {
		t.Helper()
		c := p.run("call", "request_vacation", "--args", `{"days":5}`, "--id", session, "--wait")
		if c.exit(); !strings.Contains(c.stdout.String()+c.stderr.String(), want) {
			t.Errorf("the call ends with %s%s, want %s", c.stdout.String(), c.stderr.String(), want)
		}
	}
	for _, mark := range []string{"nats", "adk"} {
		call, session := p.parks("request_vacation", `{"days":5}`)
		g.shell(p, url, mark, p.words(call))
		ends(session, `"approved":3`)
	}
	call, session := p.parks("request_vacation", `{"days":5}`)
	g.shell(p, url, "deny", p.words(call))
	ends(session, `"status":"rejected"`)
	_, session = p.parks("request_vacation", `{"days":5}`)
	if c := p.startProgram(decide); c.exit() != 0 || !strings.Contains(c.stdout.String(), "How many days may it be?") {
		t.Errorf("the client's example: %s%s", c.stdout.String(), c.stderr.String())
	}
	ends(session, `"approved":3`)

	// Edited: asked again, with other arguments.
	call, _ = p.parks("request_vacation", `{"days":5}`)
	g.shell(p, url, "edit", p.words(call))
	await(t, "the edited arguments wait", func() bool { return strings.Contains(p.run("approvals", "show", call).stdout.String(), `"days": 4`) })
	p.ok("calls", "cancel", call)

	// The operator's rule: two people, none of them the requester.
	call, _ = p.parks("request_vacation", `{"days":12}`)
	if c := p.run("approvals", "approve", call); c.exit() != 5 || !strings.Contains(c.stderr.String(), "may not decide") {
		t.Errorf("the requester: %s", c.stderr.String())
	}
	p.ok("approvals", "approve", call, "--as", "ann")
	if c := p.run("approvals", "approve", call, "--as", "ann"); c.exit() != 5 || !strings.Contains(c.stderr.String(), "1 of 2") {
		t.Errorf("the same approver twice: %s", c.stderr.String())
	}
	p.ok("approvals", "deny", call, "--as", "bob")
	await(t, "the denied call waits no more", func() bool { return !strings.Contains(p.ok("calls", "ls"), call) })
}

const printScript = `rules:
  - user: 'print'
    calls:
      - {tool: order_print, args: {title: t}}
  - user: 'print'
    after: [order_print]
    text: 'It is {{ json .results.order_print }}.'
`

func TestATicketIsCompletedFromEverywhere(t *testing.T) {
	t.Parallel()
	g, p := open(t, "toolkit/tool/long-running.md"), newPlace(t)
	program := g.program(p, "worker/example_ticket_test.go")
	url := p.upWith("press", printScript, "order_print")
	worker := p.startProgram(program)
	await(t, "the tool is accepted", func() bool { return p.run("tools", "show", "order_print").exit() == 0 })

	// The model is told the ticket, and later the result: from a process that is not the one that took the call.
	if said := p.ok("run", "--agent", "press", "print it"); !strings.Contains(said, `"status":"ordered"`) {
		t.Errorf("the model is told %s", said)
	}
	type list struct {
		Parked []struct{ Call, Session string }
	}
	waiting := decode[list](t, p.ok("calls", "ls", "--output", "json")).Parked
	if len(waiting) != 1 {
		t.Fatalf("what waits: %+v", waiting)
	}
	worker.kill()
	if c := p.startProgram(program, "finish", waiting[0].Call); c.exit() != 0 {
		t.Fatal("the ticket cannot be finished")
	}
	await(t, "the agent tells the result", func() bool {
		return strings.Contains(p.ok("sessions", "show", waiting[0].Session), `"pages":12`)
	})
	if c := p.startProgram(program, "finish", waiting[0].Call); c.exit() == 0 || !strings.Contains(c.stderr.String(), "answered before") {
		t.Errorf("a second result: %s", c.stderr.String())
	}

	p.startProgram(program)
	for _, mark := range []string{"complete", "nats"} {
		call, session := p.parks("order_print", `{"title":"t"}`)
		if mark == "complete" {
			watcher := p.start("call", "order_print", "--args", `{"title":"t"}`, "--id", session, "--wait")
			before := p.words(call)
			g.shell(p, url, "progress", before)
			watcher.says(&watcher.stderr, `so far .*"percent":70`)
			await(t, "the interim result begins another round", func() bool { return p.words(call)["REPLY"] != before["REPLY"] })
		}
		words := p.words(call)
		g.shell(p, url, mark, words)
		if got := p.ok("call", "order_print", "--args", `{"title":"t"}`, "--id", session, "--wait"); !strings.Contains(got, `"pages":12`) {
			t.Errorf("%s: the call ends with %s", mark, got)
		}
		if c := p.run("calls", "complete", call, "--result", "2"); c.exit() != 5 {
			t.Errorf("%s: a second result: exit %d, %s", mark, c.exit(), c.stderr.String())
		}
	}
	if c := p.run("calls", "complete", "nobody", "--result", "1"); c.exit() == 0 || !strings.Contains(c.stderr.String(), "nobody") {
		t.Errorf("an unknown call: %s", c.stderr.String())
	}
	// Late: the call was cancelled before.
	call, _ := p.parks("order_print", `{"title":"t"}`)
	words := p.words(call)
	p.ok("calls", "cancel", call)
	handle, ok := strings.CutPrefix(words["REPLY"], "tf.wake.")
	if !ok {
		t.Fatalf("the reply subject is %s", words["REPLY"])
	}
	p.write("tickets/late", handle)
	if c := p.startProgram(program, "finish", "late"); c.exit() == 0 || !strings.Contains(c.stderr.String(), "answered before") {
		t.Errorf("a late result: %s", c.stderr.String())
	}
}
