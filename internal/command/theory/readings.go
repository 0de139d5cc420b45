package theory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/solver"
)

// registerReadings adds what sensors make of z/s: codes, signs, counts, or noise of their own.
func (t *theory) registerReadings(flags *pflag.FlagSet) {
	t.truth.RegisterNoiseAt(flags)
	t.codes.Register(flags)
	flags.Float64Var(&t.zMean, "z-mean", 0, "mean of z, which photons need: what signals have in common behind masks of zeros and ones.\nUnits are those of z, where entries of W have the variance 1/N about their mean")
}

// takeReadings completes these flags, and refuses what they exclude.
func (t *theory) takeReadings(flags *pflag.FlagSet) error {
	if err := t.truth.TakePhotons(flags, false); err != nil {
		return err
	}
	t.truth.NoisePhoton = t.truth.Channel().Own.Photon
	if err := t.codes.TakeNoise(flags, &t.truth); err != nil {
		return err
	}
	if err := option.CheckExclusions(flags); err != nil {
		return err
	}
	switch {
	case math.IsNaN(t.zMean) || math.IsInf(t.zMean, 0):
		return console.Usage("--z-mean: expected a finite number")
	case !t.reads() && t.zMean != 0:
		return console.Usage("--z-mean is for codes, signs, counts and noise at the reading: without them it changes nothing")
	case !t.reads():
		return nil
	}
	if err := t.codes.CheckSize(&t.truth); err != nil {
		return err
	}
	return t.codes.Load(0, 0)
}

// reads reports whether sensors make something else of (z + ε)/s than a reading.
func (t *theory) reads() bool { return t.codes.On() || t.truth.AtReading() }

// sensors is what they make; nil where that is the reading.
func (t *theory) sensors() *evolution.Readings {
	if !t.reads() {
		return nil
	}
	gain := t.truth.Channel()
	r := &evolution.Readings{Sensors: gain, Mean: t.zMean}
	if t.codes.On() {
		gain.Own = channel.Detector{}
		r.Sensors = t.codes.Of(gain, 0).(channel.Calibrating)
	}
	return r
}

// readingsJSON is what sensors make of z/s, in JSON.
func (t *theory) readingsJSON() console.Object {
	return append(t.codes.JSON(), "z_mean?", t.zMean)
}

// before is the noise before the division by s.
func (t *theory) before() float64 {
	if t.truth.AtReading() {
		return 0
	}
	return t.truth.NoiseVar
}

// Where every sensor has L rows of W, theory changes in the sensor's part alone, and there as if it had LP signals: its s is determined
// by all of its readings, and rows are independent as signals are. α counts rows.

// registerRows adds --rows-per-sensor.
func (t *theory) registerRows(flags *pflag.FlagSet) {
	option.RowsPerSensor(flags, &t.rows, " (--sensors of calamp solve); α counts rows")
}

// readings is how many readings a sensor has, of all its rows.
func (t *theory) readings() int { return t.p * max(1, t.rows) }

// rowsJSON is --rows-per-sensor in JSON; 0 where every row is a sensor.
func (t *theory) rowsJSON() int {
	if t.rows > 1 {
		return t.rows
	}
	return 0
}

// registerJoint adds --joint, of which on says that the solver's prior has it and the others that it does not, and --correlation.
func (t *theory) registerJoint(flags *pflag.FlagSet) {
	t.belong.Register(flags)
	flags.Lookup("joint").NoOptDefVal = solver.JointOn.String()
	flags.Var(option.Number(&t.correlation, option.Between(0, 1)), "correlation", "of any two signals where they are not zero, below 1; with --joint")
}

// noArguments takes none, but for the value of --joint behind a blank, as solve has it: that of a flag which may stand alone is an argument to the parser.
func (t *theory) noArguments(cmd *cobra.Command, args []string) error {
	joint := cmd.Flags().Lookup("joint")
	if len(args) == 1 && joint != nil && joint.Changed && t.belong.On() && joint.Value.Set(args[0]) == nil {
		return nil
	}
	return console.NoArguments(cmd, args)
}

// checkJoint refuses what joint signals exclude.
func (t *theory) checkJoint(flags *pflag.FlagSet) error {
	t.joint = t.belong.On()
	if !t.joint && option.Given(flags, "correlation") {
		return console.Usage("--correlation is that of signals that share their entries: it needs --joint")
	}
	return nil
}

// jointModel is the problem that the flags describe.
func (t *theory) jointModel() evolution.JointModel {
	return evolution.JointModel{Model: t.matched(), Correlation: t.correlation}
}

// jointAt are the thresholds of joint signals. What anyone could do is open.
func (t *threshold) jointAt(ctx context.Context, rho float64) (l limits, err error) {
	m := t.jointModel()
	m.Signal.Density, m.Alpha = rho, 1
	none := evolution.Number{Value: math.NaN()}
	l = limits{density: rho, least: recovery.AlphaMin(rho, t.p), ideal: none, informed: none, enough: none}
	known, err := evolution.JointAlphaCS(ctx, m)
	if err != nil {
		return l, err
	}
	l.known = known.Value
	l.cal, err = evolution.JointAlphaCal(ctx, m, &evolution.ThresholdOptions{Target: t.target, Tol: t.tol})
	if err == nil && m.NoiseVar > 0 && t.densities.n == 0 { // seconds
		l.enough, err = evolution.JointAlphaEnough(ctx, m, enoughFactor, &evolution.ThresholdOptions{Tol: enoughTol, Points: enoughPoints})
	}
	return l, err
}

// enoughPoints are those of averages that are compared with a factor.
const enoughPoints = 1024

// jointJSON is where signals belong together.
func (t *theory) jointJSON() console.Object {
	if !t.joint {
		return nil
	}
	return console.Object{"joint", t.joint, "correlation", t.correlation}
}

// networkSpec is --prior: a family of which the model flags are the parameters, or network:FILE.npz, or network:RATIO:ACTIVATION,… from the latents on, of layers of independent weights that have RATIO inputs an output.
type networkSpec struct {
	text   string
	layers []evolution.Layer
}

// entries are those of a family that is not Gaussian; nil of another.
func (n *networkSpec) entries(g prior.GaussBernoulli) prior.Slabbed {
	switch n.text {
	case option.NonNegative:
		return prior.NonNegative(g)
	case option.Laplace:
		return prior.Laplace{Density: g.Density, SignalVar: g.SignalVar}
	}
	return nil
}

// String implements [pflag.Value].
func (n *networkSpec) String() string { return n.text }

// Type implements [pflag.Value].
func (n *networkSpec) Type() string {
	return option.GaussBernoulli + "|" + option.NonNegative + "|" + option.Laplace + "|network:FILE|network:RATIO:ACTIVATION,…"
}

// Set implements [pflag.Value].
func (n *networkSpec) Set(text string) error {
	switch {
	case text == option.GaussBernoulli || text == option.NonNegative || text == option.Laplace:
		*n = networkSpec{text: text}
		return nil
	case slices.Contains(option.Families, text):
		return fmt.Errorf("theory is for signals that are %s, %s or %s, and for those that come out of a network", option.GaussBernoulli, option.NonNegative, option.Laplace)
	}
	rest, is := strings.CutPrefix(text, "network:")
	if !is || rest == "" {
		return errors.New("expected network:FILE.npz or network:RATIO:ACTIVATION,…, as in network:0.2:relu")
	}
	n.text = text
	if strings.HasSuffix(rest, ".npz") {
		list, slack, err := dataset.LoadNetwork(rest)
		if err != nil {
			return err
		}
		network, err := prior.NewNetwork(list, prior.Gaussian(0, 1), slack)
		if err != nil {
			return fmt.Errorf("%s: %w", rest, err)
		}
		if slack > 0 {
			return fmt.Errorf("%s: theory is for networks without slack", rest)
		}
		n.layers = evolution.LayersOf(network)
		return nil
	}
	var err error
	n.layers, err = evolution.ParseLayers(rest)
	return err
}

func (t *theory) registerNetwork(flags *pflag.FlagSet) {
	flags.Var(&t.network, "prior", "what non-zero entries are like; or signals come out of a network, whose latents the model flags describe: of a file, as for calamp solve, or layers of independent\nweights with RATIO inputs for each output, from the latents on; network:0.2:relu")
}

func (s *theory) registerSpectrum(flags *pflag.FlagSet) {
	flags.StringVar(&s.spectrum, "spectrum", "iid", option.About("spectrum"))
	s.truth.RegisterRows(flags)
}

// readSpectrum understands --spectrum.
func (s *theory) readSpectrum() error {
	err := s.vector.UnmarshalText([]byte(s.spectrum))
	if ext := filepath.Ext(s.spectrum); ext == ".npy" || ext == ".npz" {
		s.vector, err = spectrumOf(s.spectrum)
	}
	if err != nil {
		return console.Usage("--spectrum: %w", err)
	}
	return nil
}

// spectrumOf reads singular values, or a matrix and finds those of its rows scaled to norm 1.
func spectrumOf(path string) (evolution.Spectrum, error) {
	if a, err := dataset.LoadArray(path, "W"); err == nil && len(a.Shape) == 1 {
		return evolution.SpectrumOf(a.Data)
	}
	w, file, err := dataset.OpenMatrix(path, math.MaxInt64)
	if err != nil {
		return evolution.Spectrum{}, err
	}
	if file != nil {
		defer file.Close()
	}
	w = operator.RealOf(w) // which has all singular values twice
	m, n := w.Dims()
	gram, err := operator.GramOf(context.Background(), w, 0)
	if err != nil {
		return evolution.Spectrum{}, err
	}
	var singular []float64
	for _, v := range gram.Eigenvalues[max(0, m-n):] {
		singular = append(singular, math.Sqrt(v))
	}
	return evolution.SpectrumOf(singular)
}
