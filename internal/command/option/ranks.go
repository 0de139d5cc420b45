package option

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/ranks"
	"github.com/calamp/calamp/internal/simd"
	"github.com/calamp/calamp/solver"
)

// Ranks is --mpi: the rows of W are divided over processes.
type Ranks struct {
	*ranks.Group      // nil without --mpi
	Reproducible bool // --reproducible

	mpi    bool
	memory memory.Size // of a rank, the same on all
	local  int         // how many ranks this machine has
}

// Register adds the flags.
func (r *Ranks) Register(flags *pflag.FlagSet) {
	flags.BoolVar(&r.mpi, "mpi", false, "one of the processes of mpirun -n K or srun: the rows of W are divided over them, and the\nfirst one writes; needs a calamp built with -tags mpi")
	flags.BoolVar(&r.Reproducible, "reproducible", false, "with --mpi, the same bytes for any number of ranks (up to 8)")
}

// On reports whether W is divided.
func (r *Ranks) On() bool { return r.Group != nil }

// Only reports whether this process prints and writes.
func (r *Ranks) Only() bool { return !r.On() || r.First() }

// Together runs the command on all ranks. Only the first is heard, but for one that fails
// when others do not.
func (r *Ranks) Together(a *console.Console, version string, run func() error) error {
	if !r.mpi {
		if r.Reproducible {
			return console.Usage("--reproducible is for --mpi: one process writes the same bytes anyway")
		}
		return run()
	}
	transport, err := ranks.Start()
	if errors.Is(err, ranks.ErrNone) {
		return (&console.Exit{Code: console.WrongUsage, Err: err}).WithHint("CGO_ENABLED=0 go install -tags mpi ./cmd/calamp makes one that has it, on Linux")
	}
	if err != nil {
		return fmt.Errorf("--mpi: %w", err)
	}
	r.Group = ranks.Of(transport)
	stderr := a.Stderr
	if !r.First() {
		a.Stdout, a.Stderr = io.Discard, io.Discard
	}
	return r.End(r.attempt(a, version, run), func(err error, alone bool) {
		if alone {
			rank, _ := r.Rank()
			host, _ := os.Hostname()
			err = fmt.Errorf("rank %d on %s: %w", rank, host, err)
		}
		a.Stderr = stderr
		a.Report(err)
		a.Stderr = io.Discard // it has been reported
	})
}

func (r *Ranks) attempt(a *console.Console, version string, run func() error) (err error) {
	defer crash.Catch(&err)
	if err := r.agree(a, version); err != nil {
		return err
	}
	return run()
}

// agree makes sure that all ranks will do the same, and finds out what they have.
func (r *Ranks) agree(a *console.Console, version string) error {
	level, err := simd.Active()
	if err != nil {
		return console.Usage("%w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := r.Agree("the version of calamp", version+runtime.GOARCH); err != nil {
		return err
	}
	if err := r.Agree("the command line", strings.Join(a.Args, "\x00")); err != nil {
		return err
	}
	if err := r.Agree("the instruction set ("+simd.Variable+" sets it)", level.String()); err != nil {
		return err
	}
	hosts, err := r.All("the names of machines", host)
	if err != nil {
		return err
	}
	for _, other := range hosts {
		if other == host {
			r.local++
		}
	}
	r.memory = memory.Total() / memory.Size(r.local)
	sizes, err := r.All("the memory of machines", strconv.FormatInt(int64(r.memory), 10))
	if err != nil {
		return err
	}
	for _, text := range sizes {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		r.memory = min(r.memory, memory.Size(size))
	}
	return nil
}

// Memory is what a rank has: its machine's, divided by the ranks there, on the machine with the
// least. Without --mpi it is what the machine has.
func (r *Ranks) Memory() memory.Size {
	if !r.On() {
		return memory.Total()
	}
	return r.memory
}

// Settle makes settings the same on all ranks, and has those of a machine divide its cores.
func (r *Ranks) Settle(s *solver.Settings) {
	if !r.On() {
		return
	}
	s.RAM = int64(r.memory)
	if s.Threads == 0 {
		s.Threads = max(1, runtime.NumCPU()/r.local)
	}
}

// Context is one that ends on all ranks at the same place, after ctx has on one.
func (r *Ranks) Context(ctx context.Context) context.Context {
	if !r.On() {
		return ctx
	}
	together, cancel := context.WithCancel(context.Background())
	r.Stop = cancel
	context.AfterFunc(ctx, r.Interrupt)
	return together
}

// OfFirst is the error of something that only the first rank does, on all ranks.
func (r *Ranks) OfFirst(do func() error) error {
	if !r.On() {
		return do()
	}
	var stated struct {
		Code       int
		Text, Hint string
	}
	raw := []byte("{}")
	if r.First() {
		if err := do(); err != nil {
			e := console.ExitOf(err)
			stated.Code, stated.Text, stated.Hint = e.Code, err.Error(), e.Hint
			if raw, err = json.Marshal(stated); err != nil {
				return err
			}
		}
	}
	texts, err := r.All("what the first rank does", string(raw))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(texts[0]), &stated); err != nil || stated.Code == 0 {
		return err
	}
	return &console.Exit{Code: stated.Code, Err: errors.New(stated.Text), Hint: stated.Hint}
}
