package facts

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// A complex reading is missing where either part of it is, and counts once.
func TestMissingComplexReadings(t *testing.T) {
	w, err := operator.NewDense(2, 1, []float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	y := mat.NewDense(2, 4, []float64{nan, 0, 1, nan, nan, nan, 1, 2})
	if size := SizeOf(&dataset.Problem{W: w, Y: y, Complex: true}); size.P != 2 || size.Missing != 3 {
		t.Errorf("%v: expected 2 signals and 3 missing readings", size)
	}
	if size := SizeOf(&dataset.Problem{W: w, Y: y}); size.P != 4 || size.Missing != 4 {
		t.Errorf("%v: expected 4 signals and 4 missing readings", size)
	}
}

// Where sensors have several rows the place of an outlier is a row of the readings.
func TestOutliersOfRows(t *testing.T) {
	res := &calamp.Result{Outlier: mat.NewDense(4, 1, []float64{0, 0, 1, 0})}
	for _, c := range []struct {
		sensors []int
		want    string
	}{{nil, "(sensor/signal): 2/0"}, {[]int{0, 0, 1, 1}, "(row/signal): 2/0"}} {
		var text console.Summary
		res.Sensors = c.sensors
		if OutlierLines(&text, res); !strings.Contains(text.String(), c.want) {
			t.Errorf("%q, expected %q", text.String(), c.want)
		}
	}
}
