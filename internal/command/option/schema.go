package option

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
)

// Parameter is one thing that may be known of an instrument and of what it looks at. Flags, model files, JSON, Python and MATLAB call it by one name,
// with - in flags and _ elsewhere; their help, their reference page and their completion come from here.
type Parameter struct {
	Name    string // of the flag
	Doc     string // what it is
	Unit    string // of its numbers: x, W, s and y are those of signals, matrix, calibration and readings
	Default string // where it is neither given nor learned, as in commands that draw problems; empty where there is none
	Array   string // sizes of an array that may stand in its place, as a file; "spec" for what is written as a matrix is
	JSON    string // its name in solve's --json, with dots between levels; empty where it is not in it

	NoData    bool   // is for commands that have no readings: those know it from their files
	Learnable bool   // from readings, where it is not given
	Repeated  bool   // a list has several of it
	Excludes  string // parameters that cannot be given beside it
	Idle      string // a value that excludes nothing, as off
	Alone     string // why it excludes others, OTHER standing for the one at hand
	GivesWay  string // flags that, given on the command line, take the place of it in a model file
	Words     string // a value in words, for calamp model; empty where these depend on others
	Example   string // a value, for tests and for the reference page
}

// Key is the parameter's name in files, JSON and Python.
func (p *Parameter) Key() string { return strings.ReplaceAll(p.Name, "-", "_") }

// Reasons that several parameters have.
const (
	gainsTogether  = "how gains belong together is learned"
	noiseAtReading = "noise at the reading does not go along with --OTHER yet"
)

// Section is the parameters of one part of a model.
type Section struct {
	Name       string // of the table in a model file
	Title      string // of the heading in help
	Parameters []Parameter
}

// Schema is a model: all that can be specified of it, once. To add a parameter takes a line here and its flag.
var Schema = []Section{
	{"signals", "What you know of signals", []Parameter{
		{Name: "density", Doc: "expected fraction of non-zero signal entries, ρ", Default: "0.2", Array: "N, or one a group", JSON: "model.density", Learnable: true, Excludes: "component", Words: "density %s", Example: "0.15"},
		{Name: "signal-mean", Doc: "mean of the non-zero entries", Unit: "x", Default: "0", Array: "N, or one a group", JSON: "model.signal_mean", Learnable: true, Excludes: "component", Words: "mean %s", Example: "0.5"},
		{Name: "signal-var", Doc: "variance of the non-zero entries", Unit: "x²", Default: "1", Array: "N, or one a group", JSON: "model.signal_var", Learnable: true, Excludes: "component", Words: "variance %s", Example: "2"},
		{Name: "prior", Idle: GaussBernoulli, Doc: "what non-zero entries are like: Gaussian, a Gaussian cut to x ≥ 0, two-sided exponential,\nor the Gaussians of --component; network:FILE.npz: signals come out of a network, and --density and\nits like are those of its latents", Default: GaussBernoulli, JSON: "prior", Example: NonNegative},
		{Name: "slack", Doc: "variance of the difference between a signal's entry and what the network of --prior gives\n(default that in its file, or 0)", Unit: "x²", JSON: "slack", Words: "off the network by slack of variance %s", Example: "1e-4"},
		{Name: "component", Doc: "a Gaussian of --prior mixture: its weight, mean and variance; repeat for others. What the weights\nleave is the probability of zero", Unit: "1, x, x²", JSON: "components", Learnable: true, Repeated: true, Excludes: "density signal-mean signal-var groups", GivesWay: "prior", Words: "components %s", Example: "0.2,0,1"},
		{Name: "learn-components", Idle: "false", Doc: "learn weights, means and variances of the --component's, starting from those given", JSON: "components_learned", Excludes: "groups", GivesWay: "prior", Example: "true"},
		{Name: "groups", Doc: "the group of each entry of the signals, or of the latents of a network (.npy, N integers from 0 on): each has its own density,\nmean and variance; calamp groups makes such a file", Array: "N", JSON: "groups", Excludes: "component", Words: "in the groups of %s", Example: "groups.npy"},
		{Name: "basis", Doc: "the signals are this basis times x, the coefficients that are solved for: dct:N (cosines),\ndct2:HxW (of images), or as --matrix", Array: "spec", Words: "coefficients of the basis %s", Example: "dct:8"},
		{Name: "joint", Doc: "whether signals belong together, as snapshots or frames of one scene do: an entry is there in all of them or\nin none, with a covariance across signals that is learned; auto: where the readings say so; of a network on: its latents", Default: "auto", JSON: "joint", Learnable: true, Words: "together: %s", Example: "off"},
		{Name: "complex", Doc: "signals, W, noise and gains are complex; commands that read a problem know it by its type", Default: "false", NoData: true, Example: "true"},
	}},
	{"sensors", "What you know of sensors", []Parameter{
		{Name: "s-range", Idle: AutoWord, Doc: "range of the calibration s, y = z/s", Unit: "s", Default: "0.95,1.05", JSON: "model.s_range", Learnable: true, Excludes: "gain-smooth gain-basis", Example: "0.7,1.3"},
		{Name: "s-prior", Idle: AutoWord, Doc: "distribution of s: uniform in --s-range; normal or lognormal, with --s-mean and --s-sd or with what is\nlearned; auto is the likeliest where nothing is given, and the uniform one of a --s-range unless\nreadings contradict that", Default: "uniform", JSON: "options.s_prior", Learnable: true, Excludes: "s-from gain-smooth gain-basis", Example: "normal"},
		{Name: "s-mean", Doc: "mean of a normal distribution of s, median of a lognormal one", Unit: "s", JSON: "model.s_mean", Learnable: true, Excludes: "s-from gain-smooth gain-basis", Example: "1"},
		{Name: "s-sd", Doc: "its standard deviation; of a lognormal one, that of log s", Unit: "s", JSON: "model.s_sd", Learnable: true, Excludes: "s-from gain-smooth gain-basis", Example: "0.1"},
		{Name: "s-from", Alone: "every sensor is known by itself", Doc: "what is known of every sensor's s: a former result, whose common scale counts with its uncertainty,\nor a .npz with s_prior_mean and s_prior_sd (M each), which P.npz can hold as well", Unit: "s", Array: "M", JSON: "model.known_sensors", Excludes: "s-prior s-mean s-sd gain-smooth gain-basis", Example: "known.npz"},
		{Name: "anchor", Doc: "fix the common scale: mean=V, the mean of s, or sensor=ROW:V, the s of a known\nsensor (row of W from 0); can be given for several sensors", Unit: "s", Repeated: true, Words: "scale held by %s", Example: "mean=1"},
		{Name: "phase", Doc: "phases of complex gains: known (zero, or the array s_phase), free, or the concentration κ of\na von Mises distribution about them: their spread is then about 1/√κ radians", Default: "known", JSON: "phase", Learnable: true, Excludes: "offset saturation quantised sign counts s-from prior component groups gain-smooth gain-basis noise", Words: "phases %s", Example: "free"},
		{Name: "offset", Idle: "off", Doc: "sensors have offsets, y = z/s + o, with this standard deviation in the units of the readings;\nauto learns it", Unit: "y", Default: "off", JSON: "offset", Learnable: true, Excludes: "saturation quantised sign counts phase noise-at gain-smooth gain-basis noise", Words: "offsets of standard deviation %s", Example: "0.1"},
		{Name: "sensors", Doc: "the sensor that each row of W is read with, from 0 (M integers): a .npy, or the array sensors of a\n.npz or .mat such as a former result; rows of one sensor have one gain (default the array sensors\nof the problem; without it every row is a sensor). M×2: two sensors read a row, and its s is the\nproduct of theirs, of complex ones s_i s_j*", Array: "M", Example: "sensors.npy"},
		{Name: "saturation", Doc: "readings of this size or more are clipped: the signal was at least as large", Unit: "y", JSON: "saturation", Excludes: "offset sign counts phase noise-at gain-smooth gain-basis noise", Words: "clipped at %s", Example: "4095"},
		{Name: "quantised", Doc: "readings are codes of a converter with this step: each says between which two values it was, and the last\ncode, of the size --saturation, that it was beyond", Unit: "y", JSON: "quantised", Excludes: "offset phase noise-at sign counts noise", Words: "read as codes with the step %s", Example: "0.25"},
		{Name: "sign", Idle: "off", Doc: "readings are one bit: 1 where W x, noise in it, is above s times this threshold, -1 or 0 where not. The common\nscale is then a convention", Unit: "y", Default: "off", Array: "M, or M×P", JSON: "sign", Excludes: "offset saturation phase noise-at quantised counts noise faulty outliers", Words: "read as signs about %s", Example: "0.5"},
		{Name: "counts", Doc: "readings are numbers of photons, or of other things that come one by one, times this: the noise is theirs alone,\nthat of Poisson", Unit: "y", JSON: "counts", Excludes: "offset saturation phase noise-at quantised sign noise", Words: "counts of %s each", Example: "0.01"},
		{Name: "gain-smooth", Alone: gainsTogether, Doc: "gains change little from one sensor to the next: the positions of sensors (.npy, M×d), or index where they\nare on a line in their order. How smoothly, and by how much each differs (scatter), is learned", Array: "M×d", JSON: "s_smooth.length", Excludes: "gain-basis s-range s-prior s-mean s-sd s-from offset saturation phase", Example: "positions.npy"},
		{Name: "gain-basis", Alone: gainsTogether, Doc: "log s is a combination of these columns (.npy, M×k), with coefficients that are learned, and scatter", Array: "M×k", JSON: "s_smooth.amplitude", Excludes: "gain-smooth s-range s-prior s-mean s-sd s-from offset saturation phase", Example: "columns.npy"},
	}},
	{"noise", "What you know of noise", []Parameter{
		{Name: "noise-var", Doc: "noise variance Δ, before the division by s", Unit: "(W x)²", Default: "1e-06", Array: "M, or M×P", JSON: "model.noise_var", Learnable: true, Excludes: "noise", Example: "1e-4"},
		{Name: "noise-at", Idle: atSignal, Alone: noiseAtReading, Doc: "where noise is added: to the signal, y = (z + noise)/s, or to the reading, y = z/s + noise, as that of\na detector is: --noise-var is then in the readings' units. It matters where gains differ", Default: "signal", JSON: "model.noise_at", Excludes: "offset saturation quantised sign counts", Example: "reading"},
		{Name: "noise", Alone: noiseAtReading, Doc: "photon:GAIN,READ: noise at the reading, of the variance READ² + GAIN × the expected reading, where GAIN is what\na photon adds to a reading and READ the standard deviation without light; auto for either learns it. From ten counts a\nreading on; for fewer --counts", Unit: "y", JSON: "model.noise_photon", Excludes: "noise-var offset saturation quantised sign counts phase", Example: "photon:0.5,2"},
	}},
	{"matrix", "What you know of the matrix", []Parameter{
		{Name: "matrix", Doc: "the matrix W, M×N", Unit: "W", Array: "spec", JSON: "matrix", GivesWay: "n m alpha matrix-kind structured", Example: "W.npy"},
		{Name: "matrix-error", Doc: "entries of W are wrong at random by so much, relative to the root mean square of their row, 0.01 for a percent;\nauto learns it. It counts as noise that follows the signals", JSON: "matrix_error", Learnable: true, Default: "0", Words: "entries wrong at random: %s", Example: "0.01"},
		{Name: "derivatives", Doc: "derivatives of W by what may be wrong in it: a .npy of M×N, or of J×M×N, or as --matrix; can be given for\nseveral files. Whether the readings favour W moved along them is tested", Unit: "W", Array: "spec", Repeated: true, Words: "may be moved along %s", Example: "W.npy"},
		{Name: "sensor-derivatives", Doc: "derivatives of W by parameters that every sensor has of its own, its position or its delay: as --derivatives.\nThe parameters of each sensor are found with its gain, and how they are spread is learned", Unit: "W", Array: "spec", JSON: "theta_spread", Repeated: true, Words: "every sensor's own parameters along %s", Example: "W.npy"},
		{Name: "image", Doc: "rows of W are images of this size, HxW: whether readings favour them shifted, larger or turned is tested\n(default that of --basis dct2:HxW)", Words: "rows are images of %s", Example: "2x4"},
		{Name: "spectrum", Doc: "singular values of W: iid, orthogonal, condition:κ, or a .npy file with them, or with W;\nwith other than iid it is vector AMP that is predicted", Default: "iid", Array: "spec", NoData: true, Example: "orthogonal"},
		{Name: "row-square", Doc: "mean squared norm of the rows of W, which is 1 where W is drawn or imagined: --noise-var\nis divided by it; calamp solve --save-model writes it", Unit: "W²", Default: "1", NoData: true, Example: "64"},
	}},
	{"faults", "Faulty data", []Parameter{
		{Name: "faulty", Idle: "off", Doc: "find broken sensors, whose readings have nothing to do with the signals, and leave them out:\nauto learns how many to expect (not with --tol 0), or their expected fraction", Default: "auto", JSON: "faulty", Learnable: true, Excludes: "sign", Example: "0.05"},
		{Name: "outliers", Idle: "off", Doc: "find single readings that nothing explains (spikes, dropped bits), and leave them out; their sensors\nkeep all others: auto learns how many to expect (not with --tol 0), or their expected fraction", Default: "auto", JSON: "outliers", Learnable: true, Excludes: "sign", Example: "0.01"},
	}},
}

// ParameterOf is the parameter of that name, by any of its flag's names; nil where there is none.
func ParameterOf(name string) *Parameter {
	for i := range Schema {
		list := Schema[i].Parameters
		if j := slices.IndexFunc(list, func(p Parameter) bool { return p.Name == name }); j >= 0 {
			return &list[j]
		}
	}
	for _, s := range spellings {
		if s.name == name && s.of != name {
			return ParameterOf(s.of)
		}
	}
	return nil
}

// CheckExclusions refuses parameters that were given and exclude each other: of these names alone, where there are any. It reads the flags as
// they were given, so it comes before [Faults.Complete], which switches some off.
func CheckExclusions(flags *pflag.FlagSet, among ...string) error {
	for i := range Schema {
		for j := range Schema[i].Parameters {
			p := &Schema[i].Parameters[j]
			if other := statedOf(flags, p.Excludes, among); other != nil && statedOf(flags, p.Name, among) != nil {
				why := cmp.Or(strings.ReplaceAll(p.Alone, "OTHER", other.Name), strings.ReplaceAll(other.Alone, "OTHER", p.Name), "leave one of the two out")
				return console.Usage("--%s and --%s exclude each other: %s", p.Name, other.Name, why)
			}
		}
	}
	return nil
}

// statedOf is the first of parameters that was given with a value that excludes others, and is among those where there are any.
func statedOf(flags *pflag.FlagSet, names string, among []string) *Parameter {
	for name := range strings.FieldsSeq(names) {
		p := ParameterOf(name)
		f := FlagOf(flags, p, name)
		if f != nil && f.Changed && (p.Idle == "" || f.Value.String() != p.Idle) && (len(among) == 0 || slices.Contains(among, name)) {
			return p
		}
	}
	return nil
}

// OnPage are the parameters that a page can give: numbers and words, and none that stand for files alone.
func OnPage() (list []*Parameter) {
	for i := range Schema {
		for j := range Schema[i].Parameters {
			if p := &Schema[i].Parameters[j]; !p.NoData && !p.Repeated && p.Array != "spec" && p.Name != "groups" && p.Name != "s-from" && p.Name != "sensors" && p.Name != "gain-smooth" && p.Name != "gain-basis" && p.Name != "learn-components" && p.Name != "slack" {
				list = append(list, p)
			}
		}
	}
	return list
}

// About is what help says of a parameter's flag.
func About(name string) string { return ParameterOf(name).Doc }

// section is a heading of the catalogue: the parameters of a section of the schema, those with another name behind it, and further flags.
func section(name, further string) Heading {
	i := slices.IndexFunc(Schema, func(s Section) bool { return s.Name == name })
	var flags []string
	for _, p := range Schema[i].Parameters {
		for _, s := range spellings {
			if s.of == p.Name {
				flags = append(flags, s.name)
			}
		}
		flags = append(flags, p.Name)
	}
	return Heading{Schema[i].Title, strings.Join(flags, " ") + " " + further}
}
