package dataset

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// SaveResult writes r to the .npz or, where its name says so, the .mat at path, or to standard output when path is
// "-":
//
//	x, x_var         N×P   posterior means and variances of the signals
//	s, s_var, gain   M     those of the calibration (y = z/s), and 1/s
//	s_lo, s_hi       M     s lies between these with probability 0.95, the common
//	                       scale's uncertainty included; left out when r has no Calibration
//	s_rel_lo, s_rel_hi M   the same at a fixed common scale: s relative to the others'
//	converged        P     bool, signal by signal
//	scale_sd               one number: relative standard deviation of the common scale
//	residual         M×P   left out when r has none
//	offset, offset_var M   the sensors' offsets (y = z/s + o); left out when r has none
//	broken           M     probability that a sensor is broken; left out when r has none
//	amplitude        P     how large each signal is, relative to the others; left out when they have one size
//	signal_cov       P×P   covariance across signals of an entry that is not zero; left out where signals are independent
//	support          N     probability that an entry is not zero, in all signals at once; left out with signal_cov
//	column_shift, column_shift_sd N by how many columns of W the source of an entry lies beside its own; left out where none does
//	latent, latent_var N₂×P those of the latents, where signals come out of a network; left out elsewhere
//	slack, slack_sd        one number each: the variance of signals about what a network gives, and its standard deviation where it
//	                       was learned; left out elsewhere
//	matrix_error           one number: relative random error of the entries of W, fixed or learned; left out where W is right
//	outlier          M×P   probability that a reading is an outlier; left out when r has none
//	s_smooth, s_smooth_sd M what s would be without scatter, where gains belong together, with one number each: s_amplitude and
//	                       s_length of the kernel (0 for given columns), and s_scatter; left out elsewhere
//	sensors, gain_row M    the sensor of each row of W, and its gain, where sensors have several: then what is of sensors has
//	                       as many values as there are
//
// and the model behind the result, with what was learned of it: density,
// signal_mean, signal_var and noise_var, one number each (noise_var M where sensors differ in it), and s_range, two; where s has
// a normal distribution within s_range also its s_mean and s_sd, of a log-normal one its median and
// the standard deviation of log s, with s_prior to tell which. What r does not tell, or
// is of another kind, is left out.
//
// With from, the array provenance says where the result came from, as JSON. Further
// matrices are written as they are. It writes nothing, and says where, when a value is not
// finite.
func SaveResult(path string, r *calamp.Result, from *Provenance, further ...Extra) error {
	if err := checkResult(r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	arrays := estimateOutputs(r)
	if r.ColumnsPerSignal() > 1 {
		arrays = complexEstimateOutputs(r)
	}
	if lo, hi, relLo, relHi := r.SIntervals(intervalLevel); lo != nil {
		arrays = append(arrays, vectorOutput("s_lo", lo), vectorOutput("s_hi", hi),
			vectorOutput("s_rel_lo", relLo), vectorOutput("s_rel_hi", relHi))
	}
	if r.Residual != nil && r.ColumnsPerSignal() == 1 {
		arrays = append(arrays, matrixOutput("residual", r.Residual))
	}
	if r.Offset != nil {
		arrays = append(arrays, vectorOutput("offset", r.Offset), vectorOutput("offset_var", r.OffsetVar))
	}
	arrays = append(arrays, sensorsOutputs(r)...)
	arrays = append(arrays, togetherOutputs(r)...)
	if r.Broken != nil {
		arrays = append(arrays, vectorOutput("broken", r.Broken))
	}
	if r.Amplitude != nil {
		arrays = append(arrays, vectorOutput("amplitude", r.Amplitude))
	}
	if r.SignalCov != nil {
		each := matrixOutput
		if r.ColumnsPerSignal() > 1 {
			each = pairsOutput
		}
		arrays = append(arrays, each("signal_cov", r.SignalCov), vectorOutput("support", r.Support))
	}
	if r.ColumnShift != nil {
		arrays = append(arrays, vectorOutput("column_shift", r.ColumnShift), vectorOutput("column_shift_sd", r.ColumnShiftSD))
	}
	if r.Latent != nil {
		arrays = append(arrays, matrixOutput("latent", r.Latent), matrixOutput("latent_var", r.LatentVar))
	}
	if r.Outlier != nil {
		arrays = append(arrays, matrixOutput("outlier", r.Outlier))
	}
	if r.MatrixError > 0 {
		arrays = append(arrays, scalarOutput("matrix_error", r.MatrixError))
	}
	arrays = append(arrays, modelOutputs(r)...)
	if from != nil {
		provenance, err := from.output()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", path, provenanceName, err)
		}
		arrays = append(arrays, provenance)
	}
	for _, e := range further {
		if e.Matrix == nil {
			arrays = append(arrays, vectorOutput(e.Name, e.Vector))
			continue
		}
		if err := notInput(checkFinite(fromMatrix(e.Name, e.Matrix), false)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		arrays = append(arrays, matrixOutput(e.Name, e.Matrix))
	}
	return writeArrays(path, arrays)
}

// estimateOutputs are the estimates.
func estimateOutputs(r *calamp.Result) []output {
	return []output{
		matrixOutput("x", r.X), matrixOutput("x_var", r.XVar),
		vectorOutput("s", r.S), vectorOutput("s_var", r.SVar), vectorOutput("gain", r.Gain),
		boolOutput("converged", r.Converged),
		scalarOutput("scale_sd", r.ScaleSD),
	}
}

// complexEstimateOutputs are the estimates of a complex problem.
func complexEstimateOutputs(r *calamp.Result) []output {
	n, columns := r.X.Dims()
	total, converged := mat.NewDense(n, columns/2, nil), make([]bool, columns/2)
	for k := range columns / 2 {
		converged[k] = r.Converged[2*k] && r.Converged[2*k+1]
		for i := range n {
			total.Set(i, k, r.XVar.At(i, 2*k)+r.XVar.At(i, 2*k+1))
		}
	}
	arrays := []output{pairsOutput("x", r.X), matrixOutput("x_var", total)}
	if s := r.ComplexS(); s != nil {
		gain := make([]complex128, len(s))
		for mu, v := range s {
			gain[mu] = 1 / v
		}
		arrays = append(arrays, complexVectorOutput("s", s), vectorOutput("s_var", r.SVar), complexVectorOutput("gain", gain))
	}
	if lo, hi, relLo, relHi := r.PhaseIntervals(intervalLevel); lo != nil {
		arrays = append(arrays, vectorOutput("phase_lo", lo), vectorOutput("phase_hi", hi),
			vectorOutput("phase_rel_lo", relLo), vectorOutput("phase_rel_hi", relHi))
	}
	arrays = append(arrays, boolOutput("converged", converged), scalarOutput("scale_sd", r.ScaleSD))
	if !r.PhaseFree {
		arrays = append(arrays, scalarOutput("phase_sd", r.PhaseSD))
	}
	if r.Residual != nil {
		arrays = append(arrays, pairsOutput("residual", r.Residual))
	}
	return arrays
}

// Extra is a matrix, or a vector, beside a result, such as the signals of coefficients in a basis.
type Extra struct {
	Name   string
	Matrix *mat.Dense
	Vector []float64 // where Matrix is nil
}

func modelOutputs(r *calamp.Result) (arrays []output) {
	entries := r.Prior
	if n, ok := prior.NetworkOf(entries); ok {
		entries = n.Latents()
		if n.Slack() > 0 {
			arrays = append(arrays, scalarOutput("slack", n.Slack()))
		}
		if n.SlackLearned() {
			arrays = append(arrays, scalarOutput("slack_sd", r.SlackSD))
		}
	}
	if p, ok := entries.(interface{ GaussBernoulliPrior() prior.GaussBernoulli }); ok {
		g := p.GaussBernoulliPrior()
		arrays = append(arrays, scalarOutput("density", g.Density), scalarOutput("signal_mean", g.SignalMean), scalarOutput("signal_var", g.SignalVar))
	}
	if p, ok := r.Prior.(interface {
		ComplexPrior() prior.ComplexGaussBernoulli
	}); ok {
		g := p.ComplexPrior()
		arrays = append(arrays, scalarOutput("density", g.Density), scalarOutput("signal_mean", 0), scalarOutput("signal_var", g.SignalVar))
	}
	if c, ok := channel.InOrder(r.Channel).(channel.Noisy); ok {
		if r.NoiseVar != nil {
			arrays = append(arrays, vectorOutput("noise_var", r.NoiseVar))
			if own, ok := channel.DetectorOf(r.Channel); ok {
				arrays = append(arrays, scalarOutput("noise_read", own.Read))
				if own.Photon > 0 {
					arrays = append(arrays, scalarOutput("noise_photon", own.Photon))
				}
			}
		} else {
			arrays = append(arrays, scalarOutput("noise_var", float64(channel.ColumnsOf(r.Channel))*c.Noise()))
		}
	}
	if c := channel.CalibrationOf(r.Channel); c != nil {
		lo, hi := c.Range()
		arrays = append(arrays, vectorOutput("s_range", []float64{lo, hi}))
		if mean, sd, ok := channel.NormalOf(c); ok {
			kind := "normal"
			if channel.IsLog(c) {
				kind = "lognormal"
			}
			arrays = append(arrays, textOutput("s_prior", kind), scalarOutput("s_mean", mean), scalarOutput("s_sd", sd))
		}
	}
	return arrays
}

const intervalLevel = 0.95

// LoadResult reads what SaveResult wrote, of a complex result without residuals. Of how the run went, the file holds only
// which signals converged; Status is Converged when all did.
func LoadResult(path string) (*calamp.Result, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.format == npyFormat {
		return nil, c.fault("", "this is a single array (.npy), expected a result (.npz)")
	}
	l := resultLoader{c: c}
	if c.isComplex("x") {
		return l.complexResult()
	}
	r := &calamp.Result{
		X: l.matrix("x"), XVar: l.matrix("x_var"),
		S: l.vector("s"), SVar: l.vector("s_var"), Gain: l.vector("gain"),
		Converged: l.bools("converged"),
	}
	if c.find("scale_sd") != nil {
		r.ScaleSD = l.number("scale_sd")
	}
	if c.find("residual") != nil {
		r.Residual = l.matrix("residual")
	}
	if c.find("offset") != nil {
		r.Offset, r.OffsetVar = l.vector("offset"), l.vector("offset_var")
	}
	if c.find("broken") != nil {
		r.Broken = l.vector("broken")
	}
	r.Sensors = l.sensorsOf(len(r.S))
	r.RowS = l.rowsOf(r)
	return l.checked(r)
}

// checked is the result that was loaded, if it can be used.
func (l *resultLoader) checked(r *calamp.Result) (*calamp.Result, error) {
	if l.err != nil {
		return nil, l.err
	}
	if err := checkResult(r); err != nil {
		return nil, l.c.fault("", "%w", err)
	}
	if all(r.Converged) {
		r.Status = calamp.Converged
	}
	return r, nil
}

func all(flags []bool) bool {
	for _, f := range flags {
		if !f {
			return false
		}
	}
	return true
}

// resultLoader reads arrays until the first error, which it keeps.
type resultLoader struct {
	c   *container
	err error
}

func (l *resultLoader) read(name string) *Array {
	if l.err != nil {
		return nil
	}
	a, err := l.c.read(name, false)
	l.err = err
	return a
}

func (l *resultLoader) matrix(name string) *mat.Dense {
	a := l.read(name)
	if l.err == nil {
		a, l.err = a.columns("with two dimensions")
	}
	if l.err != nil {
		return nil
	}
	return a.matrix()
}

func (l *resultLoader) vector(name string) []float64 {
	a := l.read(name)
	if l.err == nil && len(a.Shape) > 0 && !a.isVector() {
		l.err = a.fault("%s is %s, expected a vector", name, a.dims())
	}
	if l.err != nil {
		return nil
	}
	return a.Data
}

func (l *resultLoader) number(name string) float64 {
	a := l.read(name)
	if l.err == nil && a.count() != 1 {
		l.err = a.fault("%s is %s, expected a single number", name, a.dims())
	}
	if l.err != nil {
		return 0
	}
	return a.Data[0]
}

func (l *resultLoader) bools(name string) []bool {
	values := l.vector(name)
	flags := make([]bool, len(values))
	for k, v := range values {
		flags[k] = v != 0
	}
	return flags
}

// checkResult compares the shapes of a result, and looks for values that are
// not finite.
func checkResult(r *calamp.Result) error {
	if r.X == nil || r.XVar == nil {
		return fmt.Errorf("a result needs x and x_var")
	}
	n, p := r.X.Dims()
	matrices := []struct {
		name          string
		m             *mat.Dense
		rows, columns int
	}{{"x", r.X, n, p}, {"x_var", r.XVar, n, p}, {"residual", r.Residual, len(r.OfRows(r.S)), p}, {"outlier", r.Outlier, len(r.OfRows(r.S)), p / r.ColumnsPerSignal()}}
	for _, a := range matrices {
		if a.m == nil {
			continue
		}
		if rows, columns := a.m.Dims(); rows != a.rows || columns != a.columns {
			return fmt.Errorf("%s is %d×%d, expected %d×%d", a.name, rows, columns, a.rows, a.columns)
		}
		if err := notInput(checkFinite(fromMatrix(a.name, a.m), false)); err != nil {
			return err
		}
	}
	vectors := []struct {
		name string
		v    []float64
		want int
	}{{"s", r.S, len(r.S)}, {"s_var", r.SVar, len(r.S)}, {"gain", r.Gain, len(r.S)}, {"scale_sd", []float64{r.ScaleSD}, 1}}
	for _, a := range vectors {
		if err := checkVector(a.name, a.v, a.want); err != nil {
			return err
		}
	}
	if r.NoiseVar != nil {
		if err := checkVector("noise_var", r.NoiseVar, len(r.S)); err != nil {
			return err
		}
	}
	if r.Offset != nil {
		if err := errors.Join(checkVector("offset", r.Offset, len(r.S)), checkVector("offset_var", r.OffsetVar, len(r.S))); err != nil {
			return err
		}
	}
	if r.Broken != nil {
		if err := checkVector("broken", r.Broken, len(r.S)); err != nil {
			return err
		}
	}
	if len(r.Converged) != p {
		return fmt.Errorf("converged has %d values, expected one for each of %d signals", len(r.Converged), p)
	}
	return nil
}

func checkVector(name string, v []float64, want int) error {
	if len(v) != want {
		return fmt.Errorf("%s has %d values, expected %d", name, len(v), want)
	}
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s of index %d is %g, expected a finite number", name, i, x)
		}
	}
	return nil
}
