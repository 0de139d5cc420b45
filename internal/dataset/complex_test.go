package dataset

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

func TestComplexProblemRoundTrip(t *testing.T) {
	w, err := operator.NewComplex(3, 2, []complex128{1 + 2i, 3, 4i, -1, 0.5 - 1i, 2})
	if err != nil {
		t.Fatal(err)
	}
	single, err := operator.NewComplex64(3, 2, []complex64{1 + 2i, 3, 4i, -1, 0.5 - 1i, 2})
	if err != nil {
		t.Fatal(err)
	}
	realW, err := operator.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]operator.Operator{"c16": w, "c8": single, "f8": realW} {
		p := &Problem{
			W: w, Y: mat.NewDense(3, 4, []float64{1, 2, 3, 4, math.NaN(), math.NaN(), 7, 8, 9, 10, 11, 12}), Complex: true,
			Truth:  calamp.Truth{X: mat.NewDense(2, 4, []float64{1, 0, 0, 2, 0, 0, 3, -1}), S: []float64{1, 2, 0.5}, Phase: []float64{0, 1, -2}},
			Phases: []float64{0.1, 0.2, 0.3},
		}
		path := filepath.Join(t.TempDir(), "P.npz")
		if err := Save(path, p); err != nil {
			t.Fatal(name, err)
		}
		q, err := Load(path)
		if err != nil {
			t.Fatal(name, err)
		}
		if !q.Complex || !mat.EqualApprox(q.Truth.X, p.Truth.X, 0) || q.Y.At(2, 3) != 12 || !math.IsNaN(q.Y.At(1, 0)) || q.Phases[2] != 0.3 {
			t.Errorf("%s: %+v", name, q)
		}
		for mu := range p.Truth.S {
			if math.Abs(q.Truth.S[mu]-p.Truth.S[mu]) > 1e-15 || math.Abs(q.Truth.Phase[mu]-p.Truth.Phase[mu]) > 1e-15 {
				t.Errorf("%s: s is %v, %v", name, q.Truth.S, q.Truth.Phase)
			}
		}
		before, _ := HashMatrix(w)
		if after, err := HashMatrix(q.W); err != nil || before != after {
			t.Errorf("%s: W is another (%v)", name, err)
		}
		parts, err := LoadParts(path, path)
		if err != nil || !parts.Complex || parts.Phases == nil {
			t.Errorf("%s: as two files: %+v, %v", name, parts, err)
		}
	}
}

func TestComplexKindsThatDoNotFit(t *testing.T) {
	whole := &Array{Info: Info{Name: "W", Shape: []int{2, 2}, Dtype: "<c16"}, complex128: make([]complex128, 4)}
	plain := func(name string, shape ...int) *Array {
		return &Array{Info: Info{Name: name, Shape: shape, Dtype: "<f8"}, Data: []float64{1, 2, 3, 4}}
	}
	if _, _, err := check(whole, plain("Y", 2, 2), truths{}); err == nil || !strings.Contains(err.Error(), "W is complex") {
		t.Errorf("complex W, real Y: %v", err)
	}
	x := &Array{Info: Info{Name: "X0", Shape: []int{2, 2}, Dtype: "<c16"}, complex128: make([]complex128, 4)}
	if _, _, err := check(plain("W", 2, 2), plain("Y", 2, 2), truths{x0: x}); err == nil || !strings.Contains(err.Error(), "X0 is complex") {
		t.Errorf("complex X0, real Y: %v", err)
	}
}
