//go:build mutants

package sim_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/toolfabric/toolfabric/protocol/fault"
)

var (
	which  = flag.String("mutants", "all", "which mutants are run: all, names with commas between, or how many, chosen by -rotate")
	rotate = flag.String("rotate", "", "with a number of mutants: a commit, a date, anything that differs from run to run")
	within = flag.Uint64("within", 2000, "in how many seeds a mutant must be caught")
)

// TestMutants shows that the checks are able to fail: storms catch each guarantee that is taken out of the code.
func TestMutants(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "mutant\tseed\tcaught by")
	for _, name := range chosen(t) {
		fault.Use(name)
		seed, by := hunt(t)
		if seed == 0 {
			t.Errorf("mutant %s (%s) lives through %d seeds", name, fault.Mutants[name], *within)
		}
		t.Logf("%s: seed %d, %s", name, seed, by)
		fmt.Fprintf(out, "%s\t%d\t%s\n", name, seed, by)
	}
	fault.Use("")
	out.Flush()
	t.Log("\n" + table.String())
}

func hunt(t *testing.T) (seed uint64, by string) {
	for seed := *firstOne; seed < *firstOne+*within; seed++ {
		found, trace := storm(t, planOf(seed, names(t)))
		if len(found) == 0 {
			continue
		}
		if *verbose {
			t.Log("\n" + strings.Join(trace, "\n"))
		}
		return seed, found[0].String()
	}
	return 0, "nothing"
}

func chosen(t *testing.T) []string {
	all := slices.Sorted(maps.Keys(fault.Mutants))
	if *which == "all" {
		return all
	}
	n, err := strconv.Atoi(*which)
	if err != nil {
		return strings.Split(*which, ",")
	}
	h := fnv.New32a()
	h.Write([]byte(*rotate))
	var some []string
	for i := range min(n, len(all)) { // neighbours are alike: take them from all over the table
		some = append(some, all[(int(h.Sum32()%uint32(len(all)))+i*len(all)/n)%len(all)])
	}
	t.Logf("%d of %d mutants, by -rotate %q", len(some), len(all), *rotate)
	return some
}
