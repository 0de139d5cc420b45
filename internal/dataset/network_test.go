package dataset

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/prior"
)

func TestNetworkIsReadAsWritten(t *testing.T) {
	layers := []prior.Layer{
		{Rows: 3, Cols: 2, Weights: []float64{1, -2, 3, 4, 5, 6}, Bias: []float64{0.1, 0.2, 0.3}, Activation: prior.ReLU},
		{Rows: 4, Cols: 3, Weights: []float64{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1}, Activation: prior.Leaky(0.2)},
	}
	n, err := prior.NewNetwork(layers, prior.Gaussian(0, 1), 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "N.npz")
	if err := SaveNetwork(path, n); err != nil {
		t.Fatal(err)
	}
	got, slack, err := LoadNetwork(path)
	if err != nil || slack != 1e-3 || len(got) != 2 {
		t.Fatal(len(got), slack, err)
	}
	for i := range layers {
		if layers[i].Activation.String() != got[i].Activation.String() {
			t.Errorf("activation %v, expected %v", got[i].Activation, layers[i].Activation)
		}
		if !reflect.DeepEqual(layers[i].Weights, got[i].Weights) || !reflect.DeepEqual(layers[i].Bias, got[i].Bias) || layers[i].Rows != got[i].Rows {
			t.Errorf("layer %d: %v, expected %v", i+1, got[i], layers[i])
		}
	}
}

func TestNetworksThatAreNone(t *testing.T) {
	w1, w2 := matrixOutput("W1", mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6})), matrixOutput("W2", mat.NewDense(4, 3, nil))
	relu := textOutput("activation1", "relu")
	for _, c := range []struct {
		arrays []output
		want   string
	}{
		{[]output{relu}, "W1"},
		{[]output{w1}, "activation1 is missing"},
		{[]output{w1, textOutput("activation1", "ReLU")}, `activation1: "ReLU" is no activation`},
		{[]output{w1, scalarOutput("activation1", 1)}, "activation1: dtype <f8, expected text"},
		{[]output{vectorOutput("W1", []float64{1, 2}), relu}, "W1: expected a matrix"},
		{[]output{matrixOutput("W1", mat.NewDense(1, 1, []float64{math.NaN()})), relu}, "W1"},
		{[]output{w1, relu, vectorOutput("b1", []float64{1, 2})}, "b1: expected 3 values"},
		{[]output{w1, relu, vectorOutput("b1", []float64{1, 2, math.Inf(1)})}, "b1: value 2"},
		{[]output{w1, relu, w2}, "activation2 is missing"},
		{[]output{w1, relu, matrixOutput("W3", mat.NewDense(4, 3, nil))}, "W3: it is no layer"},
	} {
		path := filepath.Join(t.TempDir(), "N.npz")
		if err := writeArrays(path, c.arrays); err != nil {
			t.Fatal(err)
		}
		if _, _, err := LoadNetwork(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}
