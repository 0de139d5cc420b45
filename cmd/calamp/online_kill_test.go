package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/stream"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// The kill test: calamp online is killed (SIGKILL: no handler runs, nothing is
// flushed) at random moments, started again with the same command, and so on
// until the stream is done. The state must then have the bits of a run that
// was not killed.

// killStream is a stream on disk, and what an uninterrupted run makes of it.
type killStream struct {
	folder   string
	samples  int
	model    []string        // flags
	readings func(k int) any // the readings of a sample, for JSON
	lines    []byte          // all samples as JSON lines
	want     []byte          // the state
}

// fewIterations solve every sample, whether that converges or not: what is tested here is the bookkeeping.
var fewIterations = []string{"--max-iter", "40", "--tol", "0"}

// newKillStream is one of real readings.
func newKillStream(t *testing.T, te teacher.Teacher, flags ...string) *killStream {
	t.Helper()
	te.Signal, te.Gain, te.NoiseVar = prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, channel.Uniform(0.9, 1.1), 1e-6
	in, err := te.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	s := &killStream{
		samples: te.P, model: slices.Concat(flags, []string{"--density", "0.1", "--s-range", "0.9,1.1", "--noise-var", "1e-6"}),
		readings: func(k int) any { return mat.Col(nil, k, in.Y) },
	}
	s.prepare(t, &dataset.Problem{W: in.W, Y: in.Y})
	return s
}

// newComplexKillStream is one of complex readings, whose first samples are kept and solved together.
func newComplexKillStream(t *testing.T, samples int) *killStream {
	t.Helper()
	in, err := teacher.Complex{
		N: 40, M: 36, P: samples, Signal: prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1},
		Gain: channel.ComplexPrior{Lo: 0.9, Hi: 1.1, Concentration: 20}, NoiseVar: 1e-6,
	}.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	s := &killStream{
		samples: samples, model: slices.Concat(fewIterations, []string{"--density", "0.1", "--s-range", "0.9,1.1", "--noise-var", "1e-6", "--phase", "20", "--warm-up", "4"}),
		readings: func(k int) any {
			var pairs [][2]float64
			for mu := range 36 {
				pairs = append(pairs, [2]float64(in.Y.RawRowView(mu)[2*k:]))
			}
			return pairs
		},
	}
	s.prepare(t, &dataset.Problem{W: in.W, Y: in.Y, Complex: true})
	return s
}

// prepare writes the stream, and what an uninterrupted run makes of it.
func (s *killStream) prepare(t *testing.T, p *dataset.Problem) {
	t.Helper()
	s.folder = t.TempDir()
	if err := dataset.Save(s.path("P.npz"), p); err != nil {
		t.Fatal(err)
	}
	for k := range s.samples {
		s.lines = append(s.lines, s.line(t, k)...)
	}
	if err := os.WriteFile(s.path("lines"), s.lines, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := s.start(t, "want.calamp", "--input", "jsonl").Run(); err != nil {
		t.Fatal(err)
	}
	var last int64
	s.want, last = s.state(t, "want.calamp")
	if last != int64(s.samples) {
		t.Fatalf("the uninterrupted run ends at %d", last)
	}
}

func (s *killStream) path(name string) string { return filepath.Join(s.folder, name) }

func (s *killStream) line(t *testing.T, k int) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"seq": k + 1, "y": s.readings(k)})
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// start is the command, this test binary under its name, with the whole stream on
// standard input.
func (s *killStream) start(t *testing.T, state string, source ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{
		"online", s.path("P.npz"), "--state", s.path(state), "--threads", "1", "--quiet",
	}, s.model, source)
	c := exec.Command(self, args...)
	c.Args[0] = "calamp" // as which the test binary is the command
	stdin, err := os.Open(s.path("lines"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	c.Stdin, c.Stderr = stdin, os.Stderr
	return c
}

// state is the bytes of a state, and the last number.
func (s *killStream) state(t *testing.T, name string) ([]byte, int64) {
	t.Helper()
	store, err := online.OpenStore(s.path(name), nil, &online.StoreOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	saved, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := saved.State.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b, saved.Sequence
}

// survive runs the command until the stream is done, with at most so many kills.
// The lives' lengths are random, so that kills fall into the start, the
// creation of the state, solving, committing and acknowledging.
func (s *killStream) survive(t *testing.T, r *rand.Rand, most int, name string, source ...string) (kills int) {
	t.Helper()
	for kills < most {
		var out bytes.Buffer
		c := s.start(t, name, source...)
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(time.Duration(r.ExpFloat64()*float64(meanLife)), func() { c.Process.Kill() })
		err := c.Wait()
		killer.Stop()
		s.checkLines(t, out.Bytes())
		if err == nil {
			return kills
		}
		if kills > 0 && exitCode(err) == console.WrongUsage {
			return kills // killed after the last commit: there is nothing new, which expect verifies
		}
		if exitCode(err) != -1 {
			t.Fatalf("after %d kills: %v", kills, err)
		}
		kills++
	}
	if err := s.start(t, name, source...).Run(); err != nil && exitCode(err) != console.WrongUsage {
		t.Fatalf("after %d kills: %v", kills, err)
	}
	return kills
}

// meanLife is about that of a start and a dozen samples.
const meanLife = 120 * time.Millisecond

// checkLines: what one life prints is in order, without a repetition. The last
// line may be cut.
func (s *killStream) checkLines(t *testing.T, out []byte) {
	t.Helper()
	previous := int64(-1)
	for _, raw := range bytes.SplitAfter(out, []byte("\n")) {
		var l stream.Line
		if !bytes.HasSuffix(raw, []byte("\n")) {
			continue
		}
		if err := json.Unmarshal(raw, &l); err != nil || l.Seq == nil || previous >= 0 && *l.Seq != previous+1 {
			t.Fatalf("line %s after sample %d; %v", raw, previous, err)
		}
		previous = *l.Seq
	}
}

func (s *killStream) expect(t *testing.T, name string) {
	t.Helper()
	got, last := s.state(t, name)
	if last != int64(s.samples) || !bytes.Equal(got, s.want) {
		t.Errorf("after the last sample, %d, the state differs from the uninterrupted run's", last)
	}
}

func TestKill(t *testing.T) {
	tests.Long(t)
	most, samples := 10, 60
	if *tables.Long {
		most, samples = 200, 2000
	} else if testing.Short() {
		most, samples = 4, 30
	}
	s, z := newKillStream(t, teacher.Teacher{N: 64, M: 48, P: samples}, fewIterations...), newComplexKillStream(t, samples/4)
	// Each source in rounds, until it has seen the kills that were asked for.
	for name, round := range map[string]func(t *testing.T, r *rand.Rand, most int, state string) int{
		"stdin":     s.roundStdin,
		"jetstream": s.roundJetStream,
		"embedded":  s.roundEmbedded,
		"complex":   z.roundStdin,
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, uint64(len(name))))
			kills, rounds, start := 0, 0, time.Now()
			for ; kills < most; rounds++ {
				state := fmt.Sprintf("%s-%d.calamp", name, rounds)
				kills += round(t, r, most-kills, state)
				of := s
				if name == "complex" {
					of = z
				}
				of.expect(t, state)
			}
			t.Logf("%d kills in %d runs through %d samples, %v: the state is bit-identical", kills, rounds, samples, time.Since(start).Round(time.Millisecond))
		})
	}
}

// TestKillVector kills a stream behind a W of condition 100, which vector AMP solves with a decomposition
// that is kept in a file from the first life that has time for it.
func TestKillVector(t *testing.T) {
	most, te := 6, teacher.Teacher{N: 64, M: 56, P: 20}
	if *tables.Long {
		most, te = 100, teacher.Teacher{N: 250, M: 200, P: 50}
	} else if testing.Short() {
		most, te.P = 3, 12
	}
	if err := te.Matrix.UnmarshalText([]byte("condition:100")); err != nil {
		t.Fatal(err)
	}
	s := newKillStream(t, te)
	var report struct {
		Committed int `json:"committed"`
	}
	out, err := s.start(t, "report.calamp", "--json", "--spectrum-cache", s.path("W.npz")).Output()
	_, missing := os.Stat(s.path("W.npz")) // which AMP would not write
	if err := errors.Join(err, json.Unmarshal(out, &report), missing); err != nil || report.Committed < te.P*9/10 {
		t.Fatalf("%+v of %d samples, %v", report, te.P, err)
	}
	r := rand.New(rand.NewPCG(11, 100))
	kills, rounds := 0, 0
	for ; kills < most; rounds++ {
		state := fmt.Sprintf("vector-%d.calamp", rounds)
		kills += s.survive(t, r, most-kills, state, "--spectrum-cache", s.path(fmt.Sprintf("spectrum-%d.npz", rounds)))
		s.expect(t, state)
	}
	t.Logf("%d kills in %d runs through %d samples: the state is bit-identical", kills, rounds, te.P)
}

func (s *killStream) roundStdin(t *testing.T, r *rand.Rand, most int, state string) int {
	return s.survive(t, r, most, state, "--input", "jsonl")
}

// roundJetStream has the broker in this process, which is not killed; results
// must be there once each, too.
func (s *killStream) roundJetStream(t *testing.T, r *rand.Rand, most int, state string) int {
	e := s.fill(t, s.path(state+".server"))
	defer e.Close()
	if err := e.EnsureStream(t.Context(), "R", "results", intake.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	kills := s.survive(t, r, most, state, "--nats", e.URL(), "--nats-token", e.Token(), "--stream", "S", "--drain", "--results", "results")
	s.expectResults(t, e)
	return kills
}

// roundEmbedded kills the broker together with the command.
func (s *killStream) roundEmbedded(t *testing.T, r *rand.Rand, most int, state string) int {
	s.fill(t, s.path(state+".jetstream")).Close()
	return s.survive(t, r, most, state, "--nats", "embedded", "--nats-listen", "127.0.0.1:0", "--nats-keep", "100", "--stream", "S", "--subject", "samples", "--drain")
}

// fill is a server whose stream S holds all samples.
func (s *killStream) fill(t *testing.T, folder string) *intake.Embedded {
	t.Helper()
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{Folder: folder, Address: "127.0.0.1:0", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.EnsureStream(t.Context(), "S", "samples", intake.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	for k := range s.samples {
		if err := e.Publish(t.Context(), "samples", fmt.Sprint(k), s.line(t, k)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// expectResults: one result for each sample, in order.
func (s *killStream) expectResults(t *testing.T, e *intake.Embedded) {
	t.Helper()
	nc, err := nats.Connect(e.URL(), nats.Token(e.Token()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	results, err := js.Stream(t.Context(), "R")
	if err != nil {
		t.Fatal(err)
	}
	if n := results.CachedInfo().State.Msgs; n != uint64(s.samples) {
		t.Errorf("%d results of %d samples", n, s.samples)
	}
	for k := range s.samples {
		m, err := results.GetMsg(t.Context(), uint64(k+1))
		if err != nil {
			t.Fatal(err)
		}
		var l stream.Line
		if err := json.Unmarshal(m.Data, &l); err != nil || *l.Seq != int64(k+1) {
			t.Fatalf("result %d: %s, %v", k+1, m.Data, err)
		}
	}
}
