package calamp

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// Direction is one along which W may be wrong: readings are of W + θD for some small θ. [Options.Directions] are tested at the fixed point, and
// [LinearMatrix] fits them.
type Direction struct {
	Name string
	D    operator.Operator // M×N

	times   func(u, x []float64) error  // D x in place of D: x is P×N, u is M×P
	squares func(dv, c []float64) error // what D adds to (W²)c, to first order in θ; nil for what can be had from W and D
}

// MatrixScore is what the readings say of a direction in which W may be wrong.
type MatrixScore struct {
	Name string `json:"name"`

	// Score is how fast the evidence rises along θ at θ = 0, in standard errors of that: a normal number where W is right.
	Score float64 `json:"score"`

	// Theta is where one step of Gauss and Newton ends, and SD the standard deviation there, of noise as it is at θ = 0: at most a rough
	// guess of how wrong W is. Where messages were passed it is too small rather than too large; where signals were integrated out it was 2.4 times the shift.
	Theta float64 `json:"theta"`
	SD    float64 `json:"sd"`
}

// surelyDoubtful is from how many standard errors on a direction is called one in which W is wrong: by chance one of four in 10⁵ runs. Where a run does not
// converge something is wrong, and estimates wander: then it is called so from doubtfulEnough on, by chance one of four in 4000 runs.
const (
	surelyDoubtful = 5
	doubtfulEnough = 4
)

// scores are those of all directions of a run that has ended, with their information.
type scores struct {
	list        []MatrixScore
	slope       []float64     // J
	scatter     []float64     // J, the variance of these as snapshots differ; nil where it is not known
	information *mat.SymDense // J×J
}

// check refuses directions that are not those of a W of this size.
func (d *Direction) check(m, n int) error {
	if d.D == nil {
		if d.times == nil {
			return fmt.Errorf("direction %q: no matrix D", d.Name)
		}
		return nil
	}
	if rows, columns := d.D.Dims(); rows != m || columns != n {
		return fmt.Errorf("direction %q is %d×%d, expected %d×%d, as W", d.Name, rows, columns, m, n)
	}
	return nil
}

// product is D x.
func (d *Direction) product(u, x []float64) error {
	if d.times != nil {
		return d.times(u, x)
	}
	return operator.Mul(u, d.D, x)
}

// variances are 2(W∘D)C; nil where entries of either cannot be seen.
func (d *Direction) variances(w operator.Operator, c []float64, p int) ([]float64, error) {
	m, n := w.Dims()
	dv := make([]float64, m*p)
	if d.squares != nil {
		return dv, d.squares(dv, c)
	}
	a, seen := w.(operator.Matrix)
	b, too := d.D.(operator.Matrix)
	if !seen || !too {
		return nil, nil
	}
	errs := make([]error, m)
	parallel.Run(m, runtime.GOMAXPROCS(0), func(mu int) {
		rowW, rowD := make([]float64, n), make([]float64, n)
		if err := a.RowInto(rowW, mu); err != nil {
			errs[mu] = err
			return
		}
		if err := b.RowInto(rowD, mu); err != nil {
			errs[mu] = err
			return
		}
		for i := range rowW {
			rowW[i] *= 2 * rowD[i]
		}
		for k := range p {
			dv[mu*p+k] = cholesky.Dot(rowW, c[k*n:(k+1)*n])
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return dv, nil
}

// matrixScores are those of a run that has converged, or come to its limit; nil where none are asked for, or cannot be computed.
func (r *run) matrixScores(outcome amp.Outcome) (*scores, error) {
	directions := r.opt.Directions
	if len(directions) == 0 || outcome == amp.Cancelled || outcome == amp.Diverged {
		return nil, nil
	}
	var found *scores
	var err error
	if r.solver.Scores() {
		found, err = r.passedScores(directions)
	} else {
		found = r.integratedScores(directions)
	}
	if found == nil || err != nil {
		return nil, err
	}
	for j, d := range directions {
		score := MatrixScore{Name: d.Name}
		if information := found.information.At(j, j); information > 0 {
			score.SD = 1 / math.Sqrt(information)
			score.Score, score.Theta = found.slope[j]/math.Sqrt(found.variance(j, r.solver.WidenedByHalves())), found.slope[j]/information
		}
		found.list = append(found.list, score)
	}
	return found, nil
}

// variance is that of a slope: its information where the model is right. Where signals are integrated out under a prior that is not theirs, errors of gains are larger by what halves of the snapshots
// say, and slopes of snapshots differ by more. Of 13 cameras with soft scenes (docs/guides/single-pixel-camera.md) and the right W two had a score above 5 by the information alone.
func (s *scores) variance(j int, widened float64) float64 {
	information := s.information.At(j, j)
	if s.scatter == nil {
		return information
	}
	return max(information*max(1, widened), s.scatter[j])
}

// passedScores are those of messages that were passed.
func (r *run) passedScores(directions []Direction) (*scores, error) {
	s := r.state()
	found := &scores{slope: make([]float64, len(directions)), information: mat.NewSymDense(len(directions), nil)}
	along := make([][]float64, len(directions))
	for j := range directions {
		d := &directions[j]
		along[j] = make([]float64, s.M*s.P)
		if err := d.product(along[j], s.X); err != nil {
			return nil, err
		}
		dv, err := d.variances(r.problem.W, s.C, s.P)
		if err != nil {
			return nil, err
		}
		found.slope[j] = s.MatrixScore(along[j], dv)
		for l := range j + 1 {
			found.information.SetSym(j, l, s.MatrixInformation(along[j], along[l]))
		}
	}
	return found, nil
}

// integratedScores are those of signals that were integrated out; nil where they were not.
func (r *run) integratedScores(directions []Direction) *scores {
	products := make([]func(u, x []float64) error, len(directions))
	for j := range directions {
		products[j] = directions[j].product
	}
	slope, scatter, information, err := r.solver.IntegratedScores(products)
	if slope == nil || err != nil {
		return nil // of what has no precision nothing is said
	}
	return &scores{slope: slope, scatter: scatter, information: information}
}

// warnRandomErrors says that entries of W are wrong at random, as residuals of sensors say that are correlated over signals as these are. Where signals are integrated out
// its standard error is wider by what halves of the snapshots say, as that of other scores.
func warnRandomErrors(d *amp.MatrixDoubt, widened float64, complex bool) *Warning {
	if d == nil || !d.Doubtful() {
		return nil
	}
	score := d.Score / math.Sqrt(max(1, widened))
	if score < surelyDoubtful {
		return nil
	}
	included := "error bars of s include them, those of x in part"
	if complex {
		included = "error bars include them in part"
	}
	return &Warning{Code: MatrixDoubtful, Message: fmt.Sprintf("residuals of a sensor are correlated over signals as these are, by %.0f standard errors: entries of W have random errors of some %.2g of their root mean square, or readings have errors that follow the signals; %s; --matrix-error auto models them", score, d.Size, included)}
}

// warnMatrix names the directions in which W is wrong by so many standard errors, the surest first.
func warnMatrix(list []MatrixScore, from float64) *Warning {
	sure := slices.DeleteFunc(slices.Clone(list), func(s MatrixScore) bool { return math.Abs(s.Score) < from })
	if len(sure) == 0 {
		return nil
	}
	slices.SortStableFunc(sure, func(a, b MatrixScore) int { return int(math.Copysign(1, math.Abs(b.Score)-math.Abs(a.Score))) })
	var words []string
	for _, s := range sure {
		words = append(words, fmt.Sprintf("%s (by %.0f standard errors, towards %.2g)", s.Name, math.Abs(s.Score), s.Theta))
	}
	return &Warning{Code: MatrixDoubtful, Message: "the readings contradict the given W; their likelihood rises along " + strings.Join(words, ", ") +
		"; error bars take W for right, and do not hold"}
}
