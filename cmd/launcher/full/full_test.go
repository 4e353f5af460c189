package full_test

import (
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/launcher"
	"github.com/toolfabric/toolfabric/cmd/launcher/full"
)

func TestWebIsRefusedWithWhatToUseInstead(t *testing.T) {
	err := full.NewLauncher().Execute(t.Context(), &launcher.Config{}, []string{"web", "-port", "8080", "api", "webui"})
	if err == nil || !strings.Contains(err.Error(), "TOOLFABRIC_DATA") || !strings.Contains(err.Error(), "console") {
		t.Errorf("got %v", err)
	}
}

func TestTheSyntaxNamesTheWords(t *testing.T) {
	text := full.NewLauncher().CommandLineSyntax()
	for _, want := range []string{"console - talks", "web - not", "-streaming_mode"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}
