package command

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tests"
)

// Parameters of every sensor are in the result; what does not go along with them is refused by name.
func TestSensorDerivatives(t *testing.T) {
	tests.Long(t)
	folder := nearlyKnown(t, 0)
	in := func(name string) string { return filepath.Join(folder, name) }
	run := func(args ...string) (errs string, code int) {
		var stdout, stderr bytes.Buffer
		code = Run(args, strings.NewReader(""), &stdout, &stderr)
		return stdout.String() + stderr.String(), code
	}
	text, code := run("solve", in("P.npz"), "--sensor-derivatives", in("D.npy"), "-o", in("R.npz"))
	if code != 0 || !strings.Contains(text, "of every sensor, spread over them by") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	for name, shape := range map[string]int{"theta": 2, "theta_sd": 2, "theta_spread": 1} {
		if a, err := dataset.LoadArray(in("R.npz"), name); err != nil || len(a.Shape) != shape {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, code = run("online", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--state", in("S.calamp"), "--json", "-o", in("S.npz"))
	if code == 2 || !strings.Contains(text, `"theta_spread"`) {
		t.Fatalf("exit code %d: %s", code, text)
	}
	for name, shape := range map[string]int{"theta": 2, "theta_sd": 2, "theta_spread": 1} {
		if a, err := dataset.LoadArray(in("S.npz"), name); err != nil || len(a.Shape) != shape {
			t.Errorf("online, %s: %v", name, err)
		}
	}
	w, err := dataset.LoadArray(in("P.npz"), "W")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	w.Data = w.Data[:5*10]
	for i := range w.Data {
		w.Data[i] = rng.NormFloat64()
	}
	w.Shape = []int{5, 10}
	if err := dataset.SaveArray(in("small.npy"), "D", w); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"expected J×160×200":              {"solve", in("P.npz"), "--sensor-derivatives", in("small.npy")},
		"sensors 0 derivative":            {"online", in("P.npz"), "--state", in("S.calamp")},
		"leave out the warm-up":           {"online", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--warm-up", "10"},
		"vector AMP decomposes W":         {"solve", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--algorithm", "vamp"},
		"signals by themselves":           {"solve", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--joint", "on"},
		"do not move with parameters":     {"solve", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--algorithm", "evidence"},
		"unknown flag: --sensor-deriv":    {"fit-matrix", in("P.npz"), "--derivatives", in("D.npy"), "--sensor-derivatives", in("D.npy")},
		"parameters of sensors need real": {"solve", in("P.npz"), "--sensor-derivatives", in("D.npy"), "--offset", "0.1"},
	} {
		if text, code := run(args...); code == 0 || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
}
