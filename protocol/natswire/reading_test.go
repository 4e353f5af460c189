package natswire

import "testing"

func TestWhatReadersParseIsWhatIsWritten(t *testing.T) {
	n, err := NewNames("dev")
	if err != nil {
		t.Fatal(err)
	}
	if tool, digest, ok := n.ParseTool(n.ToolSubject("hash", "abc")); !ok || tool != "hash" || digest != "abc" {
		t.Error(tool, digest, ok)
	}
	if session, epoch, ok := n.ParseToken(n.TokenSubject("s1", "7")); !ok || session != "s1" || epoch != "7" {
		t.Error(session, epoch, ok)
	}
	for _, subject := range []string{"", "$KV.TOOLS.hash.abc", "$KV.dev_TOOLS.hash", "$KV.dev_TOOLS.hash.a.b", "$KV.dev_TOOLS..a", "$KV.dev_TOOLS.a."} {
		if _, _, ok := n.ParseTool(subject); ok {
			t.Errorf("%q was read as a key", subject)
		}
	}
	for _, subject := range []string{"", "tf.token.s1.7", "dev.token.s1", "dev.token.s1.7.x", "dev.done.s1.7"} {
		if _, _, ok := n.ParseToken(subject); ok {
			t.Errorf("%q was read as a token", subject)
		}
	}
}

func TestADeletedKeyIsKnown(t *testing.T) {
	if !KeyDeleted(DeleteKey("x").Header) || !KeyDeleted(Header{"kv-operation": "PURGE"}) || KeyDeleted(nil) || KeyDeleted(Header{"KV-Operation": "PUT"}) {
		t.Error("a marker is not told from a value")
	}
}

func FuzzParseToolNeverMixesUpTokens(f *testing.F) {
	f.Add("$KV.TOOLS.hash.abc")
	f.Fuzz(func(t *testing.T, subject string) {
		n, _ := NewNames("")
		if tool, digest, ok := n.ParseTool(subject); ok && n.ToolSubject(tool, digest) != subject {
			t.Fatalf("%q became %q", subject, n.ToolSubject(tool, digest))
		}
	})
}
