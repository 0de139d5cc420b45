package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/sweep"
	"github.com/calamp/calamp/internal/sweep/queue"
)

// sweepRun is one call of calamp sweep run.
type sweepRun struct {
	grid
	workers int
	shard   string
	retry   bool
	nats    sweepNATS

	writer *sweep.Writer
	bar    *sweepBar
	failed int
}

// sweepNATS are the flags about brokers.
type sweepNATS struct {
	option.NATS
	redeliver time.Duration
}

func sweepRunCommand(a *console.Console) *cobra.Command {
	s := &sweepRun{grid: grid{Console: a}}
	cmd := &cobra.Command{
		Use:   "run SPEC.toml",
		Short: "Run the points of a sweep that have no row yet",
		Long: `Run the points of a sweep that have no row yet. A point that fails becomes a row
with the class of its error, and ends nothing; the exit code is then 1. Ctrl-C,
SIGTERM, SIGHUP and USR1 finish the points under way, write them, and exit with
130; the same command goes on from there.

Several processes can share a sweep. With --shard i/n each takes its part, and
they need a common folder only; auto asks Slurm, Kubernetes or Open MPI which
part that is. With --nats, points go to whoever runs calamp sweep worker.`,
		Example: `  calamp sweep run phase.toml --workers 8
  calamp sweep run phase.toml --shard 3/10
  calamp sweep run phase.toml --nats nats://queue.example.org:4222`,
		Args: oneSpec,
		RunE: func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	flags := cmd.Flags()
	s.register(flags)
	option.Workers(flags, &s.workers, "points at a time on this machine")
	flags.StringVar(&s.shard, "shard", "auto", "run part i/n only, i from 1; auto and auto/n ask the scheduler; all")
	flags.BoolVar(&s.retry, "retry-failed", false, "run points again that failed")
	s.nats.Register(flags, handOut)
	s.nats.RegisterListen(flags)
	flags.DurationVar(&s.nats.redeliver, "redeliver", queue.DefaultRedeliver, "give a worker's points to another one when it showed no sign of life for so long")
	return cmd
}

// handOut is what --nats is for.
const handOut = "hand points out by this NATS server"

func (s *sweepRun) run(path string) error {
	if err := s.load(path); err != nil {
		return err
	}
	ctx, stop := console.Orderly()
	defer stop()
	return s.complete(ctx)
}

// complete runs what is missing.
func (s *sweepRun) complete(ctx context.Context) error {
	part, err := sweep.ParseShard(s.shard, os.Getenv)
	if err != nil {
		return console.Usage("--shard: %w", err)
	}
	if s.nats.Address != "" && part.Count > 1 {
		return console.Usage("--shard %v and --nats are two ways of parting points, give one", part)
	}
	rows, err := s.rows()
	if err != nil {
		return err
	}
	mine := part.Of(s.points)
	missing := rows.Missing(mine, s.retry)
	if part.Count > 1 {
		s.Note("shard %v: %d of %d points", part, len(mine), len(s.points))
	}
	for _, p := range mine {
		if row := rows[p.Key()]; row != nil && row.Failed() && !s.retry {
			s.failed++
		}
	}
	if s.writer, err = s.store().Writer(); err != nil {
		return console.Usage("--data %s: %w", s.data, console.Cause(err))
	}
	start := time.Now()
	s.bar = openBar(s.Console, len(mine), len(mine)-len(missing))
	if s.nats.Address != "" {
		err = s.queued(ctx, missing)
	} else {
		err = s.local(ctx, missing)
	}
	s.bar.bar.Done()
	err = errors.Join(err, s.writer.Close())
	return s.ending(len(mine), len(missing), time.Since(start), err)
}

func (s *sweepRun) local(ctx context.Context, points []sweep.Point) error {
	l := sweep.Local{
		Runner:  sweep.Runner{Limits: s.spec.Run, Stamp: stamp()},
		Workers: s.workers,
		Each:    func(row sweep.Row) error { return s.take(row) },
	}
	return l.Run(ctx, points)
}

// take writes rows, and shows them.
func (s *sweepRun) take(rows ...sweep.Row) error {
	for _, row := range rows {
		s.bar.add(1)
		if row.Failed() {
			s.failed++
			s.bar.bar.Clear()
			s.Warn("%v: %s: %s", row.Point, row.Class, row.Message)
		}
	}
	return s.writer.Append(rows...)
}

// ending says how a run ended, and with which code.
func (s *sweepRun) ending(all, missing int, took time.Duration, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		e := &console.Exit{Code: console.Interrupted, Err: errors.New("interrupted; what was under way is done and written")}
		return e.WithHint("the same command goes on from there")
	case err != nil:
		return err
	case s.failed > 0:
		e := &console.Exit{Code: console.Failed, Err: fmt.Errorf("%d of %d points failed; they are rows with the class of their error", s.failed, all)}
		return e.WithHint("calamp sweep status counts the classes; --retry-failed runs them again")
	}
	s.Note("%d of %d points run in %v, rows in %s", missing, all, rough(took), s.data)
	return nil
}

// queued hands points out by a NATS server.
func (s *sweepRun) queued(ctx context.Context, points []sweep.Point) error {
	q, closeQueue, err := s.openQueue(ctx)
	if err != nil {
		return err
	}
	defer closeQueue()
	batch, err := s.batch(ctx, points)
	if err != nil {
		return err
	}
	job := &queue.Job{Points: s.points, Missing: points, Limits: s.spec.Run, Batch: batch, Each: func(rows []sweep.Row) error {
		return errors.Join(s.take(rows...), s.writer.Sync())
	}}
	working, leave := context.WithCancel(context.WithoutCancel(ctx))
	var busy sync.WaitGroup
	finish := func() {
		leave()
		busy.Wait()
	}
	defer finish() // before the connection is closed
	if n := s.localWorkers(); n > 0 {
		w := &queue.Worker{Queue: q, Stamp: stamp(), Workers: n}
		busy.Go(func() {
			if err := crash.Guard(func() error { return w.Run(working) }); err != nil && working.Err() == nil {
				s.Warn("the workers of this process ended: %v", err)
			}
		})
	}
	return q.Run(ctx, job, finish)
}

// localWorkers is how many points this process runs itself: with a server of
// its own all that the machine can, with another's none unless asked.
func (s *sweepRun) localWorkers() int {
	if s.workers == 0 && s.nats.Address == option.Embedded {
		return runtime.GOMAXPROCS(0)
	}
	return s.workers
}

// batch sees how long points take, to hand out many of the short ones at once.
func (s *sweepRun) batch(ctx context.Context, points []sweep.Point) (int, error) {
	if len(points) == 0 {
		return 1, nil
	}
	plan, err := sweep.NewPlan(ctx, &sweep.Runner{Limits: s.spec.Run, Stamp: stamp()}, points, time.Second)
	if err != nil {
		return 0, err
	}
	return plan.BatchSize(), nil
}

func (s *sweepRun) openQueue(ctx context.Context) (q *queue.Queue, closeAll func() error, err error) {
	var b *intake.Broker
	if s.nats.Address == option.Embedded {
		e, err := s.nats.Embed(intake.EmbeddedOptions{Folder: filepath.Join(s.data, "jetstream"), Shared: true})
		if err != nil {
			return nil, nil, err
		}
		s.Note("NATS server on %s; workers join with calamp sweep worker --nats %[1]s --nats-token @%s",
			e.URL(), cmp.Or(e.TokenFile(), "FILE"))
		b, closeAll = e.Broker, e.Close
	} else {
		if b, err = s.nats.Connect(); err != nil {
			return nil, nil, err
		}
		closeAll = b.Close
	}
	if q, err = queue.Open(ctx, b.JetStream(), s.nats.redeliver); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return q, closeAll, nil
}

// sweepWorker is one call of calamp sweep worker.
type sweepWorker struct {
	*console.Console
	nats    sweepNATS
	workers int
	idle    time.Duration
}

func sweepWorkerCommand(a *console.Console) *cobra.Command {
	s := &sweepWorker{Console: a}
	cmd := &cobra.Command{
		Use:   "worker --nats URL",
		Short: "Run points for the sweeps of a NATS server",
		Long: `Run points for the sweeps that calamp sweep run --nats has put on a server, until
Ctrl-C or SIGTERM: then the points under way are finished and handed in, and the
exit code is 0. Workers join and leave as they like; the points of one that is
killed go to another one.`,
		Example: `  calamp sweep worker --nats nats://queue.example.org:4222 --workers 8 --idle 10m`,
		Args:    console.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return s.run() },
	}
	s.nats.Register(cmd.Flags(), handOut)
	option.Workers(cmd.Flags(), &s.workers, "points at a time")
	cmd.Flags().DurationVar(&s.idle, "idle", 0, "end when there was nothing to do for so long; 0 never ends")
	return cmd
}

func (s *sweepWorker) run() error {
	if s.nats.Address == "" || s.nats.Address == option.Embedded {
		return console.Usage("a worker needs the address of a server").WithHint("calamp sweep worker --nats nats://host:4222")
	}
	ctx, stop := console.Orderly()
	defer stop()
	b, err := s.nats.Connect()
	if err != nil {
		return err
	}
	defer b.Close()
	q, err := queue.Open(ctx, b.JetStream(), 0)
	if err != nil {
		return err
	}
	n := s.workers
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	s.Note("%d workers at %s", n, intake.Redact(s.nats.Address))
	done := 0
	w := &queue.Worker{Queue: q, Stamp: stamp(), Workers: n, Idle: s.idle, Each: func(sweep.Row) { done++ }}
	err = w.Run(ctx)
	s.Note("%d points run", done)
	if errors.Is(err, context.Canceled) {
		return nil // leaving is a worker's way of ending
	}
	return err
}

// sweepBar shows how many points are done: a bar on a terminal, a line now and then elsewhere.
type sweepBar struct {
	app        *console.Console
	bar        *console.Progress // nil where there is no terminal
	all, count int
	start      time.Time
	ran        int
	stated     time.Time
}

// tellEvery is how often the log of a job says how far it is.
const tellEvery = time.Minute

func openBar(a *console.Console, all, done int) *sweepBar {
	b := &sweepBar{app: a, bar: a.Progress(), all: all, count: done, start: time.Now(), stated: time.Now()}
	b.show()
	return b
}

func (b *sweepBar) show() {
	b.bar.Show(fmt.Sprintf("%d of %d points", b.count, b.all), float64(b.count)/float64(max(1, b.all)))
}

func (b *sweepBar) add(n int) {
	b.count += n
	b.ran += n
	if b.show(); b.bar == nil && time.Since(b.stated) >= tellEvery {
		b.stated = time.Now()
		left := time.Duration(float64(time.Since(b.start)) / float64(b.ran) * float64(b.all-b.count))
		b.app.Note("%d of %d points, about %v left", b.count, b.all, rough(left))
	}
}
