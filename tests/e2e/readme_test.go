package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

func TestTheExampleOfTheREADMEServesItsTool(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("README.md has no Go example")
	}
	p := newPlace(t)
	program := filepath.Join(p.dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, p.write("main.go", string(block[1]))).CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	up := p.up()
	p.env = append(p.env, "TOOLFABRIC_NATS="+up.says(&up.stderr, "is up at (nats://[0-9.:]+)")[1])
	worker := p.startProgram(program)
	await(t, "the tool is accepted", func() bool { return p.run("tools", "show", "count_words").exit() == 0 })
	if got := p.ok("call", "count_words", "--args", `{"text":"to be or not to be"}`); got != "6\n" {
		t.Errorf("%q", got)
	}
	if err := worker.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := worker.exit(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}
