package runner

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// abandon makes a runner and forgets it and its service.
func abandon(t *testing.T) *fabric {
	t.Helper()
	s, err := scripted.Parse([]byte("rules: [{user: x, text: y}]"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "a", Model: scripted.New("scripted", s)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Agent: a, SessionService: session.InMemoryService()})
	if err != nil {
		t.Fatal(err)
	}
	return r.fabric
}

func TestAFabricInMemoryEndsWithItsService(t *testing.T) {
	f := abandon(t)
	f.mu.Lock()
	served := f.apps["a"]
	f.mu.Unlock()
	for ended := false; !ended; {
		runtime.GC()
		select {
		case <-served.ended:
			ended = true
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it lives on")
		}
	}
	fabrics.Lock()
	defer fabrics.Unlock()
	if fabrics.open[f.key] == f {
		t.Error("it is still found")
	}
}

func TestWhereAFabricIs(t *testing.T) {
	service := session.InMemoryService().(*session.Sessions)
	for name, c := range map[string]struct {
		env    map[string]string
		fabric Fabric
		want   target
	}{
		"memory":             {want: target{memory: weak.Make(service)}},
		"what is said":       {fabric: Fabric{Data: "d", Namespace: "n"}, want: target{data: "d", namespace: "n"}},
		"the environment":    {env: map[string]string{"TOOLFABRIC_DATA": "d"}, want: target{data: "d"}},
		"a server before it": {env: map[string]string{"TOOLFABRIC_DATA": "d", "TOOLFABRIC_NATS": "s", "TOOLFABRIC_CREDS": "c"}, want: target{nats: "s", creds: "c"}},
		"said before it":     {env: map[string]string{"TOOLFABRIC_NATS": "s", "TOOLFABRIC_NAMESPACE": "n"}, fabric: Fabric{Data: "d"}, want: target{data: "d", namespace: "n"}},
		"a context":          {env: map[string]string{"TOOLFABRIC_CONTEXT": "x"}, want: target{context: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"NATS", "CREDS", "CONTEXT", "NAMESPACE", "DATA"} {
				t.Setenv("TOOLFABRIC_"+key, c.env["TOOLFABRIC_"+key])
			}
			if got := c.fabric.target(service); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
