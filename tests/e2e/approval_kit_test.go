package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

const payAgent = `name: clerk
model: gemini-2.5-flash
instruction: Pay what you are told to.
tools:
  - name: transfer
`

const payScript = `rules:
  - user: 'pay (?P<amount>\d+)'
    calls: [{tool: transfer, args: {amount: '{{ .amount }}'}}]
  - user: 'pay'
    after: [transfer]
    text: "the transfer gave {{ range .results.transfer }}{{ . }}{{ end }}"
`

// payTool counts its effect in one write, beside the fabric.
const payTool = `#!/bin/sh
args=$(cat)
printf '%s %s\n' "$TF_CALL_ID" "$args" >> "$1"
echo paid
`

// bank is a place whose tool transfer needs a person's word.
type bank struct {
	*place
	members []*process
}

// openBank writes what the members of a bank read. parkTimeout is how long a transfer waits for somebody's word.
func openBank(t *testing.T, parkTimeout string) *bank {
	t.Helper()
	b := &bank{place: newPlace(t)}
	b.gemini(payScript)
	b.write("agents/clerk.yaml", payAgent)
	b.write("worker.yaml", `tools:
  - name: transfer
    description: Pays.
    command: [`+b.write("pay.sh", payTool)+`, `+b.ledger()+`]
    schema: {type: object, properties: {amount: {type: string}}, required: [amount]}
    stdin: json
    confirm: true
    park_timeout: `+parkTimeout+"\n")
	return b
}

func (b *bank) ledger() string { return filepath.Join(b.dir, "ledger") }

// effects is how often each call had its effect.
func (b *bank) effects() map[string]int {
	b.t.Helper()
	text, err := os.ReadFile(b.ledger())
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		call, _, _ := strings.Cut(line, " ")
		counts[call]++
	}
	return counts
}

// open starts a server, two coordinators and a worker, as processes of their own, and watches from outside.
func (b *bank) open() *watcher {
	b.t.Helper()
	up := b.up()
	url := up.says(&up.stderr, "toolfabric is up at (nats://[0-9.:]+)")[1]
	one, two := b.start("coordinator", "--agents", "agents"), b.start("coordinator", "--agents", "agents")
	work := b.start("worker", "--config", "worker.yaml")
	one.says(&one.stderr, "coordinator is up")
	two.says(&two.stderr, "coordinator is up")
	work.says(&work.stderr, `"msg":"serving","tool":"transfer"`)
	b.members = []*process{up, one, two, work}
	return b.watch(url)
}

// crash kills every process at once.
func (b *bank) crash() {
	for _, c := range b.members {
		_ = c.cmd.Process.Kill()
	}
	for _, c := range b.members {
		<-c.ended
	}
	b.members = nil
}

// ask says something that needs a person's word, and returns what is listed of it.
func (b *bank) ask(text string) client.Parked {
	b.t.Helper()
	c := b.run("run", "--agent", "clerk", text)
	if code := c.exit(); code != 0 || c.stdout.String() != "" {
		b.t.Fatalf("exit %d, %q", code, c.stdout.String())
	}
	session := c.says(&c.stderr, `(?m)^session (\S+)$`)[1]
	var waits []client.Parked
	await(b.t, "the question is listed", func() bool {
		waits = b.questions(session)
		return len(waits) > 0
	})
	if len(waits) != 1 || waits[0].Confirmation == nil || waits[0].Tool != "transfer" {
		b.t.Fatalf("%+v", waits)
	}
	return waits[0]
}

// questions is what approvals ls shows of a session.
func (b *bank) questions(session string) []client.Parked {
	b.t.Helper()
	return decode[client.ParkedPage](b.t, b.ok("approvals", "ls", "--session", session, "--output", "json")).Parked
}

// subject is where an approver publishes a decision on what is listed.
func subject(q client.Parked, approver string) string {
	return strings.TrimSuffix(q.Reply, "*") + approver
}

// watcher is somebody outside who reads the log and hears receipts.
type watcher struct {
	p      *place
	url    string
	conn   *natswire.Conn
	client *client.Client

	mu       sync.Mutex
	receipts []protocol.Receipt
}

func (p *place) watch(url string) *watcher {
	p.t.Helper()
	conn, err := natswire.Connect(p.t.Context(), natswire.Config{URL: url})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(conn.Close)
	w := &watcher{p: p, url: url, conn: conn}
	if w.client, err = client.New(client.Config{Bus: conn, Names: conn.Names(), Client: "tester"}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := conn.Subscribe(conn.Names().ReceiptSubject("*", "*", "*"), func(m natswire.Msg) {
		var r protocol.Receipt
		if err := json.Unmarshal(m.Data, &r); err != nil {
			p.t.Errorf("a receipt that cannot be read: %s", m.Data)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.receipts = append(w.receipts, r)
	}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := conn.Durables(p.t.Context(), conn.Names().Input()); err != nil { // the server has read the subscription then
		p.t.Fatal(err)
	}
	return w
}

// heard is the receipts of a confirmation so far, by the sequence of the decision that they are about. A decision that was
// delivered again gets its receipt again.
func (w *watcher) heard(confirmation string) map[uint64]protocol.Receipt {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[uint64]protocol.Receipt{}
	for _, r := range w.receipts {
		if r.Confirmation != confirmation {
			continue
		}
		if before, ok := all[r.Seq]; ok && before.Code != r.Code {
			w.p.t.Errorf("decision %d of %s is told %q and then %q", r.Seq, confirmation, before.Code, r.Code)
		}
		all[r.Seq] = r
	}
	return all
}

// decide publishes a decision with the nats command and waits for its receipt, which must have the code.
func (w *watcher) decide(q client.Parked, approver, body string, code protocol.Code) {
	w.p.t.Helper()
	before := w.heard(q.Confirmation.ID)
	w.pub(subject(q, approver), body)
	w.told(q, approver, before, code)
}

// told waits for the receipt of a decision that is newer than those heard before.
func (w *watcher) told(q client.Parked, approver string, before map[uint64]protocol.Receipt, code protocol.Code) {
	w.p.t.Helper()
	await(w.p.t, "a receipt for "+approver, func() bool {
		for seq, r := range w.heard(q.Confirmation.ID) {
			if _, old := before[seq]; !old && r.Approver == approver {
				if r.Code != code {
					w.p.t.Errorf("%s is told %q: %s; want %q", approver, r.Code, r.Message, code)
				}
				return true
			}
		}
		return false
	})
}

// ended waits until the run of a question is over, and returns how its call ended and the log.
func (w *watcher) ended(q client.Parked) (protocol.Answer, []client.Entry) {
	w.p.t.Helper()
	var log []client.Entry
	await(w.p.t, "the run ends", func() bool {
		var err error
		if log, err = w.client.Log(w.p.t.Context(), q.App, q.Session, 0); err != nil {
			w.p.t.Fatal(err)
		}
		stop := log[len(log)-1].Event.Stop
		return stop != nil && stop.Kind != protocol.StopParked && stop.Kind != protocol.StopDrained
	})
	var answers []protocol.Answer
	for _, e := range log {
		for _, a := range e.Event.Answers {
			if a.Call == q.Call && !a.Outcome.Interim() {
				answers = append(answers, a)
			}
		}
	}
	if len(answers) != 1 {
		w.p.t.Fatalf("the call ended %d times: %+v", len(answers), answers)
	}
	return answers[0], log
}

// decisions is those that the log has taken.
func decisions(log []client.Entry) []protocol.FoldedInput {
	var all []protocol.FoldedInput
	for _, e := range log {
		for _, in := range e.Event.Inputs {
			if in.Kind == protocol.InputDecision && in.Refused == nil {
				all = append(all, in)
			}
		}
	}
	return all
}
