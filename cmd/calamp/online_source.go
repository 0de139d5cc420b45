package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/watch"
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
	address, listen, credentials, token string
	stream, subject, durable            string
	header, results                     string
	drain                               bool
	keep                                int
	disk                                memory.Size
}

const embeddedServer = "embedded"

func (n *natsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&n.address, "nats", "", "take samples from a JetStream of this NATS server, or of one run here: embedded")
	flags.StringVar(&n.stream, "stream", "", "name of the JetStream; embedded creates it (default calamp there)")
	flags.StringVar(&n.subject, "subject", "", "take only messages of this subject; of an embedded stream, its subject\n(default NAME.samples there)")
	flags.StringVar(&n.durable, "durable", "calamp", "name of the durable consumer")
	flags.StringVar(&n.header, "sequence-header", "", "take the samples' numbers from this header in place of the stream's")
	flags.StringVar(&n.results, "results", "", "publish each sample's line to this subject of a JetStream as well")
	flags.BoolVar(&n.drain, "drain", false, "end when the stream has no more messages, in place of waiting")
	flags.StringVar(&n.listen, "nats-listen", "127.0.0.1:4222", "address of the embedded server")
	n.keep = 10000
	flags.Var(count{&n.keep, 1}, "nats-keep", "messages that the embedded server keeps after they were taken in, for rollbacks, and results")
	n.disk = intake.DefaultDisk
	flags.Var(amount{&n.disk}, "nats-disk", "disk that the embedded server's streams may take; when it is full, publishers are refused")
	flags.Lookup("nats-disk").DefValue = "10GiB"
	flags.StringVar(&n.credentials, "nats-creds", "", "credentials file for the NATS server")
	flags.StringVar(&n.token, "nats-token", "", tokenUsage)
}

const tokenUsage = "token for the NATS server, or @FILE with it;\nwithout it embedded makes one, and says in which file"

// access is what --nats-creds and --nats-token say.
func access(credentials, token string) (intake.Access, error) {
	token, err := watch.Token(token)
	if err != nil {
		return intake.Access{}, usage("--nats-token: %w", err)
	}
	return intake.Access{Credentials: credentials, Token: token}, nil
}

// chooseSource finds the one source that the flags describe.
func (c *calibration) chooseSource(flags *pflag.FlagSet, args []string) (sourceKind, error) {
	streamed := given(flags, "input")
	switch {
	case len(args) == 1 && (c.matrix != "" || c.readings != ""):
		return 0, usage("the problem comes from %s, or from --matrix, not from both", args[0])
	case c.readings != "" && c.matrix == "":
		return 0, usage("--readings needs --matrix with it")
	case c.readings != "" && (streamed || c.nats.address != ""):
		return 0, usage("samples come from --readings, or from a stream, not from both")
	case len(args) == 1 && args[0] == "-" && streamed:
		return 0, usage("the problem and the samples both come from standard input")
	}
	if err := c.nats.check(flags); err != nil {
		return 0, err
	}
	if c.nats.address == "" && !streamed && len(args) == 0 && c.matrix == "" {
		if c.rollback == "" && c.checkpoint == "" && c.drop == "" && c.restartAt == 0 {
			return 0, usage("no samples to take in").withHint("calamp online P.npz, or --matrix W.npy with samples on standard input; calamp online --help")
		}
		return noSource, nil
	}
	kind := stdinSource
	switch {
	case c.nats.address != "":
		kind = natsSource
	case !streamed && (len(args) == 1 || c.readings != ""):
		kind = columnSource
	}
	if given(flags, "offset") && (kind == natsSource || kind == stdinSource && c.input == "jsonl") {
		return 0, usage("--offset is for columns and frames: the numbers of these samples come with them")
	}
	return kind, nil
}

// leastDisk holds some of the largest messages.
const leastDisk = memory.Size(16 * intake.MostPayload)

// check refuses flags without the one they belong to.
func (n *natsFlags) check(flags *pflag.FlagSet) error {
	if n.address == "" {
		for _, name := range []string{
			"stream", "subject", "durable", "sequence-header", "results", "drain",
			"nats-listen", "nats-keep", "nats-disk", "nats-creds", "nats-token",
		} {
			if given(flags, name) {
				return usage("--%s needs --nats with it", name)
			}
		}
		return nil
	}
	if n.address != embeddedServer {
		if n.stream == "" {
			return usage("--nats needs --stream, the name of the JetStream").withHint("--nats embedded runs a server with a stream here")
		}
		for _, name := range []string{"nats-listen", "nats-keep", "nats-disk"} {
			if given(flags, name) {
				return usage("--%s is for --nats embedded", name)
			}
		}
		return nil
	}
	if n.disk < leastDisk {
		return usage("--nats-disk: expected %v or more", leastDisk)
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
	w     operator.Matrix
	y     *mat.Dense
	truth calamp.Truth
}

func (c *calibration) load(args []string) (*material, error) {
	if c.sourceKind != columnSource {
		path := c.matrix
		if len(args) == 1 {
			path = args[0]
		}
		if path == "" {
			return nil, usage("no matrix W").withHint("add --matrix W.npy")
		}
		w, err := dataset.LoadMatrix(path)
		return &material{w: w}, err
	}
	p, err := c.loadProblem(args)
	if err != nil {
		return nil, err
	}
	return &material{w: p.W, y: p.Y, truth: p.Truth}, nil
}

func (c *calibration) loadProblem(args []string) (*dataset.Problem, error) {
	switch {
	case len(args) == 0:
		return dataset.LoadParts(c.matrix, c.readings)
	case args[0] == "-":
		return dataset.Read(c.stdin, "standard input")
	}
	return dataset.Load(args[0])
}

// width is the bytes of a number in frames, 0 for JSON.
func (c *calibration) width() int {
	return map[string]int{"f4": 4, "f8": 8}[c.input]
}

// open opens the source of samples, given the last number that was taken in.
func (r *onlineRun) openSource(ctx context.Context) (err error) {
	m, _ := r.in.w.Dims()
	offset := r.offset.value
	if r.offset.last {
		offset = max(r.last, 0)
		if offset > intake.MaxSequence {
			return usage("--offset last: the last number is %d, after which nothing can be numbered", offset).withHint(restartHint, r.state)
		}
	}
	r.firstColumn = offset + 1
	switch {
	case r.sourceKind == columnSource:
		r.source = intake.Columns(r.in.y, offset)
	case r.sourceKind == natsSource:
		r.source, err = r.openStream(ctx, m)
	case r.width() > 0:
		r.source = intake.Frames(r.stdin, m, r.width(), offset)
	default:
		r.source = intake.Lines(r.stdin, m, r.believed())
	}
	return err
}

// restartHint is how to set a state's number back.
const restartHint = "where that number is wrong, calamp online --state %s --restart-at N makes N the next one"

// believed says which numbers of samples are believed.
func (r *onlineRun) believed() intake.Numbering {
	return intake.Numbering{After: max(r.last, r.from-1), MaxGap: r.maxGap}
}

func (r *onlineRun) openStream(ctx context.Context, m int) (intake.Source, error) {
	n := &r.nats
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	durable := n.durable
	if r.freeze {
		durable += "-frozen" // so as not to take the learner's messages
	}
	source, err := r.broker.Source(ctx, intake.StreamOptions{
		Stream: n.stream, Durable: durable, Filter: n.filter(),
		SequenceHeader: n.header, Sensors: m, Width: r.width(),
		Numbering: r.believed(), Drain: n.drain, Frozen: r.freeze,
	})
	return source, err
}

func (n *natsFlags) filter() string {
	if n.address == embeddedServer {
		return ""
	}
	return n.subject
}

// connect connects to the broker, or runs one.
func (r *onlineRun) connect(ctx context.Context) error {
	n := &r.nats
	access, err := access(n.credentials, n.token)
	if err != nil {
		return err
	}
	if n.address == embeddedServer {
		return r.embed(ctx, access.Token)
	}
	b, err := intake.Connect(n.address, access)
	if err != nil {
		return err
	}
	r.broker, r.closers = b, append(r.closers, b)
	return nil
}

// embed runs a server, with a stream for samples, and one for results where they
// are wanted.
func (r *onlineRun) embed(ctx context.Context, token string) error {
	n := &r.nats
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{
		Folder: r.state + ".jetstream", Address: n.listen, Token: token, Disk: int64(n.disk),
	})
	if errors.Is(err, intake.ErrToken) {
		return usage("%w", err)
	}
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
	r.note("NATS on %s: stream %s takes samples published to %s%s", e.URL(), n.stream, n.subject, tokenNote(e))
	return nil
}

// tokenNote says where clients find the token.
func tokenNote(e *intake.Embedded) string {
	if e.TokenFile() == "" {
		return ", with the token of --nats-token"
	}
	return ", with the token in " + e.TokenFile()
}

// trim keeps an embedded stream from filling the disk, after the message of the
// number stored, which was taken in, dropped or refused: now and then, and often
// enough that what comes in between fits.
func (r *onlineRun) trim(stored int64) error {
	if r.nats.address != embeddedServer || r.freeze {
		return nil
	}
	m, _ := r.in.w.Dims()
	const mostPerReading = 32 // bytes, as text
	every := max(1, min(256, int64(r.nats.disk)/16/int64(mostPerReading*m)))
	if stored < r.trimmed+every {
		return nil
	}
	r.trimmed = stored
	return r.broker.Trim(context.Background(), r.nats.stream, stored, int64(r.nats.keep))
}

// closeAll closes what was opened, the last first.
func closeAll(closers []io.Closer) error {
	var errs []error
	for k := len(closers) - 1; k >= 0; k-- {
		errs = append(errs, closers[k].Close())
	}
	return errors.Join(errs...)
}

// stateFault gives the errors of state files their exit codes.
func stateFault(err error) error {
	if err == nil {
		return nil
	}
	e := &exit{code: exitFailed, err: err}
	switch {
	case errors.Is(err, online.ErrStateMismatch):
		e.code = exitUsage
		e.hint = "give the model and matrix that the state was made with (calamp inspect shows the model), or begin a new state"
	case errors.Is(err, online.ErrStateDamaged):
		e.code = exitUsage
		e.hint = "the file was left as it is; go on with a copy of it, or begin a new state under another name"
	case errors.Is(err, online.ErrStateVersion), errors.Is(err, online.ErrNoState), errors.Is(err, online.ErrNoCheckpoint), errors.Is(err, online.ErrCheckpointLimit):
		e.code = exitUsage
	case errors.Is(err, online.ErrStateInUse):
		e.hint = "one process at a time can have a state; what a running one has learned is at its --http address"
	}
	return e
}

// fingerprintOf identifies what a state is good for.
func (c *calibration) fingerprintOf(w operator.Matrix) (online.Identity, error) {
	signal, gain := c.model.known()
	id, err := online.Identify(w, c.model.signal(signal), gain, c.options())
	if err != nil {
		return id, fmt.Errorf("fingerprint: %w", err)
	}
	return id, nil
}
