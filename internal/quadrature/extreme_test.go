package quadrature

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/tests"
)

// extremes draws arguments of any size, ordinary ones among them.
type extremes struct{ *rand.Rand }

func (r extremes) number() float64 {
	edges := [...]float64{0, 1, 5e-324, 1e-310, 1e-300, 1e-155, 1e-100, 1e-30, 1e30, 1e100, 1e154, 1e155, 1e200, 1e300, math.MaxFloat64}
	sign := math.Copysign(1, r.Float64()-0.5)
	switch r.IntN(4) {
	case 0:
		return sign * edges[r.IntN(len(edges))]
	case 1:
		return sign * math.Pow(10, 600*r.Float64()-300)
	}
	return r.NormFloat64() * math.Pow(10, 6*r.Float64()-3)
}

func (r extremes) size() float64 { return math.Abs(r.number()) }

// bounds are those of a range, 0 < lo < hi.
func (r extremes) bounds() (lo, hi float64) {
	switch r.IntN(5) {
	case 0:
		return 0.95, 1.05
	case 1:
		return 1, 1 + math.Pow(10, -15*r.Float64())
	case 2:
		a, b := math.Pow(10, 60*r.Float64()-30), math.Pow(10, 60*r.Float64()-30)
		return min(a, b), max(a, b)
	}
	lo = math.Pow(10, 4*r.Float64()-2)
	return lo, lo * (1 + math.Pow(10, 6*r.Float64()-4))
}

// moments are what a posterior comes to. Where exponents survive in double precision they are numbers that a
// distribution on [lo, hi] can have; elsewhere one that is no number declares the failure.
type moments struct {
	of                      string
	mean, variance, logMass float64
	lo, hi                  float64
	survives                bool
}

func (m moments) wrong() bool {
	if !m.survives && math.IsNaN((m.mean-m.mean)+(m.variance-m.variance)+(m.logMass-m.logMass)) {
		return false
	}
	return !(m.mean >= m.lo && m.mean <= m.hi) || !(m.variance >= 0 && m.variance <= m.hi*m.hi) || math.IsNaN(m.logMass)
}

const (
	manyDigits = 1e75  // whose square, times another, is a number
	farBelow   = 1e150 // of an exponent
)

// draw computes one posterior of extreme arguments; at tells which before.
func (r extremes) draw(kind int, at *string) (m moments) {
	n, tau, b := float64(r.IntN(12)), r.size(), r.number()
	m.lo, m.hi = r.bounds()
	lo, hi := m.lo, m.hi
	m.survives = max(tau*hi*hi, math.Abs(b)*hi) < farBelow
	say := func(format string, args ...any) {
		m.of = fmt.Sprintf(format, args...)
		*at = m.of
	}
	switch kind {
	case 0:
		say("gain %g %g %g on [%g, %g]", n, tau, b, lo, hi)
		m.logMass, m.mean, m.variance = GainMoments(n, tau, b, lo, hi)
	case 1:
		median, precision := max(r.size(), math.SmallestNonzeroFloat64), r.size()
		for _, end := range [...]float64{lo, hi} {
			m.survives = m.survives && precision*math.Log(median/end)*math.Log(median/end) < farBelow && median > 1/manyDigits && median < manyDigits
		}
		say("log-normal %g %g %g, %g %g on [%g, %g]", n, tau, b, median, precision, lo, hi)
		m.logMass, m.mean, m.variance = LogNormalMoments(n, tau, b, median, precision, lo, hi)
	case 2:
		d := OffsetDensity{N: n, Tau: tau, B: b, T0: r.size(), Y: r.number(), Omega: r.number(), Var: r.size(), Lo: lo, Hi: hi}
		size := math.Abs(d.Y)*hi + math.Abs(d.Omega)
		m.survives = m.survives && d.T0*size*size < farBelow && max(size, d.T0, d.Var, d.Var*d.T0*hi*hi) < manyDigits
		say("offset %+v", d)
		p := d.Posterior()
		m.mean, m.variance, m.logMass = p.S, p.SVar, p.LogMass
	case 3:
		wall, width := r.number(), max(r.size(), math.SmallestNonzeroFloat64)
		far := max(math.Abs(wall), hi) / width
		m.survives = m.survives && far < manyDigits && far/width < manyDigits
		say("factored %g %g %g on [%g, %g], from %g by %g", n, tau, b, lo, hi, wall, width)
		f := NewFactored(n, tau, b, lo, hi, func(s float64) (value, slope float64) {
			u := (wall - s) / width
			log, mean, _ := TruncatedNormal(u)
			return log, (u - mean) / width
		}, []Turn{{wall, width}})
		for i, u := range f.Offset {
			m.mean += f.Weight[i] * u
		}
		m.mean, m.logMass = min(max(f.Base+m.mean, lo), hi), f.LogMass
	case 4:
		p := Phasor{Power: n, Tau: tau, B: complex(b, r.number()), K: complex(r.number(), r.number()), Lo: lo, Hi: hi}
		if r.IntN(3) == 0 {
			p.LogCenter, p.LogPrecision = lo, r.size()
		}
		size := cmplx.Abs(p.B)*hi + cmplx.Abs(p.K)
		m.survives = m.survives && size < manyDigits && p.LogPrecision*math.Log(hi/lo)*math.Log(hi/lo) < manyDigits
		say("phasor %+v", p)
		q := p.Moments()
		m.mean, m.variance, m.logMass, m.lo, m.hi = cmplx.Abs(q.Mean), q.Var, q.LogMass, 0, hi*(1+1e-9)
	case 5:
		say("half line %g", b)
		m.logMass, m.mean, m.variance = HalfLine(b)
		m.lo, m.hi, m.survives = 0, math.Inf(1), true
	case 6:
		say("a batch %g %g %g on [%g, %g]", n, tau, b, lo, hi)
		var mass, mean, variance [3]float64
		GainMomentsBatch(mass[:], mean[:], variance[:], []float64{n, 1, n}, []float64{tau, 1, tau}, []float64{b, 1, b}, 0, 0, lo, hi)
		m.logMass, m.mean, m.variance = mass[0], mean[0], variance[0]
	}
	return m
}

// TestPosteriorsOfExtremeArguments: each ends, with numbers or with a failure that can be seen.
func TestPosteriorsOfExtremeArguments(t *testing.T) {
	tests.Long(t)
	const draws, kinds, patience = 100_000, 7, time.Minute
	r := extremes{rand.New(rand.NewPCG(1, 2))}
	var at string
	var wrong []moments
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range draws {
			if m := r.draw(i%kinds, &at); m.wrong() {
				wrong = append(wrong, m)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("this one does not end: %s", at)
	}
	for i, m := range wrong {
		t.Errorf("%s: mean %g, variance %g, log mass %g", m.of, m.mean, m.variance, m.logMass)
		if i == 9 {
			t.Fatalf("and %d more", len(wrong)-i-1)
		}
	}
}

// TestPhasorOfNoNumbers: what is asked for with no number, or with infinite ones, is answered so, and not searched for.
func TestPhasorOfNoNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range []Phasor{{Power: nan}, {Linear: nan}, {Tau: nan}, {B: complex(0, nan)}, {K: complex(nan, 0)}, {Tau: inf}, {B: complex(-inf, 0), K: 30}} {
		p.Lo, p.Hi = 0.8, 1.2
		if m := p.Moments(); !cmplx.IsNaN(m.Mean) || !math.IsNaN(m.Var) || !math.IsNaN(m.LogMass) {
			t.Errorf("%+v: %+v", p, m)
		}
	}
}
