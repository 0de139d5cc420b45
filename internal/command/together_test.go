package command

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// TestGainSmooth: one signal behind smooth gains is solved by positions, by an index and by columns; what does not fit is refused, and nothing written.
func TestGainSmooth(t *testing.T) {
	const m = 150
	folder := t.TempDir()
	in, err := teacher.Teacher{N: 150, M: m, P: 1, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	positions, column := make([]float64, m), make([]float64, m)
	for mu := range m {
		positions[mu] = 2*float64(mu)/(m-1) - 1
		column[mu] = positions[mu] * positions[mu]
		in.Y.Set(mu, 0, in.Y.At(mu, 0)*in.Truth.S[mu]/math.Exp(0.3*column[mu]))
	}
	problem, out := filepath.Join(folder, "P.npz"), filepath.Join(folder, "R.npz")
	if err := dataset.Save(problem, &dataset.Problem{W: in.W, Y: in.Y}); err != nil {
		t.Fatal(err)
	}
	for name, rows := range map[string][]float64{"positions.npy": positions, "columns.npy": column, "short.npy": positions[:m-1], "zero.npy": make([]float64, m)} {
		if err := dataset.SaveArray(filepath.Join(folder, name), "a", &dataset.Array{Info: dataset.Info{Shape: []int{len(rows), 1}}, Data: rows}); err != nil {
			t.Fatal(err)
		}
	}
	stated := []string{"--density", "0.1", "--signal-var", "1", "--noise-var", "1e-6"}
	for _, how := range [][2]string{{"--gain-smooth", "positions.npy"}, {"--gain-smooth", "index"}, {"--gain-basis", "columns.npy"}} {
		value := how[1]
		if value != "index" {
			value = filepath.Join(folder, value)
		}
		model := filepath.Join(folder, "learned.toml")
		code, text, errs := run(append([]string{"solve", problem, "--json", "-o", out, "--save-model", model, how[0], value}, stated...)...)
		var found struct {
			Smooth  struct{ Amplitude, Length float64 } `json:"s_smooth"`
			Scatter float64                             `json:"s_scatter"`
		}
		if err := json.Unmarshal([]byte(text), &found); code != 0 || err != nil || !(found.Scatter > 0) || (found.Smooth.Length > 0) != (how[0] == "--gain-smooth") {
			t.Fatalf("%v: exit %d, %v, %+v\n%s", how, code, err, found, errs)
		}
		a, err := dataset.LoadArray(out, "s_smooth")
		if err != nil {
			t.Fatal(err)
		}
		scale := mat.Sum(mat.NewVecDense(m, a.Data)) / m
		level := 0.0
		for _, v := range column {
			level += math.Exp(0.3*v) / m
		}
		for mu, v := range a.Data {
			if off := v/scale*level/math.Exp(0.3*column[mu]) - 1; !(math.Abs(off) < 0.01) {
				t.Fatalf("%v: s_smooth of sensor %d is off by %.2g", how, mu, off)
			}
		}
		if code, text, errs := run("model", model); code != 0 || !strings.Contains(text, "gains ") {
			t.Errorf("%v: the model that is saved: exit %d, %s%s", how, code, text, errs)
		}
	}
	for _, c := range []struct{ flag, value, want string }{
		{"--gain-smooth", "short.npy", "expected 150 rows, one a sensor"},
		{"--gain-smooth", "zero.npy", "same position"},
		{"--gain-basis", "zero.npy", "all columns are zero"},
		{"--gain-smooth", "nowhere.npy", "no such file"},
	} {
		bad := filepath.Join(folder, "bad.npz")
		if code, _, errs := run("solve", problem, "-o", bad, c.flag, filepath.Join(folder, c.value)); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: exit %d, %s", c.flag, c.value, code, errs)
		}
		if _, err := dataset.Inspect(bad); err == nil {
			t.Errorf("%s %s: a result is written", c.flag, c.value)
		}
	}
	if code, _, errs := run("solve", problem, "--gain-smooth", "index", "--compare"); code != 2 || !strings.Contains(errs, "--compare") {
		t.Errorf("--compare: exit %d, %s", code, errs)
	}
}

// TestStreamsNameTheRemedy: what streams have not built is refused with what to do, and nothing is written.
func TestStreamsNameTheRemedy(t *testing.T) {
	folder := t.TempDir()
	in, err := teacher.Teacher{N: 20, M: 16, P: 4, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	problem, bad := filepath.Join(folder, "P.npz"), filepath.Join(folder, "bad.npz")
	if err := dataset.Save(problem, &dataset.Problem{W: in.W, Y: in.Y}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, value, want string }{
		{"--counts", "1", "--s-from R.npz"},
		{"--gain-smooth", "index", "--s-from R.npz"},
		{"--noise", "photon:auto,1", "give both numbers, such as calamp solve finds"},
		{"--noise-at", "reading", "give --noise-var, such as calamp solve finds"},
	} {
		if code, _, errs := run("online", problem, "-o", bad, c.flag, c.value); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: exit %d, %s", c.flag, c.value, code, errs)
		}
		if _, err := dataset.Inspect(bad); err == nil {
			t.Errorf("%s %s: a result is written", c.flag, c.value)
		}
	}
}
