package parallel

import "sync"

// Pool keeps values that parts of a job work with, for those that come later.
type Pool[T any] struct {
	New func() *T // nil for zero values

	free sync.Pool
}

// Get is one that is free, or a new one.
func (p *Pool[T]) Get() *T {
	if v, ok := p.free.Get().(*T); ok {
		return v
	}
	if p.New == nil {
		return new(T)
	}
	return p.New()
}

// Put gives one back.
func (p *Pool[T]) Put(v *T) { p.free.Put(v) }
