package crew

import (
	"runtime"
	"slices"
	"sync"
	"testing"
)

func TestCrewMayGrowWhileItsEndIsWaitedFor(t *testing.T) {
	for range 200 {
		var c Crew
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

func TestShortWorkFindsTheSameGoroutine(t *testing.T) {
	var c Crew
	done := make(chan struct{})
	c.Go(func() { close(done) })
	<-done
	for len(c.waiting()) == 0 { // it comes back right after
		runtime.Gosched()
	}
	before := c.waiting()[0]
	c.Go(func() {
		if len(c.waiting()) != 0 {
			t.Error("another goroutine was begun while one waited for work")
		}
	})
	for len(c.waiting()) == 0 {
		runtime.Gosched()
	}
	if c.waiting()[0] != before {
		t.Error("the work was not done by the one who waited for it")
	}
	<-c.Dismiss()
	if _, open := <-before; open {
		t.Error("a goroutine still waits for work after the end")
	}
}

func TestFewWaitForWork(t *testing.T) {
	before := runtime.NumGoroutine()
	var c Crew
	begin := make(chan struct{})
	for range 10 * spares {
		c.Go(func() { <-begin })
	}
	close(begin)
	for runtime.NumGoroutine() > before+spares {
		runtime.Gosched()
	}
	if n := len(c.waiting()); n != spares {
		t.Errorf("%d wait for work, want %d", n, spares)
	}
	<-c.Dismiss()
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
}

func TestWorkThatEndsItsGoroutineIsGone(t *testing.T) {
	var c Crew
	gone := make(chan struct{})
	c.Go(func() {
		defer close(gone)
		runtime.Goexit()
	})
	<-gone
	<-c.Dismiss()
	if n := len(c.waiting()); n != 0 {
		t.Errorf("%d wait for work: one of them has ended", n)
	}
}

func (c *Crew) waiting() []chan func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spare)
}
