package command

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tests"
)

// TestNoiseAlone: of readings without any signal the one thing that is said is that they look like noise, and not that sensors are broken.
func TestNoiseAlone(t *testing.T) {
	tests.Long(t)
	for _, i := range []instrument{
		{name: "two", n: 60, m: 50, p: 2, density: 0.1, lo: 0.8, hi: 1.2, snr: 1e4},
		{name: "eight", n: 40, m: 40, p: 8, density: 0.1, lo: 0.8, hi: 1.2, snr: 1e4},
	} {
		problem, _ := i.draw(t, 1)
		rng := rand.New(rand.NewPCG(7, 7))
		rows, columns := problem.Y.Dims()
		for mu := range rows {
			for k := range columns {
				problem.Y.Set(mu, k, rng.NormFloat64())
			}
		}
		file := filepath.Join(t.TempDir(), "P.npz")
		if err := dataset.Save(file, problem); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := Run([]string{"solve", file, "--json"}, strings.NewReader(""), &out, &errs)
		var said struct {
			Status, Reason string
			Warnings       []struct{ Code string }
		}
		if err := json.Unmarshal(out.Bytes(), &said); err != nil {
			t.Fatal(err, errs.String())
		}
		if code != 3 || said.Status != "nothing recovered" || !strings.Contains(said.Reason, "the readings look like noise") || strings.Contains(said.Reason, "Inf") {
			t.Errorf("%s: exit %d, %s: %s", i.name, code, said.Status, said.Reason)
		}
		for _, w := range said.Warnings {
			if w.Code != "only-noise" {
				t.Errorf("%s: %s is said, too", i.name, w.Code)
			}
		}
	}
}

// TestThresholdSentence: with noise that hides the gains it takes as many sensors as with known gains, and not none.
func TestThresholdSentence(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		flags, want string
	}{
		{"--gain-range 0.8,1.2 --noise-var 1e-3", "sensors for 256 entries and 8 signals; you have 200\n"},
		{"--gain-range 0.95,1.05 --noise-var 1e-2", "74 sensors for 256 entries and 8 signals, as many as with known gains: gains hardly matter beside such noise; you have 200\n"},
	} {
		var out, errs bytes.Buffer
		code := Run(append(strings.Fields("threshold -q --n 256 --m 200 --p 8 --density 0.15"), strings.Fields(c.flags)...), strings.NewReader(""), &out, &errs)
		if code != 0 || !strings.HasSuffix(out.String(), c.want) {
			t.Errorf("%s: exit %d\n%s%s", c.flags, code, out.String(), errs.String())
		}
	}
}
