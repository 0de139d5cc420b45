//go:build mpi && linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// These tests run the command under the mpirun of Debian's Open MPI and MPICH, on the loopback;
// .ci/mpi installs both.

// launchers start ranks, with more of them than cores.
var launchers = map[string][]string{
	"Open MPI": {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"},
	"MPICH":    {"mpirun.mpich"},
}

// everywhere calls test for every MPI that is there.
func everywhere(t *testing.T, test func(t *testing.T, mpirun []string)) {
	for name, mpirun := range launchers {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(mpirun[0]); err != nil {
				t.Skip(err)
			}
			test(t, mpirun)
		})
	}
}

// built is the command with the given build tags.
func built(t *testing.T, tags string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calamp")
	cmd := exec.Command("go", "build", "-tags", tags, "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// ended is how a job of mpirun did.
type ended struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func launch(t *testing.T, words ...string) ended {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(start)}
}

// shareMPI has rows of in read with few sensors, whose rows different ranks have.
func shareMPI(in *teacher.Instance, sensors int) (ids []int) {
	m, p := in.Y.Dims()
	for mu := range m {
		ids = append(ids, mu*7%sensors)
		for k := range p {
			in.Y.Set(mu, k, in.Y.At(mu, k)*in.Truth.S[mu]/in.Truth.S[ids[mu]])
		}
	}
	return ids
}

// saveMPIProblem writes P.npz, S.npz with sensors of several rows, and W.npy and Y.npy, of n entries a signal into a folder.
func saveMPIProblem(t *testing.T, folder string, n int) {
	t.Helper()
	in, err := teacher.Teacher{
		N: n, M: 123, P: 4, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4,
	}.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	in.Y.Set(7, 1, 9)
	in.Y.Set(7, 2, -8)
	if err := dataset.Save(filepath.Join(folder, "P.npz"), &dataset.Problem{W: in.W, Y: in.Y}); err != nil {
		t.Fatal(err)
	}
	shared := &teacher.Instance{W: in.W, Y: mat.DenseCopyOf(in.Y), Truth: in.Truth}
	ids := shareMPI(shared, 41)
	if err := dataset.Save(filepath.Join(folder, "S.npz"), &dataset.Problem{W: in.W, Y: shared.Y, Sensors: ids}); err != nil {
		t.Fatal(err)
	}
	w := mat.NewDense(123, n, nil)
	for mu := range 123 {
		in.W.RowInto(w.RawRowView(mu), mu)
	}
	for name, a := range map[string]*mat.Dense{"W": w, "Y": in.Y} {
		rows, columns := a.Dims()
		array := &dataset.Array{Info: dataset.Info{Name: name, Shape: []int{rows, columns}}, Data: a.RawMatrix().Data}
		if err := dataset.SaveArray(filepath.Join(folder, name+".npy"), name, array); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMPI has one command with MPI for all that it looks at.
func TestMPI(t *testing.T) {
	calamp := built(t, "mpi")
	for name, test := range map[string]func(t *testing.T, calamp string){"solves": solvesOverRanks, "online": onlineOverRanks, "fails": failsOverRanks} {
		t.Run(name, func(t *testing.T) { test(t, calamp) })
	}
}

// solvesOverRanks: as one process does, whatever the number of ranks, and the same bytes where that
// is asked for.
func solvesOverRanks(t *testing.T, calamp string) {
	folder := t.TempDir()
	saveMPIProblem(t, folder, 150)
	file := func(name string) string { return filepath.Join(folder, name) }
	tall := t.TempDir() // of more than four times as many rows as columns, which is not decomposed
	saveMPIProblem(t, tall, 30)
	model := []string{"--density", "0.15", "--s-range", "0.8,1.2", "--noise-var", "1e-4"}
	for name, args := range map[string][]string{
		"plain":     append([]string{file("P.npz")}, model...),
		"broken":    append([]string{file("P.npz"), "--faulty", "auto"}, model...),
		"learned":   {file("P.npz"), "--density", "auto", "--noise-var", "auto", "--s-range", "0.8,1.2"},
		"sensors":   append([]string{file("S.npz"), "--faulty", "auto"}, model...),
		"learns":    {file("S.npz")}, // but for sensors
		"vector":    append([]string{file("P.npz"), "--algorithm", "vamp"}, model...),
		"gradients": append([]string{filepath.Join(tall, "P.npz"), "--algorithm", "vamp"}, model...),
		"on disk":   append([]string{"--matrix", file("W.npy"), "--readings", file("Y.npy"), "--memory", "35000"}, model...),
	} {
		t.Run(name, func(t *testing.T) {
			solve := func(out string, before, more []string) []byte {
				t.Helper()
				words := slices.Concat(before, []string{calamp, "solve"}, args, []string{"-q", "-o", file(out)}, more)
				if e := launch(t, words...); e.code != 0 {
					t.Fatalf("%v: exit %d\n%s", words, e.code, e.stderr)
				}
				content, err := os.ReadFile(file(out))
				if err != nil {
					t.Fatal(err)
				}
				return content
			}
			array := func(out, name string) []float64 {
				t.Helper()
				a, err := dataset.LoadArray(file(out), name)
				if err != nil {
					t.Fatal(err)
				}
				return a.Data
			}
			solve("one.npz", nil, nil)
			x, s, within := array("one.npz", "x"), array("one.npz", "s"), 1e-12
			if name == "gradients" { // steps end within their tolerance
				within = 1e-10
				why := "conjugate gradients in its place"
				if e := launch(t, slices.Concat([]string{calamp, "solve"}, args, []string{"-q", "--json"})...); !strings.Contains(e.stdout, why) {
					t.Fatalf("it was decomposed: %s", e.stdout)
				}
			}
			var same []byte
			everywhere(t, func(t *testing.T, mpirun []string) {
				for _, ranks := range []string{"1", "2", "4"} {
					if ranks == "2" && name != "plain" && name != "sensors" { // TestRanksAgree has two ranks of all
						continue
					}
					before := append(slices.Clone(mpirun), "-n", ranks)
					if ranks != "1" {
						solve("R.npz", before, []string{"--mpi"})
						for name, want := range map[string][]float64{"x": x, "s": s} {
							if far := furthest(array("R.npz", name), want); far > within {
								t.Errorf("%s ranks: %s differs by %.2g", ranks, name, far)
							}
						}
					}
					more := []string{"--mpi", "--reproducible"}
					if name == "on disk" { // with one rank, which needs buffers for 8 parts; with more, in memory
						more = append(more, "--memory", "120000")
					}
					got := solve("R.npz", before, more)
					if same == nil {
						same = got
					} else if !bytes.Equal(got, same) {
						t.Errorf("%s ranks, --reproducible: other bytes", ranks)
					}
				}
			})
		})
	}
}

// onlineOverRanks: a stream over ranks, in two runs that share a state, leaves what one process does in
// one; lines come from the first rank alone.
func onlineOverRanks(t *testing.T, calamp string) {
	folder := t.TempDir()
	in, err := teacher.Teacher{
		N: 80, M: 64, P: 12, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4,
	}.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	known := &channel.Knowledge{Mean: in.Truth.S, SD: slices.Repeat([]float64{0.02}, 64)} // what a rank forgets would show
	if err := dataset.Save(file("P.npz"), &dataset.Problem{W: in.W, Y: in.Y, Known: known}); err != nil {
		t.Fatal(err)
	}
	several := &teacher.Instance{W: in.W, Y: mat.DenseCopyOf(in.Y), Truth: in.Truth}
	ids := shareMPI(several, 31)
	if err := dataset.Save(file("shared.npz"), &dataset.Problem{W: in.W, Y: several.Y, Sensors: ids}); err != nil {
		t.Fatal(err)
	}
	problem := file("P.npz")
	run := func(before []string, more ...string) ended {
		t.Helper()
		words := slices.Concat(before, []string{calamp, "online", problem, "--density", "0.15", "--s-range", "0.9,1.1", "--noise-var", "1e-4", "-q"}, more)
		e := launch(t, words...)
		if e.code != 0 {
			t.Fatalf("%v: exit %d\n%s", words, e.code, e.stderr)
		}
		return e
	}
	array := func(out string) []float64 {
		t.Helper()
		a, err := dataset.LoadArray(file(out), "s")
		if err != nil {
			t.Fatal(err)
		}
		return a.Data
	}
	run(nil, "-o", file("one.npz"))
	var same []byte
	everywhere(t, func(t *testing.T, mpirun []string) {
		for _, ranks := range []string{"1", "3"} {
			os.Remove(file("S.calamp"))
			before := append(slices.Clone(mpirun), "-n", ranks)
			first := run(before, "--mpi", "--state", file("S.calamp"), "--limit", "5")
			second := run(before, "--mpi", "--state", file("S.calamp"), "-o", file("R.npz"))
			if lines := strings.Count(first.stdout+second.stdout, "\n"); lines != 12 {
				t.Errorf("%s ranks: %d lines", ranks, lines)
			}
			if far := furthest(array("R.npz"), array("one.npz")); far > 1e-10 { // samples end within their tolerance
				t.Errorf("%s ranks: s differs by %.2g", ranks, far)
			}
			run(before, "--mpi", "--reproducible", "-o", file("R.npz"))
			got, err := os.ReadFile(file("R.npz"))
			if err != nil {
				t.Fatal(err)
			}
			if same == nil {
				same = got
			} else if !bytes.Equal(got, same) {
				t.Errorf("%s ranks, --reproducible: other bytes", ranks)
			}
		}
	})
	problem = file("shared.npz")
	run(nil, "-o", file("one.npz"))
	everywhere(t, func(t *testing.T, mpirun []string) {
		run(append(slices.Clone(mpirun), "-n", "3"), "--mpi", "-o", file("R.npz"))
		if far := furthest(array("R.npz"), array("one.npz")); far > 1e-10 {
			t.Errorf("sensors of several rows: s differs by %.2g", far)
		}
	})
}

func furthest(a, b []float64) float64 {
	most := 0.0
	for i, v := range a {
		most = max(most, v-b[i], b[i]-v)
	}
	return most
}

// failsOverRanks: what goes wrong on one rank ends all within seconds, with its cause.
func failsOverRanks(t *testing.T, calamp string) {
	good, bad := t.TempDir(), t.TempDir()
	saveMPIProblem(t, good, 150)
	in := func(folder string, ranks int, more string) []string {
		return []string{"-n", strconv.Itoa(ranks), "sh", "-c", fmt.Sprintf(
			"cd %s; echo $$ >> %s/pids; exec %s solve --matrix W.npy --readings Y.npy --mpi -q %s", folder, good, calamp, more)}
	}
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(good, name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for _, c := range []struct {
		name, want, more string
		spoil            func(w, y []byte) (newW, newY []byte)
	}{
		{name: "cut short", want: "rank [23] on .*: W.npy: W: cut short", spoil: func(w, y []byte) ([]byte, []byte) { return w[:len(w)/2], y }},
		{name: "another W", want: "ranks do not agree on W.npy: ranks 2, 3 have others than rank 0", spoil: func(w, y []byte) ([]byte, []byte) {
			w = bytes.Clone(w)
			for i := 128; i+8 <= len(w); i += 8 {
				slices.Reverse(w[i : i+6])
			}
			return w, y
		}},
		{name: "one entry", want: "ranks do not agree on W.npy: ranks 2, 3 have others than rank 0", spoil: func(w, y []byte) ([]byte, []byte) {
			w = bytes.Clone(w)
			w[len(w)/3] ^= 1
			return w, y
		}},
		{name: "another Y", want: "ranks do not agree on the readings: ranks 2, 3 have others than rank 0", spoil: func(w, y []byte) ([]byte, []byte) {
			y = bytes.Clone(y)
			y[len(y)-3] ^= 1
			return w, y
		}},
		{name: "another command", want: "ranks do not agree on the command line: ranks 2, 3 have others than rank 0", more: "--max-iter 7"},
		{name: "no file", want: "rank [23] on .*: W.npy: no such file", spoil: func(w, y []byte) ([]byte, []byte) { return nil, y }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, y := read("W.npy"), read("Y.npy")
			if c.spoil != nil {
				w, y = c.spoil(w, y)
			}
			os.Remove(filepath.Join(bad, "W.npy"))
			for name, content := range map[string][]byte{"W.npy": w, "Y.npy": y} {
				if content == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(bad, name), content, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			everywhere(t, func(t *testing.T, mpirun []string) {
				e := launch(t, slices.Concat(mpirun, in(good, 2, ""), []string{":"}, in(bad, 2, c.more))...)
				if e.code != 1 || e.took > 10*time.Second || !matches(c.want, e.stderr) {
					t.Errorf("exit %d after %v, expected 1 and %q\n%s", e.code, e.took, c.want, e.stderr)
				}
			})
		})
	}
	t.Run("killed", func(t *testing.T) {
		everywhere(t, func(t *testing.T, mpirun []string) {
			pids := filepath.Join(good, "pids")
			os.Remove(pids)
			go func() {
				for range 100 {
					time.Sleep(100 * time.Millisecond)
					if text, _ := os.ReadFile(pids); bytes.Count(text, []byte("\n")) == 4 {
						time.Sleep(2 * time.Second)
						pid, _ := strconv.Atoi(strings.Fields(string(text))[2])
						syscall.Kill(pid, syscall.SIGKILL)
						return
					}
				}
			}()
			e := launch(t, slices.Concat(mpirun, in(good, 4, "--tol 0 --max-iter 10000000"))...)
			// The code is mpirun's own: 128 and the signal's number, or the number.
			if e.code != 137 && e.code != 9 || e.took > 20*time.Second || !matches("[Kk]illed", e.stdout+e.stderr) {
				t.Errorf("exit %d after %v\n%s%s", e.code, e.took, e.stdout, e.stderr)
			}
		})
	})
}

// TestWithoutMPI: the command as it is published needs nothing of the machine, and says what --mpi needs.
func TestWithoutMPI(t *testing.T) {
	calamp := built(t, "")
	f, err := elf.Open(calamp)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it is not static")
		}
	}
	if e := launch(t, calamp, "solve", "P.npz", "--mpi"); e.code != 2 || !matches("built without MPI\nhint: .*-tags mpi", e.stderr) {
		t.Errorf("exit %d: %s", e.code, e.stderr)
	}
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
