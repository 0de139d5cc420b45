package sweep

import (
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/solver"
)

const kindsSpec = `
name = "kinds"
[[grid]]
algorithm = ["offline", "se"]
matrix = ["iid", "condition:30"]
n = 80
density = 0.1
alpha = 0.9
p = 4
noise_var = 1e-8
s_range = [0.8, 1.2]
shared_matrix = true
solver = { algorithm = "vamp" }
[[grid]]
algorithm = "threshold"
matrix = "condition:10"
density = 0.1
p = 4
noise_var = 1e-8
record = { target = 1e-5 }
`

// TestKindsOfMatrices: vector AMP behind an ill-conditioned W recovers what its state evolution says, rows name both, and independent
// entries have the keys that they have where no kind is named.
func TestKindsOfMatrices(t *testing.T) {
	tests.Long(t)
	points := parsed(t, kindsSpec).Points()
	dir := t.TempDir()
	if err := runInto(t, dir, points, &Local{Workers: 2}, 0); err != nil {
		t.Fatal(err)
	}
	text := table(t, dir, points)
	if header, _, _ := strings.Cut(text, "\n"); !strings.Contains(header, ",matrix,solver,") || !strings.Contains(text, ",condition:30,vamp,") {
		t.Errorf("table:\n%s", text)
	}
	rows, _, err := Store{dir}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		v := rows[p.Key()].Measures[0].Values
		switch p.Algorithm {
		case Offline:
			if !(v["x_mse_scaled"] < 1e-6) {
				t.Errorf("%v: mean square error %g", p, v["x_mse_scaled"])
			}
		case SE:
			if !(v["se_x_mse"] < 1e-6) {
				t.Errorf("%v: mean square error %g", p, v["se_x_mse"])
			}
		case Threshold:
			if !(v["alpha_cal"] > 0.15 && v["alpha_cal"] < 0.4) {
				t.Errorf("%v: α_cal %g", p, v["alpha_cal"])
			}
		}
	}
	plain := parsed(t, strings.Replace(kindsSpec, `matrix = ["iid", "condition:30"]`, "", 1)).Points()
	if plain[0].Key() != points[0].Key() {
		t.Error("independent entries have another key where they are named")
	}
	if points[0].Solver.Algorithm != solver.VAMP {
		t.Errorf("algorithm %v", points[0].Solver.Algorithm)
	}
}

// TestKindsThatAreNone: what is wrong, and where.
func TestKindsThatAreNone(t *testing.T) {
	for from, to := range map[string]string{
		`"condition:30"`:            `"condition"`,
		`matrix = "condition:10"`:   `matrix = "correlated:0.5"`,
		`["iid", "condition:30"]`:   `[7]`,
		`["offline", "se"]`:         `["offline", "se-online"]`,
		`"iid", "condition:30"`:     `"nonsense"`,
		`algorithm = "threshold"`:   "algorithm = \"threshold\"\ncomplex = true",
		`solver = { algorithm = "v`: `solver = { algorithm = "w`,
	} {
		if _, err := Parse("kinds.toml", strings.Replace(kindsSpec, from, to, 1)); err == nil {
			t.Errorf("%s in place of %s: accepted", to, from)
		} else {
			t.Log(err)
		}
	}
}
