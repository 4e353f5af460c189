package integration

import (
	"flag"
	"os"
	"testing"
)

// The tests wait far more than they compute.
const atOnce = "8"

func TestMain(m *testing.M) {
	if server := os.Getenv(doomedServer); server != "" {
		runDoomed(server)
		return
	}
	flag.Parse()
	if !isSet("test.parallel") {
		_ = flag.Set("test.parallel", atOnce)
	}
	os.Exit(m.Run())
}

func isSet(name string) bool {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}
