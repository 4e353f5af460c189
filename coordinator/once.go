package coordinator

import "sync/atomic"

// once is f for its first call; later ones do nothing.
func once(f func(any)) func(any) {
	var over atomic.Bool
	return func(item any) {
		if !over.Swap(true) {
			f(item)
		}
	}
}
