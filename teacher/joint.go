package teacher

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// JointSignals draws signals (N×P) that belong together: each entry is zero in all of them with probability 1 - density, and otherwise normal with
// variance v and the given correlation between any two signals, from 0 to 1. The first signals of more are those of fewer.
func JointSignals(n, p int, density, v, correlation float64, seed uint64) *mat.Dense {
	rows, x := stream(seed, "joint rows"), mat.NewDense(n, p, nil)
	own := stream(seed, "joint X")
	there, common := make([]bool, n), make([]float64, n)
	for i := range n {
		there[i], common[i] = rows.Float64() < density, rows.NormFloat64()
	}
	for k := range p {
		for i := range n {
			if value := own.NormFloat64(); there[i] {
				x.Set(i, k, math.Sqrt(v)*(math.Sqrt(correlation)*common[i]+math.Sqrt(1-correlation)*value))
			}
		}
	}
	return x
}

// ComplexJointSignals are [JointSignals] of complex numbers (N×2P, pairs of parts), of the complex normal distribution with variance v of both parts together.
func ComplexJointSignals(n, p int, density, v, correlation float64, seed uint64) *mat.Dense {
	rows, x := stream(seed, "joint rows"), mat.NewDense(n, 2*p, nil)
	own := stream(seed, "joint X")
	there, common := make([]bool, n), make([]float64, 2*n)
	for i := range n {
		there[i], common[2*i], common[2*i+1] = rows.Float64() < density, rows.NormFloat64(), rows.NormFloat64()
	}
	for k := range 2 * p {
		for i := range n {
			if value := own.NormFloat64(); there[i] {
				x.Set(i, k, math.Sqrt(0.5*v)*(math.Sqrt(correlation)*common[2*i+k%2]+math.Sqrt(1-correlation)*value))
			}
		}
	}
	return x
}
