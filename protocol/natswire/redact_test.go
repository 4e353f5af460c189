package natswire

import (
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestAddressesAreShownWithoutCredentials(t *testing.T) {
	for given, want := range map[string]string{
		"":                               "",
		"nats://h:4222":                  "nats://h:4222",
		"nats://a:1, nats://b:2":         "nats://a:1,nats://b:2",
		"nats://me:pass@h:4222":          "nats://CREDENTIALS@h:4222",
		"tls://token@h,nats://a:b@c@d:1": "tls://CREDENTIALS@h,nats://CREDENTIALS@d:1",
		"me:pass@h":                      "CREDENTIALS@h",
		"me:pa://ss@h":                   "CREDENTIALS@h",
		"nats://me:pa,ss@h:1":            "nats://CREDENTIALS@h:1",
		"nats://me:pa/ss@h:1":            "nats://CREDENTIALS@h:1",
		"nats://h:port":                  "nats://h:port",
	} {
		if got := Redact(given); got != want {
			t.Errorf("%s is shown as %s, want %s", given, got, want)
		}
	}
}

func TestAMalformedAddressIsRefusedWithoutItsPassword(t *testing.T) {
	for _, servers := range []string{"nats://me:hunter2@bad host:1", "nats://me:hunter2@h:port", "nats://me:hunter2%zz@h:1", "nats://me:hunter2/@h:1", "nats://me:a,hunter2@h:1"} {
		_, err := Connect(t.Context(), Config{URL: servers})
		if protocol.CodeOf(err) != protocol.CodeUsage || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "no address of a server") {
			t.Errorf("%s: %v", servers, err)
		}
	}
}
