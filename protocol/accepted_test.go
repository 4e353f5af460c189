package protocol

import "testing"

func TestDecodeAcceptedRefusesWhatIsNoDeclaration(t *testing.T) {
	good := `{"v":1,"declaration":{"v":1,"name":"hash","description":"d","parameters":{"type":"object"},"effect":"read"},"accepted_at":5,"worker":"w1"}`
	a, err := DecodeAccepted([]byte(good))
	if err != nil || a.Declaration.Name != "hash" || a.AcceptedAt != 5 || a.Worker != "w1" {
		t.Fatalf("%+v, %v", a, err)
	}
	for text, want := range map[string]Code{
		``: CodeBadMessage,
		`{"v":2,"declaration":{"name":"hash","parameters":{}}}`:                     CodeUnsupportedVersion,
		`{"v":1,"declaration":{"name":"a.b","parameters":{}}}`:                      CodeBadName,
		`{"v":1,"declaration":{"name":"hash"}}`:                                     CodeBadDeclaration,
		`{"v":1,"Declaration":{"name":"hash","parameters":{}}}`:                     CodeBadMessage,
		`{"v":1,"declaration":{"name":"hash","parameters":{},"effect":"whatever"}}`: CodeBadDeclaration,
	} {
		if _, err := DecodeAccepted([]byte(text)); CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
