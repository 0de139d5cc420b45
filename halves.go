package calamp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Error bars are those of the model. Where it leaves something out, as radar echoes between the columns of W, it explains that as well as it can, and its noise has learned the rest: no
// residual shows. Two halves of the snapshots do, since what is left out differs from one to the other: solved by themselves their gains differ by more than their error bars.

// leastForHalves is how many snapshots it takes to solve halves of them: each has two signals then, of which gains are what they have in common.
const leastForHalves = 4

// mostOfHalf is the iteration limit of a half. Of radar echoes halves were 4.8 times apart after 100 iterations, and 5.2 after 500.
const mostOfHalf = 100

// halvesCompared solves both halves of the snapshots of an answer by themselves, from where it is, and says so where their gains disagree. W that is as good as random does without, since
// message passing keeps its error bars there, and so do signals that were integrated out, which have a comparison of their own (see internal/evidence).
func halvesCompared(ctx context.Context, a *try) {
	if !worthHalves(a) {
		return
	}
	var halves [2]diagnosis.Half
	parallel.Run(len(halves), a.sideBySide(), func(i int) {
		if half, err := halfOf(ctx, a, i); err == nil && half != nil {
			halves[i] = half.half()
		}
	})
	if halves[0].S == nil || halves[1].S == nil {
		return // no time, or no answer of a half: nothing is said
	}
	apart := diagnosis.Compare(halves[0], halves[1], a.res.ramp)
	w := diagnosis.WarnHalves(apart)
	if w == nil {
		return
	}
	a.res.Warnings = append(a.res.Warnings, Warning{WarningCode(w.Code), w.Message, w.Sensors, w.Signals})
	a.res.widen(apart.Ratio)
	if _, before := channel.Typical(a.res.Calibration.Prior); apart.Square > before {
		a.res.Status = NotConverged
		a.res.Reason = fmt.Sprintf("the gains of two halves of the snapshots differ by a mean square of %.3g, more than the prior variance of gains, %.3g", apart.Square, before)
	}
}

// worthHalves reports whether halves of the snapshots are to be compared.
func worthHalves(a *try) bool {
	_, p := a.problem.Y.Dims()
	_, matrices := operator.Separate(a.problem.W)
	codes, _ := channel.CodesOf(a.problem.Channel)
	return a.res.Status == Converged && a.res.Calibration != nil && p/a.res.ColumnsPerSignal() >= leastForHalves && !a.integrated() && !tooLong(a) &&
		(hasFreePhases(a) || a.res.Plan.Algorithm == solver.VAMP || a.problem.rows.rowsEach() > 1) && matrices == nil && a.problem.NoiseVar == nil && codes.Thresholds == nil
}

// halfOf solves every other snapshot, from the first or the second on, beginning at the answer of all.
func halfOf(ctx context.Context, a *try, half int) (*Result, error) {
	columns := a.res.ColumnsPerSignal()
	p, opt, from := *a.problem, a.opt, *a.res
	p.Y = everyOther(p.Y, half, columns)
	from.X, from.XVar = everyOther(from.X, half, columns), everyOther(from.XVar, half, columns)
	p.beginAt(&opt, &from)
	opt.Algorithm, opt.Progress, opt.Observe = a.res.Plan.Algorithm, nil, nil
	opt.MaxIter = mostOfHalf
	return solveOnce(ctx, &p, &opt)
}

// everyOther are the columns of every other signal, from the first or the second on.
func everyOther(m *mat.Dense, half, columns int) *mat.Dense {
	rows, all := m.Dims()
	signals := all / columns
	out := mat.NewDense(rows, (signals+1-half)/2*columns, nil)
	for k := half; k < signals; k += 2 {
		for c := range columns {
			for i := range rows {
				out.Set(i, k/2*columns+c, m.At(i, k*columns+c))
			}
		}
	}
	return out
}

// complexOrRealS is s as complex numbers (M).
func (r *Result) complexOrRealS() []complex128 {
	if s := r.ComplexS(); s != nil {
		return s
	}
	s := make([]complex128, len(r.S))
	for mu, v := range r.S {
		s[mu] = complex(v, 0)
	}
	return s
}

// widen multiplies the variances of signals and gains.
func (r *Result) widen(ratio float64) {
	scaleBy(ratio, r.XVar)
	r.widenGains(ratio)
}

// widenGains multiplies those of gains alone.
func (r *Result) widenGains(ratio float64) {
	for mu := range r.SVar {
		r.SVar[mu] *= ratio
	}
	r.Calibration.Prior.Carry(r.Calibration.Stats, 1/ratio, 1)
}

// knownVar are the variances of s (M), without bound of broken sensors.
func (r *Result) knownVar() []float64 {
	out := slices.Clone(r.SVar)
	for mu, broken := range r.Broken {
		if broken > 0.5 {
			out[mu] = math.Inf(1)
		}
	}
	return out
}

// half is what a result has of gains, to be compared with those of another.
func (r *Result) half() diagnosis.Half {
	return diagnosis.Half{S: r.complexOrRealS(), Var: r.knownVar()}
}
