package amp

import (
	"context"
	"math"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// orthogonal is the linear half behind orthogonal rows of one norm: K is the identity, B a number, and readings
// have nothing to do with each other. It is [decomposed] with Q and T the identity, without the arrays of those.
type orthogonal struct {
	*lmmse
	signal func(k int)
}

func newOrthogonal(l *lmmse) *orthogonal {
	o := &orthogonal{lmmse: l}
	o.signal = o.solveSignal
	return o
}

// prepare implements [linearHalf].
func (l *orthogonal) prepare(context.Context) (err error) {
	if l.norms != nil {
		return nil
	}
	if l.products, err = operator.NewLinear(l.w, l.p, l.threads); err != nil {
		return err
	}
	kappa, _ := operator.Orthogonal(l.w)
	l.norms = make([]float64, l.m)
	for mu := range l.norms {
		l.norms[mu] = math.Sqrt(kappa)
	}
	return nil
}

func (l *orthogonal) begin() {}

func (l *orthogonal) uncertainty() float64 { return 0 }

// singular implements [linearHalf].
func (l *orthogonal) singular() []float64 {
	values := make([]float64, l.m)
	for mu := range values {
		values[mu] = 1
	}
	return values
}

// solve implements [linearHalf].
func (l *orthogonal) solve() error {
	if err := l.forward(l.z, l.r); err != nil {
		return err
	}
	parallel.Run(l.p, l.threads, l.signal)
	return l.goBack(l.work)
}

// solveSignal is for signal k. At a reading whose weight w is less than 1 the e is e - t, as if it had been another, with
//
//	t = C Be,   C = 1/(v + B),   v = w/(1-w):
//
// Woodbury's identity of [decomposed] row by row, with what it does to the traces.
func (l *orthogonal) solveSignal(k int) {
	gamma, tau := l.gamma[k], l.tau[k]
	b := gamma / (gamma + tau)
	logB := math.Log(b)
	trace, logDet, counted := 0.0, 0.0, float64(l.m)
	for range l.m {
		trace += b
		logDet += logB
	}
	left, free, quadratic := trace, trace+float64(l.n-l.m), 0.0
	for mu, norm := range l.norms {
		j := mu*l.p + k
		e, t := l.q[j]-l.z[j], 0.0
		if w := l.weight[j]; w < whole {
			v := w / (1 - w)
			c := 1 / (v + b)
			t = c * b * e
			logDet += math.Log(c)
			if w > counts {
				logDet += math.Log(v)
			}
			counted -= 1 - w
			left += -c*b*b + w - v*c
			free += -c*b*b + 1 - v*c
		}
		other := e - t
		h := other / (gamma + tau) * gamma
		l.z[j] = l.z[j] + other - h
		l.h[j], l.work[j] = h, h/norm
		quadratic += e * h
	}
	l.quadratics[k], l.counted[k], l.left[k], l.free[k], l.logDet[k] = quadratic, counted, left, free, logDet
}
