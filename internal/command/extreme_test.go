package command

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
)

// patience is how long a command may take that takes a tenth of a second on an idle machine.
const patience = 30 * time.Second

// ends runs the command, and fails the test where it does not end.
func ends(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- Run(args, strings.NewReader(""), &out, &errs) }()
	select {
	case code = <-done:
		return code, out.String(), errs.String()
	case <-time.After(patience):
		t.Fatalf("calamp %s does not end", strings.Join(args, " "))
		return 0, "", ""
	}
}

// notYetInfinite stands for a reading that is made infinite in the file.
const notYetInfinite = 1.2345e67

// makeInfinite makes readings of a file infinite that are [notYetInfinite].
func makeInfinite(t *testing.T, path string) {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		bits := func(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
		to, err := w.Create(f.Name)
		if err == nil {
			_, err = to.Write(bytes.ReplaceAll(data, bits(notYetInfinite), bits(math.Inf(1))))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// leftOut reports whether a reading is among the outlying ones, or its sensor among the broken ones.
func leftOut(t *testing.T, stdout string, sensor, signal int) bool {
	t.Helper()
	var said struct {
		Broken   []struct{ Sensor int } `json:"broken_sensors"`
		Outlying [][2]int               `json:"outlying_readings"`
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatal(err, stdout)
	}
	return slices.Contains(said.Outlying, [2]int{sensor, signal}) || slices.Contains(said.Broken, struct{ Sensor int }{sensor})
}

// TestExtremeReadings: readings of any size, one or all of them, are refused or left out, or the run says that it did not converge; no
// run is endless, none is a fault, and the state of a stream can be opened.
func TestExtremeReadings(t *testing.T) {
	tests.Long(t)
	folder := t.TempDir()
	file, state := filepath.Join(folder, "P.npz"), filepath.Join(folder, "S.calamp")
	values := []float64{1e30, -1e30, 1e-30, 1e150, -1e155, 1e-150, 1e300, 1e-300, math.MaxFloat64, 5e-324, 1e-310, math.NaN(), math.Inf(1)}
	count := 0
	for at, kind := range []struct{ make, solve []string }{
		{make: nil, solve: nil},
		{make: []string{"--offset", "0.3"}, solve: []string{"--offset", "auto"}},
		{make: []string{"--offset", "0.3"}, solve: []string{"--offset", "0.3", "--s-range", "0.8,1.2", "--noise-var", "1e-4", "--density", "0.2"}},
		{make: []string{"--complex"}, solve: []string{"--phase", "10", "--s-range", "0.8,1.2"}},
	} {
		base := append([]string{"simulate", "--n", "6", "--m", "10", "--p", "4", "--s-range", "0.8,1.2", "--noise-var", "1e-4", "-q", "-o", file}, kind.make...)
		if code, _, stderr := ends(t, base...); code != 0 {
			t.Fatal(stderr)
		}
		for _, all := range []bool{false, true} {
			for j, v := range values {
				if !*tables.Long && (at+j)%2 > 0 { // half of the values each
					continue
				}
				problem, err := dataset.Load(file)
				if err != nil {
					t.Fatal(err)
				}
				raw := problem.Y.RawMatrix().Data
				wanted := v
				if math.IsInf(v, 0) {
					v = notYetInfinite // no problem of ours has it
				}
				for j := range raw {
					if all && wanted == v && !math.IsInf(v*raw[j], 0) {
						raw[j] *= v
					} else if all && wanted != v {
						raw[j] = v
					}
				}
				if !all {
					raw[3*problem.Y.RawMatrix().Cols+2] = v
				}
				extreme := filepath.Join(folder, "E.npz")
				if err := dataset.Save(extreme, problem); err != nil {
					t.Fatal(err)
				}
				if math.IsInf(wanted, 0) {
					makeInfinite(t, extreme)
				}
				for _, command := range []string{"solve", "online"} {
					count++
					args := append([]string{command, extreme, "-q", "--json", "--max-iter", "50"}, kind.solve...)
					if command == "online" {
						os.Remove(state)
						args = append(args, "--state", state)
					}
					what := fmt.Sprintf("%s %s, all %t, %g", command, strings.Join(args[6:], " "), all, wanted)
					begun := time.Now()
					code, stdout, stderr := ends(t, args...)
					if took := time.Since(begun); took > 2*time.Second {
						t.Logf("%s: %v", what, took)
					}
					if math.IsInf(wanted, 0) && command == "solve" && code != console.WrongUsage {
						t.Errorf("%s: exit %d", what, code)
					}
					if !all && command == "solve" && code == 0 && math.Abs(v) >= 1e30 && !leftOut(t, stdout, 3, 2) {
						t.Errorf("%s: the reading is neither outlying nor one of a broken sensor", what)
					}
					if code != 0 && code != console.WrongUsage && code != console.NotConverged {
						t.Errorf("%s: exit %d, %s", what, code, stderr)
					}
					if command == "solve" && code == console.WrongUsage && !strings.Contains(stderr, "expected") && !strings.Contains(stderr, "recovered") {
						t.Errorf("%s: refused without saying what was expected: %s", what, stderr)
					}
					if _, err := os.Stat(state); command == "online" && err == nil {
						if code, _, stderr := ends(t, "inspect", state); code != 0 {
							t.Errorf("%s: the state cannot be opened: %s", what, stderr)
						}
					}
				}
			}
		}
	}
	if count < 95 {
		t.Errorf("%d combinations", count)
	}
}

// TestExtremeFlags: numbers that no arithmetic is for are refused by the flag that has them, with what it expects.
func TestExtremeFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "P.npz")
	if code, _, stderr := ends(t, "simulate", "--n", "10", "--m", "14", "--p", "5", "-q", "-o", file); code != 0 {
		t.Fatal(stderr)
	}
	both := []string{"solve", "online"}
	for _, c := range []struct {
		flag     string
		values   []string
		commands []string
	}{
		{"--noise-var", []string{"1e300", "1e-300", "1e160", "nan", "inf"}, both},
		{"--signal-var", []string{"1e300", "1e-300", "1e-320"}, both},
		{"--signal-mean", []string{"1e300", "-1e100", "1e-300"}, both},
		{"--density", []string{"1e-300", "1e-320"}, both},
		{"--s-range", []string{"1e-300,1e300", "1e200,1e201", "1e-320,1", "0.5,inf"}, both},
		{"--s-mean", []string{"1e300", "1e-300"}, both},
		{"--s-sd", []string{"1e300", "1e-300"}, both},
		{"--offset", []string{"1e300", "1e-300", "inf", "nan"}, both},
		{"--outliers", []string{"1e-300", "1", "nan"}, both},
		{"--faulty", []string{"1e-300", "1", "nan"}, both[:1]},
		{"--saturation", []string{"1e300", "1e-300", "inf"}, both[:1]},
		{"--quantised", []string{"1e300", "1e-300", "inf", "0", "nan"}, both[:1]},
		{"--counts", []string{"1e300", "1e-300", "inf", "0", "nan"}, both[:1]},
		{"--sign", []string{"1e300", "1e-300", "inf", "nan"}, both[:1]},
		{"--anchor", []string{"mean=1e300", "mean=1e-300", "sensor=0:1e300"}, both},
		{"--phase", []string{"1e300", "1e-300"}, both},
		{"--component", []string{"0.1,1e300,1", "0.1,0,1e-300", "1e-300,0,1"}, both[:1]},
		{"--tol", []string{"1e-300", "1e300", "nan"}, both},
	} {
		for _, command := range c.commands {
			for _, value := range c.values {
				code, _, stderr := ends(t, command, file, "-q", c.flag, value)
				if code != console.WrongUsage || !strings.HasPrefix(stderr, fmt.Sprintf("calamp: %s %q: expected ", c.flag, value)) {
					t.Errorf("%s %s %s: exit %d, %s", command, c.flag, value, code, stderr)
				}
			}
		}
	}
}
