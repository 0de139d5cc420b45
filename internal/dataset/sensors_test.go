package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// A problem and a result whose sensors have several rows are read as they were written.
func TestSensors(t *testing.T) {
	w, err := operator.NewDense(4, 3, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 3, 5})
	if err != nil {
		t.Fatal(err)
	}
	ids := []int{1, 0, 1, 0}
	problem := &Problem{W: w, Y: mat.NewDense(4, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8}), Truth: calamp.Truth{S: []float64{0.9, 1.1}}, Sensors: ids}
	result := &calamp.Result{
		X: mat.NewDense(3, 2, nil), XVar: mat.NewDense(3, 2, nil), S: []float64{0.5, 2}, SVar: []float64{1, 1}, Gain: []float64{2, 0.5},
		Residual: mat.NewDense(4, 2, nil), Converged: []bool{true, true}, Sensors: ids,
	}
	for _, end := range []string{".npz", ".mat"} {
		path := filepath.Join(t.TempDir(), "p"+end)
		if err := Save(path, problem); err != nil {
			t.Fatal(err)
		}
		p, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Sensors, ids) || !slices.Equal(p.Truth.S, problem.Truth.S) || !HasSensors(path) {
			t.Errorf("%s: sensors %v, s0 %v", end, p.Sensors, p.Truth.S)
		}
		path = filepath.Join(t.TempDir(), "r"+end)
		if err := SaveResult(path, result, nil); err != nil {
			t.Fatal(err)
		}
		r, err := LoadResult(path)
		if err != nil {
			t.Fatal(err)
		}
		own := *result
		own.RowS = []float64{2, 0.5, 2.5, 0.4}
		ownPath := filepath.Join(t.TempDir(), "o"+end)
		if err := SaveResult(ownPath, &own, nil); err != nil {
			t.Fatal(err)
		}
		if o, err := LoadResult(ownPath); err != nil || !slices.Equal(o.RowS, own.RowS) || r.RowS != nil {
			t.Errorf("%s: gains of rows %v and %v, %v", end, o.RowS, r.RowS, err)
		}
		if !slices.Equal(r.Sensors, ids) || len(r.S) != 2 {
			t.Errorf("%s: result of %v", end, r.Sensors)
		}
		gains, err := LoadArray(path, "gain_row")
		if err != nil || !slices.Equal(gains.Data, []float64{0.5, 2, 0.5, 2}) {
			t.Errorf("%s: gain_row %v: %v", end, gains, err)
		}
		if again, err := LoadSensors(path, 4); err != nil || !slices.Equal(again, ids) {
			t.Errorf("%s: sensors %v: %v", end, again, err)
		}
		if _, err := LoadSensors(path, 5); err == nil {
			t.Errorf("%s: sensors of four rows were taken for those of five", end)
		}
	}
	problem.Sensors = []int{1, 2, 1, 2}
	if err := Save(filepath.Join(t.TempDir(), "p.npz"), problem); err == nil {
		t.Error("a sensor without a row was written")
	}
}

func TestSensorFaults(t *testing.T) {
	w, y := member{"W.npy", matrixFile(4, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 3, 5)}, member{"Y.npy", matrixFile(4, 2, 1, 2, 3, 4, 5, 6, 7, 8)}
	ids := member{"sensors.npy", vectorFile(0, 0, 1, 1)}
	for _, c := range []struct {
		members []member
		want    string
	}{
		{[]member{w, y, {"sensors.npy", vectorFile(0, 0, 1)}}, "p.npz: sensors is a vector of 3, expected 4 integers, one a row of W: the sensor that it is read with, from 0"},
		{[]member{w, y, {"sensors.npy", vectorFile(0, 0.5, 1, 1)}}, "p.npz: sensors of row 1 is 0.5, expected an integer from 0"},
		{[]member{w, y, {"sensors.npy", vectorFile(0, -1, 1, 1)}}, "p.npz: sensors: that of row 1 is -1, expected one from 0 to 3: there are no more sensors than rows"},
		{[]member{w, y, {"sensors.npy", vectorFile(0, 0, 2, 2)}}, "p.npz: sensors: none of the 4 rows of W is read with sensor 1, and there is a sensor 2: expected every sensor from 0 on"},
		{[]member{w, y, ids, {"s0.npy", vectorFile(1, 1, 1, 1)}}, "p.npz: s0 is a vector of 4, expected 2 values, one for each of the sensors"},
		{[]member{w, y, ids, {"s_prior_mean.npy", vectorFile(1, 1, 1, 1)}, {"s_prior_sd.npy", vectorFile(1, 1, 1, 1)}}, "p.npz: s_prior_mean is a vector of 4, expected 2, one a sensor"},
	} {
		_, err := readBytes(archiveFile(t, c.members...))
		expectFault(t, err, c.want)
	}
}

// So is one of complex gains, whose rows have complex ones.
func TestSensorsOfComplexGains(t *testing.T) {
	signal := prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}
	result := &calamp.Result{
		X: mat.NewDense(3, 2, nil), XVar: mat.NewDense(3, 2, nil), S: []float64{0.5, 2}, Phase: []float64{0, math.Pi / 2}, SVar: []float64{1, 1}, Gain: []float64{2, 0.5},
		Residual: mat.NewDense(4, 2, nil), Converged: []bool{true, true}, Sensors: []int{1, 0, 1, 0}, Prior: signal, Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.5, Hi: 2}, NoiseVar: 1e-4},
	}
	path := filepath.Join(t.TempDir(), "r.npz")
	if err := SaveResult(path, result, nil); err != nil {
		t.Fatal(err)
	}
	r, err := LoadResult(path)
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := Inspect(path)
	rows := slices.IndexFunc(arrays, func(i Info) bool { return i.Name == "gain_row" && i.Dtype == "<c16" && slices.Equal(i.Shape, []int{4}) })
	if err != nil || !slices.Equal(r.Sensors, result.Sensors) || len(r.S) != 2 || rows < 0 {
		t.Errorf("sensors %v, s %v, arrays %v: %v", r.Sensors, r.S, arrays, err)
	}
}
