package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/command"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/online"
)

func TestOnlineScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/online",
		ContinueOnError: true,
		Setup: func(e *testscript.Env) error {
			// The problem that most scripts begin with.
			code := command.Run([]string{
				"simulate", "--n", "64", "--m", "56", "--p", "8", "--seed", "3", "--density", "0.1", "--noise-var", "1e-6",
				"-q", "-o", filepath.Join(e.WorkDir, "P.npz"),
			}, nil, io.Discard, os.Stderr)
			if code != 0 {
				return fmt.Errorf("simulate: exit %d", code)
			}
			e.Setenv("MODEL", "--density=0.1 --s-range=0.95,1.05 --noise-var=1e-6 --signal-mean=0 --signal-var=1")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     cmdExits,
			"finite":    cmdFinite,
			"json":      cmdJSON,
			"line":      cmdLine,
			"cut":       cmdCut,
			"flip":      cmdFlip,
			"mkproblem": cmdMkproblem,
			"mkstream":  cmdMkstream,
			"samestate": cmdSameState,
			"shape":     cmdShape,
			"online":    cmdOnline,
			"hold":      cmdHold,
		},
	})
}

// cmdOnline is "online CODE args…": calamp online with the model of the scripts'
// problem, which must exit with the code.
func cmdOnline(ts *testscript.TestScript, neg bool, args []string) {
	cmdExits(ts, neg, append([]string{args[0], "calamp", "online"}, append(strings.Fields(ts.Getenv("MODEL")), args[1:]...)...))
}

// cmdLine is "line FILE K path op value": cmdJSON on line K, from 1, or the last
// one, -1.
func cmdLine(ts *testscript.TestScript, neg bool, args []string) {
	all := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	k, err := strconv.Atoi(args[1])
	ts.Check(err)
	if k < 0 {
		k += len(all) + 1
	}
	if k < 1 || k > len(all) {
		ts.Fatalf("%s has %d lines", args[0], len(all))
	}
	ts.Check(os.WriteFile(ts.MkAbs(".line"), []byte(all[k-1]), 0o666))
	cmdJSON(ts, neg, append([]string{".line"}, args[2:]...))
}

// cmdFlip is "flip FILE BYTE": one bit of that byte.
func cmdFlip(ts *testscript.TestScript, _ bool, args []string) {
	content, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	content[at] ^= 16
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o666))
}

// cmdMkstream is "mkstream FILE P.npz jsonl|f4|f8": the columns of Y as a stream.
func cmdMkstream(ts *testscript.TestScript, _ bool, args []string) {
	p, err := dataset.Load(ts.MkAbs(args[1]))
	ts.Check(err)
	var b []byte
	_, samples := p.Y.Dims()
	for k := range samples {
		b = append(b, encodeSample(k+1, mat.Col(nil, k, p.Y), args[2])...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
}

func encodeSample(sequence int, y []float64, form string) (b []byte) {
	if form == "jsonl" {
		b = fmt.Appendf(b, `{"seq":%d,"y":[`, sequence)
	}
	for mu, v := range y {
		switch {
		case form == "f4":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case form == "f8":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		default:
			if mu > 0 {
				b = append(b, ',')
			}
			if math.IsNaN(v) {
				b = append(b, "null"...)
			} else {
				b = strconv.AppendFloat(b, v, 'g', -1, 64)
			}
		}
	}
	if form == "jsonl" {
		b = append(b, "]}\n"...)
	}
	return b
}

func stateBytes(path string) ([]byte, int64, error) {
	store, err := online.OpenStore(path, nil, &online.StoreOptions{ReadOnly: true})
	if err != nil {
		return nil, 0, err
	}
	defer store.Close()
	saved, err := store.Load()
	if err != nil || saved.State == nil {
		return nil, saved.Sequence, err
	}
	b, err := saved.State.MarshalBinary()
	return b, saved.Sequence, err
}

// cmdSameState is "samestate A B": what was learned has the same bits.
func cmdSameState(ts *testscript.TestScript, neg bool, args []string) {
	a, lastA, err := stateBytes(ts.MkAbs(args[0]))
	ts.Check(err)
	b, lastB, err := stateBytes(ts.MkAbs(args[1]))
	ts.Check(err)
	if same := bytes.Equal(a, b) && lastA == lastB; same == neg {
		ts.Fatalf("the same: %t; last numbers %d and %d", same, lastA, lastB)
	}
}

// cmdShape is "shape FILE array 64x8".
func cmdShape(ts *testscript.TestScript, _ bool, args []string) {
	a, err := dataset.LoadArray(ts.MkAbs(args[0]), args[1])
	ts.Check(err)
	if got := strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Shape), " ", "x"), "[]"); got != args[2] {
		ts.Fatalf("%s is %s, expected %s", args[1], got, args[2])
	}
}

// cmdHold is "hold S.calamp command…": the command while this process has the
// state open.
func cmdHold(ts *testscript.TestScript, neg bool, args []string) {
	store, err := online.OpenStore(ts.MkAbs(args[0]), nil, nil)
	ts.Check(err)
	defer store.Close()
	switch args[1] {
	case "online":
		cmdOnline(ts, neg, args[2:])
	default:
		cmdExits(ts, neg, args[2:])
	}
}

// TestBareOnline compares the published recursion, three iterations a sample,
// with an independent implementation.
func TestBareOnline(t *testing.T) {
	cases := []struct{ file, density, sRange, noise string }{
		{"trace_small", "0.25", "0.9,1.1", "1e-6"},
		{"trace_mid", "0.20", "0.95,1.05", "1e-8"},
	}
	for _, c := range cases {
		golden := filepath.Join("..", "..", "testdata", c.file+".npz")
		out := filepath.Join(t.TempDir(), "R.npz")
		code, _, stderr := calampRun(t, "online", golden, "-o", out,
			"--commit", "always", "--damping", "0", "--no-scale-step", "--tol", "0", "--max-iter", "3",
			"--density", c.density, "--s-range", c.sRange, "--noise-var", c.noise)
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", c.file, code, stderr)
		}
		for ours, theirs := range map[string]string{"x": "online3_x", "s": "online3_s", "s_var": "online3_svar"} {
			if worst := relativeError(t, out, ours, golden, theirs); worst > 1e-9 {
				t.Errorf("%s: %s differs by %.2g", c.file, theirs, worst)
			}
		}
	}
}

// child is the command as a process of its own.
type child struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout bytes.Buffer
	notes  *bytes.Buffer
}

func startChild(t *testing.T, until string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(self, append([]string{"online", "--density", "0.1", "--noise-var", "1e-6"}, args...)...), notes: &bytes.Buffer{}}
	c.Args[0] = "calamp"
	c.Stdout = &c.stdout
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	c.readNotes(t, pipe, until)
	return c
}

// readNotes waits until the process has said so much, and keeps reading.
func (c *child) readNotes(t *testing.T, pipe io.Reader, until string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(c.notes.String(), until) {
		n, err := pipe.Read(buffer)
		c.notes.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%v: %s", err, c.notes)
		}
	}
	go io.Copy(io.Discard, pipe)
}

func (c *child) address(t *testing.T) string {
	t.Helper()
	_, rest, ok := strings.Cut(c.notes.String(), "http://")
	if !ok {
		t.Fatal(c.notes)
	}
	address, _, _ := strings.Cut(rest, "/")
	return "http://" + address
}

func (c *child) get(t *testing.T, path string) string {
	t.Helper()
	answer, err := http.Get(c.address(t) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not seen: ", what)
		}
	}
}

func exitCode(err error) int {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	return 0
}

func smallStream(t *testing.T, folder string, samples int) (problem string, y *mat.Dense) {
	t.Helper()
	problem = filepath.Join(folder, "P.npz")
	code, _, stderr := calampRun(t, "simulate", "--n", "64", "--m", "56", "--p", fmt.Sprint(samples), "--density", "0.1", "--noise-var", "1e-6", "-o", problem)
	if code != 0 {
		t.Fatal(stderr)
	}
	p, err := dataset.Load(problem)
	if err != nil {
		t.Fatal(err)
	}
	return problem, p.Y
}

// TestSignal: what there is, is written.
func TestSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal == syscall.SIGHUP && ossignal.Ignored(signal) {
			continue // the tests run under nohup
		}
		folder := t.TempDir()
		problem, y := smallStream(t, folder, 4)
		state, out := filepath.Join(folder, "S.calamp"), filepath.Join(folder, "R.npz")
		c := startChild(t, "/posterior", problem, "--input", "jsonl", "--state", state, "-o", out, "--http", "127.0.0.1:0", "--checkpoint", "end")
		for k := range 3 {
			c.stdin.Write(encodeSample(k+1, mat.Col(nil, k, y), "jsonl"))
		}
		eventually(t, "three samples", func() bool { return strings.Contains(c.get(t, "/healthz"), `"last_seq":3`) })
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(c.Wait()); code != 130 {
			t.Errorf("%v: exit %d", signal, code)
		}
		res, err := dataset.LoadResult(out)
		if err != nil {
			t.Fatal(err)
		}
		if _, p := res.X.Dims(); p != 3 {
			t.Errorf("%d samples written", p)
		}
		store, err := online.OpenStore(state, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		all, err := store.Checkpoints()
		if err != nil || all["end"].Sequence != 3 {
			t.Errorf("checkpoints %+v, %v", all, err)
		}
	}
}

// TestEmbeddedStream: another process publishes into the command's own server,
// every line is a result there, and the numbers are to be seen over HTTP.
func TestEmbeddedStream(t *testing.T) {
	folder := t.TempDir()
	problem, y := smallStream(t, folder, 5)
	c := startChild(t, "takes samples", problem, "--nats", "embedded", "--nats-listen", "127.0.0.1:0", "--stream", "lab", "--input", "f8", "--results", "lab.results",
		"--state", filepath.Join(folder, "S.calamp"), "--http", "127.0.0.1:0", "--limit", "5")
	_, rest, _ := strings.Cut(c.notes.String(), "NATS on ")
	url, _, _ := strings.Cut(rest, ": stream")
	token, err := os.ReadFile(filepath.Join(folder, "S.calamp.jetstream", intake.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	access := intake.Access{Token: strings.TrimSpace(string(token))}
	eventually(t, "the server", func() bool {
		b, err := intake.Connect(url, access)
		if err != nil {
			return false
		}
		defer b.Close()
		for k := range 4 {
			if err := b.Publish(t.Context(), "lab.samples", fmt.Sprint(k), encodeSample(0, mat.Col(nil, k, y), "f8")); err != nil {
				return false
			}
		}
		return true
	})
	eventually(t, "four samples", func() bool { return strings.Contains(c.get(t, "/metrics"), "calamp_samples_total 4") })
	var posterior struct {
		LastSeq int64     `json:"last_seq"`
		S       []float64 `json:"s"`
	}
	if err := json.Unmarshal([]byte(c.get(t, "/posterior")), &posterior); err != nil || posterior.LastSeq != 4 || len(posterior.S) != 56 {
		t.Errorf("%+v, %v", posterior, err)
	}
	b, err := intake.Connect(url, access)
	if err != nil {
		t.Fatal(err)
	}
	results, err := b.Source(t.Context(), intake.StreamOptions{Stream: "lab-results", Durable: "d", Form: intake.Form{Sensors: 56}, Numbering: intake.Numbering{After: -1}, Drain: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for ; ; seen++ { // they are no samples, so all are refused
		if _, err := results.Next(t.Context()); errors.Is(err, io.EOF) {
			break
		}
	}
	if seen != 4 {
		t.Errorf("%d results", seen)
	}
	results.Close()
	if err := b.Publish(t.Context(), "lab.samples", "4", encodeSample(0, mat.Col(nil, 4, y), "f8")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, c.notes)
	}
	if lines := strings.Count(c.stdout.String(), "\n"); lines != 5 {
		t.Errorf("%d lines", lines)
	}
}
