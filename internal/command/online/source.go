package online

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/state"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
)

// sourceKind is where samples come from.
type sourceKind int

const (
	noSource sourceKind = iota // only the state is to be changed
	columnSource
	stdinSource
	natsSource
)

// natsFlags are the flags about brokers.
type natsFlags struct {
	option.NATS
	stream, subject, durable string
	header, results          string
	drain                    bool
	keep                     int
	disk                     memory.Size
}

func (n *natsFlags) register(flags *pflag.FlagSet) {
	n.NATS.Register(flags, "take samples from a JetStream of this NATS server")
	flags.StringVar(&n.stream, "stream", "", "name of the JetStream; embedded creates it (default calamp there)")
	flags.StringVar(&n.subject, "subject", "", "take only messages of this subject; of an embedded stream, its subject\n(default NAME.samples there)")
	flags.StringVar(&n.durable, "durable", "calamp", "name of the durable consumer")
	flags.StringVar(&n.header, "sequence-header", "", "take the samples' numbers from this header in place of the stream's")
	flags.StringVar(&n.results, "results", "", "publish each sample's line to this subject of a JetStream as well")
	flags.BoolVar(&n.drain, "drain", false, "end when the stream has no more messages, in place of waiting")
	n.RegisterListen(flags)
	n.keep = 10000
	flags.Var(option.Count(&n.keep, 1), "nats-keep", "messages that the embedded server keeps after they were taken in, for rollbacks, and results")
	n.disk = intake.DefaultDisk
	flags.Var(option.Text(&n.disk, option.Wording[memory.Size]{Kind: "size"}), "nats-disk", "disk that the embedded server's streams may take; when it is full, publishers are refused")
	flags.Lookup("nats-disk").DefValue = "10GiB"
}

// chooseSource finds the one source that the flags describe.
func (c *calibration) chooseSource(flags *pflag.FlagSet, args []string) (sourceKind, error) {
	streamed := option.Given(flags, "input")
	switch {
	case len(args) == 1 && (c.parts.Matrix != "" || c.parts.Readings != ""):
		return 0, console.Usage("the problem comes from %s, or from --matrix, not from both", args[0])
	case c.parts.Readings != "" && c.parts.Matrix == "":
		return 0, console.Usage("--readings needs --matrix with it")
	case c.parts.Readings != "" && (streamed || c.nats.Address != ""):
		return 0, console.Usage("samples come from --readings, or from a stream, not from both")
	case len(args) == 1 && args[0] == "-" && streamed:
		return 0, console.Usage("the problem and the samples both come from standard input")
	}
	if err := c.nats.check(flags); err != nil {
		return 0, err
	}
	if c.nats.Address == "" && !streamed && len(args) == 0 && c.parts.Matrix == "" {
		if c.keep.Flag() == "" {
			return 0, console.Usage("no samples to take in").WithHint("calamp online P.npz, or --matrix W.npy with samples on standard input; calamp online --help")
		}
		return noSource, nil
	}
	kind := stdinSource
	switch {
	case c.nats.Address != "":
		kind = natsSource
	case !streamed && (len(args) == 1 || c.parts.Readings != ""):
		kind = columnSource
	}
	if option.Given(flags, "after") && (kind == natsSource || kind == stdinSource && c.input == "jsonl") {
		return 0, console.Usage("--after is for columns and frames: the numbers of these samples come with them")
	}
	return kind, nil
}

// leastDisk holds some of the largest messages.
const leastDisk = memory.Size(16 * intake.MostPayload)

// check refuses flags without the one they belong to.
func (n *natsFlags) check(flags *pflag.FlagSet) error {
	if n.Address == "" {
		for _, name := range []string{
			"stream", "subject", "durable", "sequence-header", "results", "drain",
			"nats-listen", "nats-keep", "nats-disk", "nats-creds", "nats-token",
		} {
			if option.Given(flags, name) {
				return console.Usage("--%s needs --nats with it", name)
			}
		}
		return nil
	}
	if n.Address != option.Embedded {
		if n.stream == "" {
			return console.Usage("--nats needs --stream, the name of the JetStream").WithHint("--nats embedded runs a server with a stream here")
		}
		for _, name := range []string{"nats-listen", "nats-keep", "nats-disk"} {
			if option.Given(flags, name) {
				return console.Usage("--%s is for --nats embedded", name)
			}
		}
		return nil
	}
	if n.disk < leastDisk {
		return console.Usage("--nats-disk: expected %v or more", leastDisk)
	}
	if n.stream == "" {
		n.stream = "calamp"
	}
	if n.subject == "" {
		n.subject = n.stream + ".samples"
	}
	return nil
}

// material is what is given beforehand: the matrix, and where samples come from a
// file, those and the truth.
type material struct {
	w     operator.Operator
	of    []int // which matrix every column of y has, where w is an [operator.Choice]
	y     *mat.Dense
	truth calamp.Truth
	known *channel.Knowledge // of single sensors

	complex bool      // Y is, or W
	phases  []float64 // nominal ones of complex gains, or nil
}

func (c *calibration) load(args []string) (*material, error) {
	path := c.parts.Matrix
	if len(args) == 1 {
		path = args[0]
	}
	p, err := c.problem(path, args)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(c.loadSensors(p), c.loadDerivatives(p.W)); err != nil {
		return nil, err
	}
	in := &material{y: p.Y, truth: p.Truth, known: p.Known, complex: p.Complex, phases: p.Phases}
	if in.w, err = c.parts.Basis.Compose(p.W); err != nil {
		return nil, err
	}
	if c.sourceKind != columnSource {
		in.w, err = choice(in.w, dataset.MatrixCount(path))
		return in, err
	}
	var matrices []operator.Operator
	if matrices, in.of = operator.Separate(in.w); in.of != nil {
		in.w, err = operator.NewChoice(matrices)
	}
	return in, err
}

// problem is that of a file with columns, and otherwise one of the matrix at path alone.
func (c *calibration) problem(path string, args []string) (p *dataset.Problem, err error) {
	if c.sourceKind == columnSource {
		return c.parts.Problem(c.Console, args, nil, math.MaxInt64, &c.ranks)
	}
	if path == "" {
		return nil, console.Usage("no matrix W").WithHint("add --matrix W.npy")
	}
	p = &dataset.Problem{}
	if p.W, err = c.openMatrix(path); err != nil {
		return nil, err
	}
	p.Complex = operator.IsComplex(p.W)
	if dataset.HasSensors(path) {
		m, _ := p.W.Dims()
		p.Sensors, err = dataset.LoadSensors(path, m)
	}
	return p, err
}

// loadDerivatives reads the derivatives of W, as given, by parameters of sensors.
func (c *calibration) loadDerivatives(w operator.Operator) (err error) {
	m, n := w.Dims()
	if c.ofSensors, err = dataset.LoadDerivatives(c.derivatives, m, n); err != nil {
		return console.Usage("--sensor-derivatives %w", err)
	}
	for j := range c.ofSensors {
		if c.ofSensors[j].D, err = c.parts.Basis.Compose(c.ofSensors[j].D); err != nil {
			return console.Usage("--sensor-derivatives: %w", err)
		}
	}
	return nil
}

// loadSensors reads the sensors that rows of W are read with.
func (c *calibration) loadSensors(p *dataset.Problem) error {
	m, _ := p.W.Dims()
	if err := c.rows.Read(p, m); err != nil {
		return err
	}
	c.ids = p.Sensors
	return nil
}

func (c *calibration) openMatrix(path string) (w operator.Operator, err error) {
	if w, err = c.brought(path); w != nil || err != nil {
		return w, err
	}
	if c.ranks.On() {
		w, _, err = dataset.OpenShared(path, math.MaxInt64, c.ranks, c.ranks.Reproducible)
	} else {
		w, _, err = dataset.OpenMatrix(path, math.MaxInt64)
	}
	return w, err
}

// width is the bytes of a number in frames, of either part of a complex one; 0 for JSON.
func (c *calibration) width() int {
	return map[string]int{"f4": 4, "f8": 8, "c8": 4, "c16": 8}[c.input]
}

// open opens the source of samples, given the last number that was taken in.
func (r *onlineRun) openSource(ctx context.Context) (err error) {
	offset := r.offset.value
	if r.offset.last {
		offset = max(r.loop.Last, 0)
		if offset > intake.MaxSequence {
			return console.Usage("--after last: the last number is %d, after which nothing can be numbered", offset).WithHint("%s", state.RestartHint(r.keep.Path))
		}
	}
	r.firstColumn = offset + 1
	if r.ranks.On() {
		defer func() { r.loop.Source = sharedSource{&r.ranks, r.loop.Source} }()
		if !r.ranks.First() {
			return nil
		}
	}
	switch {
	case r.sourceKind == columnSource:
		r.loop.Source = intake.Columns(r.in.y, r.form(), offset, r.in.of)
	case r.sourceKind == natsSource:
		r.loop.Source, err = r.openStream(ctx)
	case r.width() > 0:
		r.loop.Source = intake.Frames(r.Stdin, r.form(), offset)
	default:
		r.loop.Source = intake.Lines(r.Stdin, r.form(), r.numbering())
	}
	return err
}

// numbering says which numbers of samples are accepted.
func (r *onlineRun) numbering() intake.Numbering {
	return intake.Numbering{After: max(r.loop.Last, r.from-1), MaxGap: r.maxGap}
}

func (r *onlineRun) openStream(ctx context.Context) (intake.Source, error) {
	n := &r.nats
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	durable := n.durable
	if r.freeze {
		durable += "-frozen" // so as not to take the learner's messages
	}
	o := intake.StreamOptions{
		Stream: n.stream, Durable: durable, Filter: n.filter(),
		SequenceHeader: n.header, Form: r.form(),
		Numbering: r.numbering(), Drain: n.drain, Frozen: r.freeze,
	}
	if n.Address != option.Embedded { // whose streams are this state's, by the place where they are
		o.Owner, o.Origin, o.Committed = ownerOf(r.store), r.saved.Origin, r.saved.Time
	}
	source, err := r.broker.Source(ctx, o)
	if err != nil {
		return nil, err
	}
	if n.header == "" && n.Address != option.Embedded {
		r.store.SetOrigin(source.(intake.Dated).Origin())
	}
	return source, nil
}

// ownerOf tells a state from others by when it was made, and says where it is.
func ownerOf(store *online.Store) intake.Owner {
	path := store.Path()
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return intake.Owner{State: store.Created().UTC().Format(time.RFC3339Nano), Place: path + " on " + host}
}

func (n *natsFlags) filter() string {
	if n.Address == option.Embedded {
		return ""
	}
	return n.subject
}

// connect connects to the broker, or runs one.
func (r *onlineRun) connect(ctx context.Context) error {
	n := &r.nats
	if n.Address == option.Embedded {
		return r.embed(ctx)
	}
	b, err := n.Connect()
	if err != nil {
		return err
	}
	r.broker, r.closers = b, append(r.closers, b)
	return nil
}

// embed runs a server, with a stream for samples, and one for results where they
// are asked for.
func (r *onlineRun) embed(ctx context.Context) error {
	n := &r.nats
	e, err := n.Embed(intake.EmbeddedOptions{Folder: r.keep.Path + ".jetstream", Disk: int64(n.disk)})
	if err != nil {
		return err
	}
	r.broker, r.closers = e.Broker, append(r.closers, e)
	if err := e.EnsureStream(ctx, n.stream, n.subject, intake.StreamLimits{Bytes: int64(n.disk) / 4 * 3}); err != nil {
		return err
	}
	if n.results != "" {
		limits := intake.StreamLimits{Messages: int64(n.keep), Bytes: int64(n.disk) / 4}
		if err := e.EnsureStream(ctx, n.stream+"-results", n.results, limits); err != nil {
			return err
		}
	}
	r.Note("NATS on %s: stream %s takes samples published to %s%s", e.URL(), n.stream, n.subject, tokenNote(e))
	return nil
}

// tokenNote says where clients find the token.
func tokenNote(e *intake.Embedded) string {
	if e.TokenFile() == "" {
		return ", with the token of --nats-token"
	}
	return ", with the token in " + e.TokenFile()
}

// closeAll closes what was opened, the last first.
func closeAll(closers []io.Closer) error {
	var errs []error
	for k := len(closers) - 1; k >= 0; k-- {
		errs = append(errs, closers[k].Close())
	}
	return errors.Join(errs...)
}

// fingerprintOf identifies what a state is good for.
func (c *calibration) fingerprintOf(w operator.Operator) (online.Identity, error) {
	signal, sensors, err := c.known()
	if err != nil {
		return online.Identity{}, err
	}
	id, err := online.Identify(w, signal, sensors, c.options())
	if err != nil {
		return id, fmt.Errorf("fingerprint: %w", err)
	}
	return id, nil
}

// broughtPrefix is --matrix sample:MxN: every sample brings its own.
const broughtPrefix = "sample:"

// brought is the W of --matrix sample:MxN; nil where that is not it.
func (c *calibration) brought(spec string) (operator.Operator, error) {
	size, is := strings.CutPrefix(spec, broughtPrefix)
	if !is {
		return nil, nil
	}
	var m, n int
	if count, err := fmt.Sscanf(size, "%dx%d", &m, &n); count != 2 || err != nil || m < 1 || n < 1 || fmt.Sprintf("%dx%d", m, n) != size {
		return nil, console.Usage("--matrix %s: expected the size of the matrix that every sample brings, as in sample:160x200", spec)
	}
	switch {
	case c.ranks.On():
		return nil, console.Usage("--matrix %s is for one process: leave out --mpi", spec)
	case c.parts.Basis.Spec != "":
		return nil, console.Usage("--matrix %s does not go along with --basis: samples bring the matrix of coefficients", spec)
	}
	// A typical one stands for them until the first comes.
	rng := rand.New(rand.NewPCG(38, 0))
	entries := make([]complex128, m*n)
	for i := range entries {
		entries[i] = complex(float64(1-2*rng.IntN(2))/math.Sqrt(float64(n)), 0)
	}
	if c.phases.Given() || strings.HasPrefix(c.input, "c") {
		w, err := operator.NewComplex(m, n, entries)
		return operator.NewBrought(w), err
	}
	table := make([]float64, len(entries))
	for i, v := range entries {
		table[i] = real(v)
	}
	w, err := operator.NewDense(m, n, table)
	return operator.NewBrought(w), err
}

// choice is a W of which samples name one of so many matrices; w itself where it is one for all.
func choice(w operator.Operator, count int) (operator.Operator, error) {
	matrices, of := operator.Separate(w)
	list := slices.Repeat([]operator.Operator{w}, count) // which may all be the same
	if of != nil {
		list = list[:0]
		for _, j := range of {
			list = append(list, matrices[j])
		}
	}
	if len(list) == 0 {
		return w, nil
	}
	return operator.NewChoice(list)
}
