// Package online is calamp online: its flags, where samples come from, and what is
// reported at the end. How a sample is taken in, safely, is internal/stream's matter.
package online

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/state"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/online"
)

// forgetting is --memory: over how many samples the past is forgotten, 0 for never, or
// auto, where a drift is followed when there is one.
type forgetting struct {
	auto    bool
	samples float64
}

func (m *forgetting) String() string {
	if m.auto {
		return "auto"
	}
	return strconv.FormatFloat(m.samples, 'g', -1, 64)
}

// MarshalJSON is a number of samples, or "auto".
func (m *forgetting) MarshalJSON() ([]byte, error) {
	if m.auto {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(m.samples)
}

// blockSize is --block: how many samples are solved together, or auto, where it is those that resemble each other.
type blockSize int

const autoBlock = blockSize(online.AutoBlock)

func (b *blockSize) String() string {
	if *b == autoBlock {
		return "auto"
	}
	return strconv.Itoa(int(*b))
}

// MarshalJSON is a number of samples, or "auto".
func (b *blockSize) MarshalJSON() ([]byte, error) {
	if *b == autoBlock {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(int(*b))
}

// stated is nil where samples are solved one by one.
func (b *blockSize) stated() *blockSize {
	if *b == 1 {
		return nil
	}
	return b
}

// calibration is one call of calamp online.
type calibration struct {
	*console.Console
	model    option.Model
	prior    option.SignalPrior
	groups   option.Groups
	solver   option.Solver
	parts    option.Parts
	ranks    option.Ranks
	spectrum option.SpectrumCache

	rows     option.RowSensors
	ids      []int         // of rows; nil where each is a sensor
	shift    option.Offset // of sensors
	warmUp   int
	block    blockSize
	persist  bool // entries stay from sample to sample
	entries  int  // of a sample
	outliers option.Outliers

	derivatives []string           // --sensor-derivatives
	ofSensors   []calamp.Direction // of W times a basis

	phases  option.Phases
	complex bool      // readings are
	nominal []float64 // phases of complex gains, or nil

	commit online.Commit
	sanity online.Sanity
	memory forgetting
	anchor option.Anchor
	freeze bool

	keep state.Keeping // the state, and what is done to it

	input  string
	from   int64
	offset numbering
	maxGap int64
	limit  int
	nats   natsFlags

	out   string
	last  int // samples that -o has
	emitX bool
	json  bool
	http  string
	token string

	sourceKind
	given []string // the flags that a result depends on
}

// numbering is --after: what to add to the numbers of a source's samples, or
// last, to number them after the last one taken in.
type numbering struct {
	last  bool
	value int64
}

func (n *numbering) String() string {
	if n.last {
		return "last"
	}
	return strconv.FormatInt(n.value, 10)
}

func (n *numbering) Type() string { return "K|last" }

// Words is the value that is a word.
func (n *numbering) Words() []string { return []string{"last"} }

func (n *numbering) Set(text string) error {
	if text == "last" {
		*n = numbering{last: true}
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return errors.New("expected a whole number, at least 0, or last")
	}
	if v > intake.MaxSequence {
		return fmt.Errorf("expected at most %d", intake.MaxSequence)
	}
	*n = numbering{value: v}
	return nil
}

const aboutOnline = `Calibrate from a stream: samples come one at a time, each is reconstructed at
once, improves the posterior of the calibration, and is forgotten.

Samples come from one of
  calamp online P.npz                     the columns of Y, from the first on
  calamp online --matrix W.npy < lines    JSON lines {"seq": 17, "y": [0.1, null, …]}
  calamp online --matrix W.npy --input f4 < frames
                                          float32 (f8: float64; c8, c16: complex ones of these),
                                          little endian, M a sample; NaN is a missing reading
  calamp online --matrix W.npy --nats URL --stream S
                                          a NATS JetStream, one message a sample, in the
                                          form that --input says; "seq" is not needed there
W is that of --matrix, or of P.npz. --nats embedded runs a server here, with its
streams in a folder beside the state; others publish samples to it, with the
token that is in the file token of that folder, and can take nothing away. A
message is acknowledged when what was learned from it is on the disk.

Complex readings are [re, im] in JSON lines. A stream from standard input is one of
complex readings where W is complex, or --phase or --input c8|c16 says so.

Model flags are those of solve; signals and noise are learned along the stream
where they are auto, or not given.

For every sample one JSON line goes to standard output.

--state keeps what was learned, together with the number of the last sample
taken in: a run that starts again, however the one before ended, goes on after
it, and every sample counts once. Samples are numbered from 1, columns and
frames in their order (from --after on), lines by their "seq", messages by the
stream. What is at or below the last number is dropped, so the same input can be
given again; a second file needs --after. An input of which everything is
dropped ends with exit code 2. A state made with another W, model or rule of
learning is refused.

A number in a line or header that is more than --max-gap above the last one is
taken for a corrupt one, and the sample refused. Where a wrong number was taken
in all the same, calamp state restart-at S.calamp N sets it back. calamp state also
shows the state, keeps it under a name, and goes back to one that was kept.

A line, frame or message that is no sample is refused, counted, reported, and
not learned from; the stream goes on. "status" says how solving ended, "committed"
whether the sample was learned from: one that the model does not explain is not,
and one that did not converge is not either, unless it ended within a small part
of its error bar. --commit always learns from both. A frame cut short ends the run.

Gains that drift are followed, and reported: "drift" in the lines. When samples
begin to contradict what was learned, because noise, signals or the gains of some
sensors have changed, the stream finds out which within some ten samples, says so
("change" in a line), and goes on from there; readings that no model explains
teach nothing.

Ctrl-C, SIGTERM and SIGHUP finish the sample at hand, commit, write -o and exit 130.

Exit codes of online: 0 all samples were taken in; 1 failed, or the state is in
use by another process; 2 wrong usage, a state that is damaged or of another
model, or input in which something was refused, messages of a stream never
came, or all was taken in before; 3 at least one sample did not converge and was
not learned from, or only because of --commit always. Whatever could be taken in, was. docs/online-json.md has the
fields of the lines.`

// Command is calamp online.
func Command(a *console.Console) *cobra.Command {
	c := &calibration{Console: a, model: option.DefaultModel, solver: option.NewSolver(), keep: state.Keeping{Console: a}, input: "jsonl", maxGap: 1_000_000, block: 1}
	c.solver.MaxIter = 500
	cmd := &cobra.Command{
		Use:   "online [P.npz]",
		Short: "Calibrate from a stream of samples, without losing any",
		Long:  aboutOnline,
		Example: `  calamp online P.npz --state S.calamp -o R.npz --density 0.1 --s-range 0.8,1.2 --noise-var 1e-4
  instrument | calamp online --matrix W.npy --state S.calamp --after last --input f4 --http 127.0.0.1:8080
  calamp online --matrix W.npy --state S.calamp --nats embedded --stream readings
  calamp state show S.calamp`,
		Args:              console.Arguments(0, 1, "one problem file"),
		ValidArgsFunction: option.CompleteFiles("npz", "mat"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.together(cmd.Flags(), args) },
	}
	c.register(cmd.Flags())
	return cmd
}

func (c *calibration) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.keep.Path, "state", "", "keep what is learned in this file, which is created where there is none")
	option.Output(flags, &c.out, "at the end, write signals and calibration to this .npz or .mat; - for standard output, in place of the lines")
	c.parts.Register(flags, "the matrix W, or sample:MxN where every sample brings its own")
	c.model.RegisterLearnable(flags, option.SignalFlags...)
	c.model.RegisterNoiseAt(flags)
	c.prior.Register(flags, option.GaussBernoulli)
	c.groups.Register(flags)
	c.solver.Register(flags)
	c.ranks.Register(flags)
	c.spectrum.Register(flags)
	c.rows.Register(flags)
	c.shift.Register(flags)
	c.outliers.Register(flags)
	c.phases.Register(flags)
	flags.StringArrayVar(&c.derivatives, "sensor-derivatives", nil, option.About("sensor-derivatives"))
	flags.Var(option.Count(&c.warmUp, 1), "warm-up", fmt.Sprintf("solve so many samples together before the stream goes on, which it takes to find offsets,\nphases of which nothing is known, and gains where all readings have one sign (default %d for these,\n%d with --phase free, else 1)", online.LeastWarmUp, option.WarmUpPhases))
	flags.Var(option.NumberOr{
		Stringer: &c.block, Kind: "K|auto", Or: "auto", Within: option.AtLeast1, Expected: "auto, or a number of samples, at least 1",
		Word: func(string) { c.block = autoBlock }, Number: func(v float64) { c.block = blockSize(v) },
	}, "block", "samples that are solved once more together, since their signals belong together: their entries are there in all of\nthem; auto: those that resemble each other. They then tell more of the gains than one by one")
	flags.BoolVar(&c.persist, "persistent", false, "entries that are there stay there from sample to sample, with a probability that is learned: a sample begins with the\nsupport of the one before, and --block is auto where it can be")
	flags.Var(option.Text(&c.commit, option.OneOf(online.Sane, online.Always)), "commit", "learn from samples that converged and fit the model, or from all")
	c.memory.auto = true
	flags.Var(option.NumberOr{
		Stringer: &c.memory, Kind: "K|auto", Or: "auto", Within: option.AnyCount, Expected: "auto, or a number of samples, at least 0",
		Word: func(string) { c.memory = forgetting{auto: true} }, Number: func(v float64) { c.memory = forgetting{samples: v} },
	}, "memory", "forget exponentially over this many samples; 0 forgets nothing; auto looks for\ngains that drift and follows them (not with --commit always)")
	c.sanity = online.Sanity{ChiSquare: 2, Sensor: 6, Faulty: 0.2}
	flags.Var(option.Number(&c.sanity.ChiSquare, option.Positive), "max-chi2", "reject a sample whose mean χ² is above this (with --commit sane, as the next two)")
	flags.Var(option.Number(&c.sanity.Sensor, option.Positive), "max-chi", "leave out a reading this many standard deviations off")
	flags.Var(option.Number(&c.sanity.Faulty, option.Fraction), "max-faulty", "reject a sample in which more than this fraction of readings would be left out")
	flags.Var(&c.anchor, "anchor", "fix the common scale, as for solve: mean=V, or sensor=ROW:V, which can be given for several\nsensors, or the common phase: phase-sensor=ROW. The state keeps it, and goes on with it where none is given; off takes it away")
	flags.BoolVar(&c.freeze, "freeze", false, "reconstruct every sample with what was learned, and learn nothing; the state is only read")

	flags.Int64Var(&c.from, "from", c.from, "leave out samples with numbers below this")
	flags.Var(&c.offset, "after", "number columns or frames from K+1 on; last continues after the last one taken in")
	flags.Var(option.Sequence(&c.maxGap, 0), "max-gap", "refuse a sample whose number, in a line or header, is more than this above\nthe last one: it is taken for a corrupt one; 0 accepts all")
	flags.Var(option.Count(&c.limit, 0), "limit", "end after this many samples, 0 for no limit")
	flags.Var(option.Choice(&c.input, "jsonl", "f4", "f8", "c8", "c16"), "input", "form of samples on standard input or in messages")
	flags.Lookup("input").DefValue = "jsonl"
	c.nats.register(flags)

	c.keep.Register(flags)
	flags.BoolVar(&c.emitX, "emit-x", false, "add the signal x to each line")
	flags.Var(option.Count(&c.last, 1), "keep", "samples in -o, the last ones\n(default all of a file with columns, 1000 of a stream)")
	flags.BoolVar(&c.json, "json", false, "print one JSON object at the end in place of a line a sample")
	flags.StringVar(&c.http, "http", "", "serve /healthz, /metrics and /posterior on this address, 127.0.0.1:PORT")
	flags.StringVar(&c.token, "http-token", "", "bearer token that every HTTP request must carry, of 16 characters or more,\nor @FILE with it; needed on addresses other than this machine's own")
}

// together is run, on all ranks of --mpi.
func (c *calibration) together(flags *pflag.FlagSet, args []string) error {
	return c.ranks.Together(c.Console, facts.BuildVersion().Source(), func() error { return c.run(flags, args) })
}

func (c *calibration) run(flags *pflag.FlagSet, args []string) error {
	learns := c.solver.Learns() && c.commit != online.Always
	if err := errors.Join(c.solver.Complete(flags), c.model.CompleteLearnable(flags, learns), c.completePrior(flags, learns), c.takeNoise(flags)); err != nil {
		return err
	}
	if c.shift.On() {
		c.completeOffsets(flags)
	}
	c.given = facts.Stated(flags, c.Args, bearing)
	if err := cmp.Or(c.complete(flags, args), c.checkRanks(args)); err != nil {
		return err
	}
	if c.sourceKind == noSource {
		return c.keep.Change()
	}
	err := c.ranks.OfFirst(func() error {
		return console.Outputs{console.File("-o", c.out), console.File("--spectrum-cache", c.spectrum.Path)}.Check(c.json, append(slices.Concat(args, c.parts.Files(), c.groups.Files(), c.derivatives), c.keep.Path, c.rows.File, c.model.Noise.File, c.model.KnowledgeFile())...)
	})
	if err != nil {
		return err
	}
	in, err := c.load(args)
	if err != nil {
		return err
	}
	if err := cmp.Or(c.takeComplex(flags, in), c.spectrum.Use(in.w, &c.ranks), c.model.CheckNoiseAt(in.complex)); err != nil {
		return err
	}
	m, n := in.w.Dims()
	c.entries = n
	sensors := calamp.SensorCount(c.ids, m)
	if err := c.prior.CheckEntries(n); err != nil {
		return console.Usage("%w", err)
	}
	if err := errors.Join(c.model.LoadKnowledge(flags, in.known, sensors), c.model.LoadNoise(sensors, 1), c.groups.Load(&c.model, c.prior.GroupEntries(n))); err != nil {
		return err
	}
	c.model.NoteIntention(c.Console, flags, &c.solver, in.w)
	r, err := c.newRun(in)
	if err != nil {
		return err
	}
	return r.all()
}

// takeNoise takes noise at the reading, which a stream does not learn.
func (c *calibration) takeNoise(flags *pflag.FlagSet) error {
	if err := cmp.Or(c.model.TakePhotons(flags, false), option.CheckExclusions(flags), c.model.CheckNoiseAt(false)); err != nil {
		return err
	}
	if c.model.AtReading() && c.model.Learns("noise-var") {
		return console.Usage("--noise-at reading: a stream does not learn how much noise there is at the reading: give --noise-var, such as calamp solve finds of some samples")
	}
	return nil
}

// completePrior reads a network, and refuses priors that streams do not have.
func (c *calibration) completePrior(flags *pflag.FlagSet, learns bool) error {
	if err := c.prior.Complete(flags, &c.model, learns); err != nil {
		return err
	}
	switch {
	case !c.prior.Plain() && c.prior.Family != option.NonNegative && c.prior.Entries() == 0:
		return console.Usage("--prior %s is for problems offline: streams are of gauss-bernoulli or nonnegative signals, or network:FILE.npz", c.prior.Family)
	case c.groups.On() && !c.prior.Grouped():
		return option.GroupsArePlain()
	case c.persist && !c.prior.Plain():
		return console.Usage("--persistent is for gauss-bernoulli signals")
	}
	if c.persist && !flags.Changed("block") {
		c.block = 0 // what the calibrator has
	}
	return nil
}

// complete checks what concerns several flags.
func (c *calibration) complete(flags *pflag.FlagSet, args []string) error {
	if c.solver.Full() {
		return console.Usage("--covariance full: online calibration takes one signal at a time, which has no covariance with others")
	}
	c.outliers.Complete(flags, &c.solver)
	var err error
	if c.sourceKind, err = c.chooseSource(flags, args); err != nil {
		return err
	}
	return errors.Join(option.CheckArchive("-o", c.out), c.checkState())
}

// checkState checks the flags about the state file.
func (c *calibration) checkState() error {
	if flag := c.keep.Flag(); flag != "" && c.keep.Path == "" {
		return console.Usage("%s needs the --state that it is about", flag)
	} else if flag != "" && c.freeze {
		return console.Usage("%s changes the state, --freeze does not", flag)
	}
	switch {
	case c.keep.RestartAt > 0 && c.sourceKind != noSource:
		e := console.Usage("--restart-at changes the state's number once, and is not for a command with samples, which may be run again")
		return e.WithHint("calamp state restart-at %s %d", c.keep.Path, c.keep.RestartAt)
	case c.freeze && c.keep.Path == "":
		return console.Usage("--freeze needs a --state with what was learned")
	case c.sourceKind == natsSource && c.keep.Path == "":
		return console.Usage("--nats needs a --state: a message is acknowledged when what was learned from it is safe")
	case c.offset.last && c.keep.Path == "":
		return console.Usage("--after last needs the --state that knows the last number")
	case c.offset.last && c.freeze:
		return console.Usage("--after last and --freeze: nothing is taken in, so numbers would repeat; give --after a number")
	}
	return nil
}

// completeOffsets sets what follows from --offset where nothing else is said: the samples of a warm-up, and that nothing is
// forgotten. The bare recursion has no warm-up.
func (c *calibration) completeOffsets(flags *pflag.FlagSet) {
	if !option.Given(flags, "warm-up") && (c.commit != online.Always || c.shift.Learned()) {
		c.warmUp = online.LeastWarmUp
	}
}

// options are those of the calibrator.
func (c *calibration) options() *online.Options {
	o := c.solver.Options()
	c.ranks.Settle(&o.Settings)
	return &online.Options{Sensors: c.ids, Phases: c.nominal, Settings: o.Settings, Commit: c.commit, Sanity: c.sanity, Memory: c.memory.samples, Still: !c.memory.auto, Anchor: c.anchor.Anchor, Freeze: c.freeze, LearnNoise: c.model.Learns("noise-var"), LearnSensorNoise: c.model.Noise.PerSensor, NoiseVar: c.model.Noise.Each, WarmUp: c.warmUp, Block: int(c.block), LearnOffsets: c.shift.Learned(), RangeGuessed: slices.Contains(c.model.Assumed, "s-range"), Outliers: c.outliers.Stated(), SensorDerivatives: c.ofSensors}
}

// fell says whether a sample counts as not converged: one that came so near that
// the rule of learning was content with it does not, nor one without readings or without a signal.
func (c *calibration) fell(e *online.Estimate) bool {
	switch {
	case e.Status == calamp.Converged, e.Reject == online.NoReadings, e.Reject == online.NoSignal, e.Reject == online.Frozen, e.Reject == online.WarmingUp:
		return false
	case c.solver.Exactly():
		return e.Status == calamp.Diverged
	}
	return c.commit == online.Always || !e.Committed
}
