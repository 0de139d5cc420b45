package sweep

import (
	"encoding/json"
	"math"
	"testing"
)

const severalRows = `
[[grid]]
algorithm = ["offline", "se"]
n = 200
density = 0.1
alpha = 0.6
p = [2, 6]
noise_var = 1e-6
s_range = [0.8, 1.2]
rows_per_sensor = [1, 3]
seeds = 1
[solver]
max_iter = 100
`

// Sensors of three rows and two signals are, to theory, those of one row and six signals, and the solver finds their gains.
func TestRowsPerSensor(t *testing.T) {
	errors, lines := map[[3]int]float64{}, map[[3]int]string{}
	for _, p := range parsed(t, severalRows).Points() {
		row, ok := new(Runner).Run(t.Context(), p)
		if !ok || row.Failed() {
			t.Fatalf("%v: %+v", p, row)
		}
		last := row.Measures[len(row.Measures)-1].Values
		key := [3]int{map[Algorithm]int{Offline: 0, SE: 1}[p.Algorithm], p.P, p.rows()}
		text, err := json.Marshal(row.Measures)
		if err != nil {
			t.Fatal(err)
		}
		errors[key], lines[key] = last["x_mse_scaled"], string(text)
	}
	if lines[[3]int{1, 2, 3}] != lines[[3]int{1, 6, 1}] || lines[[3]int{1, 2, 3}] == lines[[3]int{1, 2, 1}] {
		t.Errorf("state evolution of two signals and three rows: %s\nof six signals: %s", lines[[3]int{1, 2, 3}], lines[[3]int{1, 6, 1}])
	}
	if several, one := errors[[3]int{0, 2, 3}], errors[[3]int{0, 2, 1}]; !(several < one) || math.IsNaN(several) {
		t.Errorf("error of signals %.3g with three rows a sensor, and %.3g with one", several, one)
	}
}

// What sensors of several rows exclude is refused.
func TestRowsPerSensorRefused(t *testing.T) {
	good := Point{Algorithm: Offline, N: 100, Density: 0.1, Alpha: 0.6, P: 3, SRange: [2]float64{0.8, 1.2}, Rows: 3}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(p *Point){
		func(p *Point) { p.Rows = -1 },
		func(p *Point) { p.Algorithm = Online },
		func(p *Point) { p.Joint = "0" },
		func(p *Point) { p.Phase = "free" },
	} {
		p := good
		if change(&p); p.Validate() == nil {
			t.Errorf("%v is not refused", p)
		}
	}
}
