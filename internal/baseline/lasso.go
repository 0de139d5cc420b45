package baseline

import (
	"context"
	"math"
	"math/cmplx"
)

const (
	lassoRounds = 40    // of signals and gains in turn
	lassoSteps  = 12    // for the signals in each, from where they were
	firstWeight = 0.1   // of the ℓ1 norm, relative to the least that makes all entries zero
	lastWeight  = 0.001 // the same in the last round
)

// Lasso are signals (N×P) that minimise ½‖z - Wx‖² + λΣ|x| by accelerated proximal gradients, for readings z (M×P, NaN where one is
// missing) with gains that are known, and W M×N. λ falls to √(2 log N) times what noise of that variance adds to a field Wᴴz. With positive,
// entries are not negative. The error is that of ctx, with the signals so far.
func Lasso(ctx context.Context, w, z Parts, noise float64, positive bool) (Parts, error) {
	m, n := w.Dims()
	s := make([]complex128, m)
	for mu := range s {
		s[mu] = 1
	}
	total := 0.0
	for _, v := range columnNorms(w) {
		total += v * v
	}
	l := newLasso(w, z)
	l.positive = positive
	last := min(math.Sqrt(2*math.Log(float64(n))*noise*total/float64(n)), firstWeight*l.most)
	for round := range lassoRounds {
		weight := firstWeight * l.most * math.Pow(last/(firstWeight*l.most), min(1, 2*float64(round)/lassoRounds))
		if err := l.descend(ctx, s, weight); err != nil {
			return l.x, err
		}
	}
	return l.x, nil
}

// AlternatingLasso is given no prior: signals that minimise ½‖sY - WX‖² + λΣ|x| with the calibration held, as [Lasso],
// the calibration by least squares with the signals held, and so on in turn, while λ falls. W is
// M×N, Y M×P with NaN where a reading is missing; s has the mean size 1. The error is that of ctx, with what there is so far.
func AlternatingLasso(ctx context.Context, w, y Parts) (x Parts, s []complex128, err error) {
	m, _ := w.Dims()
	s = make([]complex128, m)
	for mu := range s {
		s[mu] = 1
	}
	l := newLasso(w, y)
	for round := range lassoRounds {
		if err = l.descend(ctx, s, l.most*firstWeight*math.Pow(lastWeight/firstWeight, float64(round)/(lassoRounds-1))); err != nil {
			break
		}
		fitGains(s, l.readings, w.Mul(l.x), l.missing)
	}
	return l.x, s, err
}

// lasso is a descent on ½‖sY - WX‖² + λΣ|x|.
type lasso struct {
	w, readings Parts
	missing     func(mu, k int) bool
	absent      []bool // M×P
	positive    bool
	x           Parts
	norm        float64 // the square of W's largest singular value
	most        float64 // the λ from which on x = 0, with all gains one
}

func newLasso(w, y Parts) *lasso {
	_, n := w.Dims()
	_, p := y.Dims()
	l := &lasso{w: w, x: NewParts(n, p, w.Im != nil || y.Im != nil), norm: largestSquare(w)}
	l.readings, l.missing = y.present()
	m, _ := w.Dims()
	for mu := range m {
		for k := range p {
			l.absent = append(l.absent, l.missing(mu, k))
		}
	}
	w.MulH(l.readings).Apply(func(_, _ int, v complex128) complex128 { l.most = max(l.most, cmplx.Abs(v)); return v })
	return l
}

// descend makes some steps with the gains and the weight held.
func (l *lasso) descend(ctx context.Context, s []complex128, weight float64) error {
	before, momentum := l.x, 1.0
	for range lassoSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := 0.5 * (1 + math.Sqrt(1+4*momentum*momentum))
		ahead := (momentum - 1) / next
		momentum = next
		at := l.x.Clone()
		for j, part := range at.data() {
			b := before.data()[j]
			for i, v := range part {
				part[i] = v + ahead*(v-b[i])
			}
		}
		misfit := l.w.Mul(at)
		l.subtract(misfit.data(), s)
		step := l.w.MulH(misfit)
		before = l.x
		l.shrink(at.data(), step.data(), weight)
		l.x = at
	}
	return nil
}

// subtract sets z (M×P) to sy - z, and to zero where a reading is missing.
func (l *lasso) subtract(z [][]float64, s []complex128) {
	y := l.readings.data()
	p := len(l.absent) / len(s)
	for i, absent := range l.absent {
		c := s[i/p]
		switch {
		case absent:
			for _, part := range z {
				part[i] = 0
			}
		case len(y) == 1:
			z[0][i] = real(c)*y[0][i] - z[0][i]
		default:
			z[0][i] = real(c)*y[0][i] - imag(c)*y[1][i] - z[0][i]
			z[1][i] = real(c)*y[1][i] + imag(c)*y[0][i] - z[1][i]
		}
	}
}

// shrink adds the step of a gradient to x, and takes the step of the ℓ1 norm off the size of each entry.
func (l *lasso) shrink(x, step [][]float64, weight float64) {
	by := weight / l.norm
	for i := range x[0] {
		square := 0.0
		for j, part := range x {
			part[i] += step[j][i] / l.norm
			square += part[i] * part[i]
		}
		keep := 0.0
		if size := math.Sqrt(square); size > by && !(l.positive && x[0][i] < 0) {
			keep = 1 - by/size
		}
		for _, part := range x {
			part[i] *= keep
		}
	}
}

// fitGains sets s to what brings sy closest to z, with the mean size 1.
func fitGains(s []complex128, y, z Parts, missing func(mu, k int) bool) {
	_, p := y.Dims()
	total := 0.0
	for mu := range s {
		var yy float64
		var yz complex128
		for k := range p {
			if !missing(mu, k) {
				yy += square(y.At(mu, k))
				yz += cmplx.Conj(y.At(mu, k)) * z.At(mu, k)
			}
		}
		if yy > 0 && yz != 0 {
			s[mu] = yz / complex(yy, 0)
		}
		total += cmplx.Abs(s[mu])
	}
	for mu := range s {
		s[mu] *= complex(float64(len(s))/total, 0)
	}
}

// largestSquare is the square of the largest singular value, by power iterations and with a margin.
func largestSquare(w Parts) float64 {
	_, n := w.Dims()
	v := NewParts(n, 1, w.Im != nil)
	v.Apply(func(i, _ int, _ complex128) complex128 { return complex(1+math.Sin(float64(3*i)), 0) })
	size := 0.0
	for range 30 {
		v = w.MulH(w.Mul(v))
		size = 0
		for i := range n {
			size += square(v.At(i, 0))
		}
		size = math.Sqrt(size)
		v.Apply(func(_, _ int, u complex128) complex128 { return u / complex(size, 0) })
	}
	return 1.05 * size
}
