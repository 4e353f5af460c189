package tool

// Pool refers to the pool of workers that serve name. It has no declaration of its own: description, schemas and settings
// are those that the pool's workers registered, resolved in the registry when a run starts. It cannot run by itself.
func Pool(name string) Tool { return pool(name) }

// IsPool reports whether t was made by Pool.
func IsPool(t Tool) bool {
	_, ok := t.(pool)
	return ok
}

type pool string

func (p pool) Name() string      { return string(p) }
func (pool) Description() string { return "" }
func (pool) IsLongRunning() bool { return false }
