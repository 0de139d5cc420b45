package command

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/prior"
)

// networkFile is a file of a ReLU layer with independent weights.
func networkFile(t *testing.T, folder string, n, latents int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(39, uint64(n)))
	l := prior.Layer{Rows: n, Cols: latents, Activation: prior.ReLU}
	for range n * latents {
		l.Weights = append(l.Weights, rng.NormFloat64()/math.Sqrt(float64(latents)))
	}
	network, err := prior.NewNetwork([]prior.Layer{l}, prior.Gaussian(0, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "N.npz")
	if err := dataset.SaveNetwork(path, network); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNetworkSlack: problems have the slack that is given, solve learns it, and model files keep it beside a network that is named from their folder.
func TestNetworkSlack(t *testing.T) {
	folder := t.TempDir()
	problem, model, network := filepath.Join(folder, "P.npz"), filepath.Join(folder, "m.toml"), "network:"+networkFile(t, folder, 200, 40)
	if code, _, errs := run("simulate", "--prior", network, "--slack", "1e-3", "--alpha", "0.5", "--p", "5", "--density", "0.3", "--s-range", "0.7,1.3", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	var found struct {
		Slack float64 `json:"slack"`
		SD    float64 `json:"slack_sd"`
	}
	result := filepath.Join(folder, "R.npz")
	code, out, errs := run("solve", problem, "--prior", network, "--slack", "auto", "--s-range", "0.7,1.3", "--density", "0.3", "--noise-var", "1e-6", "--save-model", model, "-o", result, "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatal(code, err, errs)
	}
	if !(math.Abs(found.Slack-1e-3) < 3*found.SD) || !(found.SD < 5e-4) {
		t.Errorf("slack %g ± %g", found.Slack, found.SD)
	}
	if a, err := dataset.LoadArray(result, "slack"); err != nil || a.Data[0] != found.Slack {
		t.Errorf("in the result: %v, %v", a, err)
	}
	text, err := os.ReadFile(model)
	if err != nil || !strings.Contains(string(text), "\nprior = \"network:N.npz\"\nslack = 0.00") {
		t.Fatalf("%v: %s", err, text)
	}
	if code, out, errs := run("solve", problem, "--model", model, "--json"); code != 0 || json.Unmarshal([]byte(out), &found) != nil || !(found.Slack > 0) {
		t.Errorf("by the model: %d, %s", code, errs)
	}
	for _, args := range [][]string{
		{"solve", problem, "--slack", "auto"},
		{"solve", problem, "--prior", network, "--slack", "-1"},
		{"simulate", "--prior", network, "--slack", "auto", "--alpha", "1", "-o", result},
		{"online", problem, "--prior", network, "--slack", "auto"},
	} {
		if code, _, errs := run(args...); code != 2 || !strings.Contains(errs, "--slack") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}

// TestNetworkLatents: latents have groups, in what is simulated, in what is solved and in the result, and supports in common.
func TestNetworkLatents(t *testing.T) {
	folder := t.TempDir()
	problem, result, network := filepath.Join(folder, "P.npz"), filepath.Join(folder, "R.npz"), "network:"+networkFile(t, folder, 200, 40)
	groups, density := filepath.Join(folder, "g.npy"), filepath.Join(folder, "d.npy")
	of := make([]float64, 40)
	for j := range of {
		of[j] = float64(j / 20)
	}
	for path, v := range map[string][]float64{groups: of, density: {0.6, 0.05}} {
		if err := dataset.SaveArray(path, "a", &dataset.Array{Info: dataset.Info{Shape: []int{len(v)}}, Data: v}); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := run("simulate", "--prior", network, "--groups", groups, "--density", density, "--alpha", "0.4", "--p", "6", "--s-range", "0.7,1.3", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	var found struct {
		Groups []struct {
			Entries int
			Density float64
		}
		NMSE float64 `json:"x_mse"`
	}
	code, out, errs := run("solve", problem, "--prior", network, "--groups", groups, "--s-range", "0.7,1.3", "-o", result, "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 {
		t.Fatal(code, err, errs)
	}
	if g := found.Groups; len(g) != 2 || g[0].Entries != 20 || !(g[0].Density > 0.45 && g[0].Density < 0.75) || !(g[1].Density < 0.15) {
		t.Errorf("groups %+v", g)
	}
	if a, err := dataset.LoadArray(result, "group_density"); err != nil || a.Data[0] != found.Groups[0].Density {
		t.Errorf("in the result: %v, %v", a, err)
	}
	if code, out, errs := run("solve", problem, "--prior", network, "--joint", "on", "--s-range", "0.7,1.3", "--json"); code != 0 || !strings.Contains(out, "in all signals or in none") {
		t.Errorf("joint latents: exit %d, %s", code, errs)
	}
	if code, _, errs := run("solve", problem, "--prior", "nonnegative", "--groups", groups); code != 2 || !strings.Contains(errs, "latents of network:FILE.npz") {
		t.Errorf("groups of another prior: exit %d, %s", code, errs)
	}
}
