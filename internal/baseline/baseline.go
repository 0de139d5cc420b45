// Package baseline holds other answers to the same readings, to compare blind
// calibration with: it depends on problems and results, and not on how the solver works.
// There are gains ignored, gains known, sparse recovery and calibration in turn, the
// convex program of Gribonval, Chardon and Daudet, and, for real and complex numbers, matching pursuit, ℓ1,
// and the spectral method of Li, Lee and Bresler.
package baseline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// Ignoring is the problem as it is for those who ignore the gains: every s is the mean
// of s. The spread of s counts as additional noise, which in z = sy has the variance
// y² Var(s); without it the answer would trust readings that are off by as much as the
// gains differ, and be far worse.
func Ignoring(p *calamp.Problem) (*calamp.Problem, error) {
	gain, err := gainOf(p)
	if err != nil {
		return nil, err
	}
	mean, variance := gain.Moments()
	m, _ := p.Y.Dims()
	s := make([]float64, m)
	for mu := range s {
		s[mu] = mean
	}
	return calibrated(p, s, gain.noise, variance*meanSquare(p.Y)), nil
}

// Knowing is the problem as it is for those who know the calibration s.
func Knowing(p *calamp.Problem, s []float64) (*calamp.Problem, error) {
	gain, err := gainOf(p)
	if err != nil {
		return nil, err
	}
	return calibrated(p, s, gain.noise, 0), nil
}

// gain is what the baselines need to know of the sensors.
type gain struct {
	channel.Calibration
	noise float64
}

func gainOf(p *calamp.Problem) (gain, error) {
	c := channel.CalibrationOf(p.Channel)
	if c == nil {
		return gain{}, fmt.Errorf("baselines are for channels that calibrate, not %T", p.Channel)
	}
	return gain{c, channel.NoiseOf(p.Channel)}, nil
}

// calibrated is the problem with known calibrations, and more noise.
func calibrated(p *calamp.Problem, s []float64, noise, more float64) *calamp.Problem {
	each := slices.Clone(p.NoiseVar)
	for j := range each {
		each[j] += more
	}
	return &calamp.Problem{W: p.W, Y: p.Y, Prior: p.Prior, Channel: channel.AWGN{NoiseVar: noise + more, S: s}, NoiseVar: each}
}

// meanSquare is the mean square of the readings that are not missing.
func meanSquare(y *mat.Dense) float64 {
	total, count := 0.0, 0.0
	m, _ := y.Dims()
	for mu := range m {
		for _, v := range y.RawRowView(mu) {
			if !math.IsNaN(v) {
				total += v * v
				count++
			}
		}
	}
	return total / max(1, count)
}

const (
	mostRounds  = 50
	settledGain = 1e-6 // of the range
)

// Alternating recovers the signals by AMP with the calibration fixed, then fits the
// calibration to the signals and projects it onto its range, and so on in turn. The
// residuals of a fit count as noise in the next recovery. Options are those of each
// recovery. It ends when the calibration settles, after at most 50 rounds.
func Alternating(ctx context.Context, p *calamp.Problem, opt *calamp.Options) (*calamp.Result, error) {
	start := time.Now()
	gain, err := gainOf(p)
	if err != nil {
		return nil, err
	}
	held, err := Ignoring(p)
	if err != nil {
		return nil, err
	}
	mean, _ := gain.Moments()
	m, _ := p.Y.Dims()
	assumed := slices.Repeat([]float64{mean}, m)
	var res *calamp.Result
	for round := 1; ; round++ {
		if res, err = calamp.Solve(ctx, held, opt); err != nil {
			return res, err
		}
		z, err := product(p.W, res.X)
		if err != nil {
			return res, err
		}
		s := fit(p.Y, z, gain)
		lo, hi := gain.Range()
		moved := farthest(s, assumed) / (hi - lo)
		held, assumed = calibrated(p, s, gain.noise, leftOver(p.Y, z, s)), s
		res.S, res.Iterations = s, round
		if moved <= settledGain {
			res.Status, res.Reason = calamp.Converged, fmt.Sprintf("the calibration settled after %d rounds", round)
			break
		}
		if round == mostRounds {
			res.Status, res.Reason = calamp.NotConverged, fmt.Sprintf("the calibration still moved after %d rounds", round)
			break
		}
	}
	for mu, s := range res.S {
		res.SVar[mu], res.Gain[mu] = 0, 1/s // this method has no error bars for s
	}
	res.Wall = time.Since(start)
	return res, nil
}

// fit is the s that brings sy closest to z, scaled to the mean that s should have and
// cut to its range.
func fit(y, z *mat.Dense, known channel.Calibration) []float64 {
	mean, _ := known.Moments()
	lo, hi := known.Range()
	m, _ := y.Dims()
	s, total := make([]float64, m), 0.0
	for mu := range s {
		var yy, yz float64
		for k, v := range y.RawRowView(mu) {
			if !math.IsNaN(v) {
				yy += v * v
				yz += v * z.At(mu, k)
			}
		}
		s[mu] = mean
		if yy > 0 {
			s[mu] = yz / yy
		}
		total += s[mu]
	}
	scale := 1.0
	if total > 0 {
		scale = mean * float64(m) / total
	}
	for mu := range s {
		s[mu] = min(max(scale*s[mu], lo), hi)
	}
	return s
}

func farthest(a, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(a[i]-b[i]))
	}
	return worst
}

// leftOver is the mean square of sy - z.
func leftOver(y, z *mat.Dense, s []float64) float64 {
	var d mat.Dense
	d.Apply(func(mu, k int, v float64) float64 { return s[mu]*v - z.At(mu, k) }, y)
	return meanSquare(&d)
}

// Misfit is ‖sY - WX‖/‖sY‖ over the readings that are not missing: what an answer
// leaves unexplained. It returns an error when W cannot be read.
func Misfit(p *calamp.Problem, x *mat.Dense, s []float64) (float64, error) {
	z, err := product(p.W, x)
	if err != nil {
		return 0, err
	}
	var sy mat.Dense
	sy.Apply(func(mu, _ int, v float64) float64 { return s[mu] * v }, p.Y)
	return math.Sqrt(leftOver(p.Y, z, s) / max(meanSquare(&sy), math.SmallestNonzeroFloat64)), nil
}

// product is WX for N×P signals.
func product(w operator.Operator, x *mat.Dense) (*mat.Dense, error) {
	m, _ := w.Dims()
	_, p := x.Dims()
	z := mat.NewDense(m, p, nil)
	return z, operator.Mul(z.RawMatrix().Data, w, mat.DenseCopyOf(x.T()).RawMatrix().Data)
}
