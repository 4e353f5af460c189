package coordinator

import (
	"sync"
	"testing"
)

func TestCrewMayGrowWhileItsEndIsWaitedFor(t *testing.T) {
	for range 200 {
		var c crew
		var joining sync.WaitGroup
		for range 4 {
			joining.Go(func() { c.Go(func() { c.Go(func() {}) }) })
		}
		gone := c.Dismiss()
		joining.Wait()
		<-gone
		c.Go(func() { t.Error("somebody came after everybody had left") })
		if c.n != 0 {
			t.Fatalf("%d are left after the end", c.n)
		}
	}
}
