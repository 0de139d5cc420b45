package amp

import (
	"context"

	"github.com/calamp/calamp/operator"
)

// paired is the linear half behind a complex W: that of the real matrix which acts on (Re x, Im x)
// ([operator.RealOf]), with half as many signals. A signal's two columns lie one behind the other, as that matrix wants
// them; the parts of a reading, which are neighbours, are two of its rows. Traces and determinants are
// those of both columns together, and both have half of them.
type paired struct {
	*lmmse
	both linearHalf
}

func newPaired(l *lmmse, both linearHalf) *paired {
	h := both.common()
	l.r, l.change = h.r, h.change
	return &paired{lmmse: l, both: both}
}

// prepare implements [linearHalf].
func (l *paired) prepare(ctx context.Context) (err error) {
	if l.norms != nil {
		return nil
	}
	if err := l.both.prepare(ctx); err != nil {
		return err
	}
	if l.products, err = operator.NewLinear(l.w, l.p, l.threads); err != nil {
		return err
	}
	l.norms = make([]float64, l.m)
	for mu := range l.norms {
		l.norms[mu] = l.both.common().norms[2*mu]
	}
	return nil
}

func (l *paired) begin() { l.both.begin() }

// singular implements [linearHalf].
func (l *paired) singular() (values []float64) {
	for i, v := range l.both.singular() {
		if i%2 == 0 {
			values = append(values, v)
		}
	}
	return values
}

// uncertainty implements [linearHalf].
func (l *paired) uncertainty() float64 { return l.both.uncertainty() }

// solve implements [linearHalf].
func (l *paired) solve() error {
	h := l.both.common()
	for k := range h.p {
		h.gamma[k], h.tau[k], h.moved[k] = l.gamma[2*k], l.tau[2*k], l.moved[2*k]
	}
	l.eachReading(func(own, both int) {
		h.q[both], h.weight[both] = l.q[own], l.weight[own]
	})
	if err := l.both.solve(); err != nil {
		return err
	}
	l.eachReading(func(own, both int) {
		l.z[own], l.h[own] = h.z[both], h.h[both]
	})
	for k := range l.p {
		l.missed[k] = h.missed[k/2]
		l.quadratics[k], l.counted[k] = 0.5*h.quadratics[k/2], 0.5*h.counted[k/2]
		l.left[k], l.free[k], l.logDet[k] = 0.5*h.left[k/2], 0.5*h.free[k/2], 0.5*h.logDet[k/2]
	}
	return nil
}

// eachReading calls f with the places of every part of a reading, M×P here and 2M×P/2 there.
func (l *paired) eachReading(f func(own, both int)) {
	half := l.p / 2
	for mu := range l.m {
		for k := range l.p {
			f(mu*l.p+k, (2*mu+k%2)*half+k/2)
		}
	}
}
