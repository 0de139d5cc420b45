package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
)

// fedStream is calamp online as a process, which is given samples one by one.
type fedStream struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
	stderr bytes.Buffer
}

func feed(t *testing.T, args ...string) *fedStream {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &fedStream{cmd: exec.Command(self, append([]string{"online", "--density", "0.1", "--noise-var", "1e-6", "--input", "jsonl"}, args...)...)}
	s.cmd.Args[0] = "calamp"
	s.cmd.Stderr = &s.stderr
	s.stdin, err = s.cmd.StdinPipe()
	out, errOut := s.cmd.StdoutPipe()
	if err := errors.Join(err, errOut, s.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewReader(out)
	t.Cleanup(func() { s.cmd.Process.Kill() })
	return s
}

// take gives a sample and returns its line, after its commit.
func (s *fedStream) take(t *testing.T, sequence int, y []float64) string {
	t.Helper()
	if _, err := s.stdin.Write(encodeSample(sequence, y, "jsonl")); err != nil {
		t.Fatal(err)
	}
	line, err := s.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("sample %d: %v", sequence, err)
	}
	return line
}

// end waits for the process, but not for ever.
func (s *fedStream) end(t *testing.T) (code int, stderr string) {
	t.Helper()
	s.stdin.Close()
	hangs := time.AfterFunc(time.Minute, func() { s.cmd.Process.Kill() })
	io.Copy(io.Discard, s.lines)
	err := s.cmd.Wait()
	if !hangs.Stop() {
		t.Fatal("the process does not end")
	}
	return exitCode(err), s.stderr.String()
}

// TestStateChangedUnderAStream: what something else does to the state file ends the run with exit code 1 and words, and what was
// learned is kept in a copy.
func TestStateChangedUnderAStream(t *testing.T) {
	folder := t.TempDir()
	problem, y := smallStream(t, folder, 4)
	for name, do := range map[string]func(state string) error{
		"deleted": os.Remove,
		"replaced": func(state string) error {
			return errors.Join(os.Remove(state), os.WriteFile(state, []byte("x"), 0o666))
		},
		"cut short": func(state string) error { return os.Truncate(state, 4096) },
		"emptied":   func(state string) error { return os.Truncate(state, 0) },
		"overwritten": func(state string) error {
			content, err := os.ReadFile(state)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(state, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write(bytes.Repeat([]byte{0xA5}, len(content)))
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "S.calamp")
			s := feed(t, problem, "--state", state, "--checkpoint", "end", "-o", filepath.Join(t.TempDir(), "R.npz"))
			for k := range 3 {
				s.take(t, k+1, mat.Col(nil, k, y))
			}
			if err := do(state); err != nil {
				t.Skip("SKIPPED: not on this system: ", err)
			}
			s.stdin.Write(encodeSample(4, mat.Col(nil, 3, y), "jsonl"))
			code, stderr := s.end(t)
			if code != 1 || !strings.Contains(stderr, "changed by something else while it was in use") || !strings.Contains(stderr, "the state after sample 3 is kept in "+state+".rescued") ||
				strings.Count(stderr, "kept in") != 1 || strings.Contains(stderr, "goroutine") {
				t.Errorf("exit %d: %s", code, stderr)
			}
			if _, last, err := stateBytes(state + ".rescued"); err != nil || last != 3 {
				t.Errorf("the copy is of sample %d: %v", last, err)
			}
		})
	}
}

// TestGlitchLeavesStateAndCheckpoints: a sample with readings that no arithmetic survives is answered, teaches nothing, and the
// state and its checkpoints go on.
func TestGlitchLeavesStateAndCheckpoints(t *testing.T) {
	tests.Long(t)
	folder := t.TempDir()
	problem, y := smallStream(t, folder, 10)
	for k, glitch := range []struct {
		size  float64
		count int
	}{{1e155, 1}, {-1e200, 1}, {1e200, 56}, {1e308, 8}, {5e-324, 56}} {
		state := filepath.Join(folder, fmt.Sprintf("S%d.calamp", k))
		good := feed(t, problem, "--state", state, "--checkpoint", "good")
		for k := range 8 {
			good.take(t, k+1, mat.Col(nil, k, y))
		}
		if code, stderr := good.end(t); code != 0 {
			t.Fatal(stderr)
		}
		bad := mat.Col(nil, 8, y)
		for mu := range glitch.count {
			bad[mu] = glitch.size
		}
		s := feed(t, problem, "--state", state)
		line := s.take(t, 9, bad)
		if all := glitch.count == 56; strings.Contains(line, `"committed":true`) == all || !all && !strings.Contains(line, `"masked":[0`) {
			t.Errorf("%v: %s", glitch, line)
		}
		if line := s.take(t, 10, mat.Col(nil, 9, y)); !strings.Contains(line, `"committed":true`) {
			t.Errorf("%v: the sample after it: %s", glitch, line)
		}
		s.end(t)
		for _, args := range [][]string{{"inspect", state}, {"online", "--state", state, "--rollback", "good"}, {"inspect", state}} {
			if code, _, stderr := calampRun(t, args...); code != 0 {
				t.Errorf("%v: %v: exit %d: %s", glitch, args[0], code, stderr)
			}
		}
		if _, last, err := stateBytes(state); err != nil || last != 8 {
			t.Errorf("%v: after the rollback the last sample is %d: %v", glitch, last, err)
		}
	}
}

// TestDamagedStateGoesBack: of a state of which only the present one is damaged a checkpoint is left.
func TestDamagedStateGoesBack(t *testing.T) {
	folder := t.TempDir()
	problem, _ := smallStream(t, folder, 4)
	state := filepath.Join(folder, "S.calamp")
	for _, args := range [][]string{{"--limit", "2", "--checkpoint", "good"}, {}} {
		if code, _, stderr := calampRun(t, append([]string{"online", problem, "--density", "0.1", "--noise-var", "1e-6", "--state", state}, args...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	store, err := online.OpenStore(state, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := store.Load()
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	record, err := saved.State.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; { // the present state, and what is left of it in free pages
		next := bytes.Index(content[at:], record)
		if next < 0 {
			break
		}
		at += next + len(record)
		content[at-10] ^= 1
	}
	if err := os.WriteFile(state, content, 0o666); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := calampRun(t, "inspect", state)
	if code != 2 || !strings.Contains(stderr, "state rollback FILE NAME goes back to a checkpoint, of which these are sound: good") {
		t.Errorf("inspect: exit %d: %s", code, stderr)
	}
	code, _, stderr = calampRun(t, "online", "--state", state, "--rollback", "good")
	if code != 0 || !strings.Contains(stderr, "the state before was damaged, and is gone") {
		t.Errorf("rollback: exit %d: %s", code, stderr)
	}
	if _, last, err := stateBytes(state); err != nil || last != 2 {
		t.Errorf("the last sample is %d: %v", last, err)
	}
}
