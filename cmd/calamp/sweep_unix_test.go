//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/command"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/sweep"
	"github.com/calamp/calamp/internal/sweep/queue"
)

// rehearsalSpec has 120 points of 20 ms.
const rehearsalSpec = `
[[grid]]
algorithm = "rehearsal"
density = [0.1, 0.2, 0.3]
seeds = 40
[rehearsal]
work = "20ms"
`

// calampProcess is the command in a process of its own.
func calampProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Args[0] = "calamp" // as which the test binary is the command
	c.Stderr = os.Stderr
	return c
}

// sweepTable is the merged table.
func sweepTable(t *testing.T, spec, data string) string {
	t.Helper()
	code, table, stderr := calampRun(t, "sweep", "merge", spec, "--data", data)
	if code != 0 || strings.Contains(stderr, "have not been run") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return table
}

func writeSpec(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rehearsal.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// localTable is what a local run makes of a spec.
func localTable(t *testing.T, spec string) string {
	t.Helper()
	data := t.TempDir()
	if code, _, stderr := calampRun(t, "sweep", "run", spec, "--data", data, "-q", "--workers", "8"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	return sweepTable(t, spec, data)
}

// TestSweepQueue runs a sweep by a JetStream whose workers are killed.
func TestSweepQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes, and waits for redelivery")
	}
	t.Parallel()
	spec := writeSpec(t, rehearsalSpec)
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{Folder: t.TempDir(), Address: "127.0.0.1:0", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := queue.Open(t.Context(), e.JetStream(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	worker := func() *exec.Cmd {
		c := calampProcess(t, "sweep", "worker", "--nats", e.URL(), "--nats-token", e.Token(), "--workers", "2", "-q")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan int)
	go func() { // three workers die in the middle of it, and a fourth stays
		n := 0
		for ; n < 3 && ctx.Err() == nil; n++ {
			c := worker()
			time.Sleep(350 * time.Millisecond)
			c.Process.Kill()
			c.Wait()
		}
		c := worker()
		<-ctx.Done()
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("a worker that was asked to end: %v", err)
		}
		killed <- n
	}()
	data := t.TempDir()
	code, _, stderr := calampRun(t, "sweep", "run", spec, "--data", data, "-q", "--nats", e.URL(), "--nats-token", e.Token(), "--redeliver", "2s")
	cancel()
	if n := <-killed; n != 3 {
		t.Errorf("%d workers were killed before it was over", n)
	}
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if sweepTable(t, spec, data) != localTable(t, spec) {
		t.Error("another table than a local run's")
	}
	landedOnce(t, data, 120)
}

// landedOnce counts rows on the disk.
func landedOnce(t *testing.T, data string, want int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	if n != want {
		t.Errorf("%d rows landed, expected %d", n, want)
	}
}

// TestSweepQueueEmbedded interrupts a sweep with a server of its own, which goes
// on from there.
func TestSweepQueueEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	spec, data := writeSpec(t, rehearsalSpec), t.TempDir()
	args := []string{"sweep", "run", spec, "--data", data, "-q", "--nats", "embedded", "--nats-listen", "127.0.0.1:0"}
	interruptAfterRows(t, data, syscall.SIGTERM, args...)
	if code, _, stderr := calampRun(t, args...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if sweepTable(t, spec, data) != localTable(t, spec) {
		t.Error("another table than a local run's")
	}
}

// interruptAfterRows runs the command until it has written some rows, sends a
// signal, and requires the exit code of an interrupted run. SIGKILL has none.
func interruptAfterRows(t *testing.T, data string, signal syscall.Signal, args ...string) {
	t.Helper()
	before := rowBytes(data)
	c := calampProcess(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for rowBytes(data) < before+1000 {
		time.Sleep(5 * time.Millisecond)
	}
	if err := c.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok || signal != syscall.SIGKILL && failed.ExitCode() != console.Interrupted {
		t.Fatalf("after %v: %v", signal, err)
	}
}

func rowBytes(data string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(data, "*.jsonl"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}

// TestSweepKilled kills a local run six times, in each way there is.
func TestSweepKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	spec, data := writeSpec(t, rehearsalSpec), t.TempDir()
	args := []string{"sweep", "run", spec, "--data", data, "-q", "--workers", "2"}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP} {
		if signal == syscall.SIGHUP && ossignal.Ignored(signal) {
			continue // the tests run under nohup
		}
		interruptAfterRows(t, data, signal, args...)
	}
	if code, _, stderr := calampRun(t, args...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if sweepTable(t, spec, data) != localTable(t, spec) {
		t.Error("another table than an undisturbed run's")
	}
}

// BenchmarkSweep measures what engines add to 1,000 points of 20 ms on two
// workers: wall time beyond the work's, in percent. Run it with -benchtime 1x.
func BenchmarkSweep(b *testing.B) {
	spec := filepath.Join(b.TempDir(), "overhead.toml")
	text := strings.Replace(strings.Replace(rehearsalSpec, "0.1, 0.2, 0.3", "0.1", 1), "seeds = 40", "seeds = 1000", 1)
	if err := os.WriteFile(spec, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	engines := map[string][]string{
		"local": {"--workers", "2"},
		"nats":  {"--workers", "2", "--nats", "embedded", "--nats-listen", "127.0.0.1:0"},
	}
	for name, flags := range engines {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				data := filepath.Join(b.TempDir(), fmt.Sprint(i))
				start := time.Now()
				args := append([]string{"sweep", "run", spec, "--data", data, "-q"}, flags...)
				if code := command.Run(args, strings.NewReader(""), os.Stdout, os.Stderr); code != 0 {
					b.Fatalf("exit %d", code)
				}
				took, work := time.Since(start).Seconds(), 0.0
				rows, _, err := sweep.Store{Dir: data}.Rows()
				if err != nil || len(rows) != 1000 {
					b.Fatalf("%d rows, %v", len(rows), err)
				}
				for _, row := range rows {
					work += row.WallS
				}
				b.ReportMetric(100*(took/(work/2)-1), "%overhead")
			}
		})
	}
}

// TestNohup: who has SIGHUP ignored is not ended by it.
func TestNohup(t *testing.T) {
	if _, err := exec.LookPath("nohup"); err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A process is known by its name, which nohup takes from the path.
	link := filepath.Join(t.TempDir(), "calamp")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	spec, data := writeSpec(t, rehearsalSpec), t.TempDir()
	c := exec.Command("nohup", link, "sweep", "run", spec, "--data", data, "-q", "--workers", "2")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for rowBytes(data) < 1000 {
		time.Sleep(5 * time.Millisecond)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestPipeIsNotInspected: a pipe is named, and not waited for.
func TestPipeIsNotInspected(t *testing.T) {
	for _, name := range []string{"P.npz", "S.calamp", "anything"} {
		path := filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Skip(err)
		}
		code, _, stderr := calampRun(t, "inspect", path)
		if code != console.WrongUsage || !strings.Contains(stderr, name+": this is no regular file") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}

// TestPipeAmongRows: what is no regular file is named, and not waited for.
func TestPipeAmongRows(t *testing.T) {
	spec, data := writeSpec(t, rehearsalSpec), t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(data, "rows-1.jsonl"), 0o666); err != nil {
		t.Skip(err)
	}
	for _, what := range []string{"status", "plan", "merge", "run"} {
		code, _, stderr := calampRun(t, "sweep", what, spec, "--data", data)
		if code != 1 || !strings.Contains(stderr, "rows-1.jsonl: this is no regular file") {
			t.Errorf("%s: exit %d: %s", what, code, stderr)
		}
	}
}
