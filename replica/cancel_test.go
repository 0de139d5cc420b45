package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/calamp/calamp/evolution"
)

// patient is a context that ends when it has been asked so many times.
type patient struct {
	context.Context
	left int
}

func (p *patient) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextIsHeeded: wherever the context ends, in a scan, in the refinement of a root or within one average, so does the call.
func TestContextIsHeeded(t *testing.T) {
	m := model(0.2, 0.6, 1e-3, 0.9, 1.1, 2)
	p, err := New(m, 1e-4)
	if err != nil {
		t.Fatal(err)
	}
	worse := Mismatched{Model: mismatch(), Tol: 1e-3}
	for name, call := range map[string]func(ctx context.Context) error{
		"free energy": func(ctx context.Context) error { _, err := p.FreeEnergy(ctx); return err },
		"one value":   func(ctx context.Context) error { _, err := p.At(ctx, 1e-3); return err },
		"threshold": func(ctx context.Context) error {
			_, err := InformationThreshold(ctx, m.Signal, m.Gain, 1e-7, m.P, 1e-3)
			return err
		},
		"mismatched": func(ctx context.Context) error {
			_, _, err := worse.Phi(ctx, Point{Q: 0.5, M: 0.2, Q12: 0.25, QHat: 0.3, MHat: 1.5, Q12Hat: 1.2})
			return err
		},
	} {
		const many = 1 << 30
		all := &patient{t.Context(), many}
		if err := call(all); err != nil {
			t.Fatal(name, err)
		}
		asked := many - all.left
		for _, part := range []float64{0, 0.1, 0.5, 0.9, 0.99} {
			ctx := &patient{t.Context(), int(part * float64(asked))}
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: ended after %g of what it takes, it gave %v", name, part, err)
			} else if -ctx.left > asked/10+100 {
				t.Errorf("%s: asked %d times after the end", name, -ctx.left)
			}
		}
		if asked < 5 {
			t.Errorf("%s: the context was asked %d times", name, asked)
		}
	}
	if _, err := m.Sensor(t.Context(), 1e-6, &evolution.Options{Work: 10}); !errors.Is(err, evolution.ErrWork) {
		t.Errorf("more than the work allowed: %v", err)
	}
}
