package calamp

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// A sensor that alone sees an entry is not left out, and one beside others is.
func TestSparingAlone(t *testing.T) {
	w, err := operator.NewDense(3, 3, []float64{
		1, 0, 0, // of the mean
		1e-12, 1, 2,
		0, 2, 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	blamed := &try{problem: &Problem{W: w, Y: mat.NewDense(3, 2, nil)}, res: &Result{
		Broken: []float64{1, 1, 0}, BrokenSensors: []channel.BrokenSensor{{Sensor: 0}, {Sensor: 1}},
	}}
	spared := blamed.sparingAlone().res
	if len(spared.BrokenSensors) != 1 || spared.BrokenSensors[0].Sensor != 1 || spared.Broken[0] != 0 || spared.Broken[1] != 1 {
		t.Errorf("left out: %v, %v", spared.BrokenSensors, spared.Broken)
	}
	if len(blamed.res.BrokenSensors) != 2 || blamed.res.Broken[0] != 1 {
		t.Error("the result itself has changed")
	}
}
