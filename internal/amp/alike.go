package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
)

// Alike is the part of the readings' power in common proportions above which gains
// and signals hardly separate, and a run is helped (see [cooling] and [jointMoves]).
const Alike = 0.9

// powerSteps is enough where common proportions have most of the power.
const powerSteps = 30

// Proportions looks for proportions in which all sensors read the P signals, and
// returns them, a unit vector, with the part of the readings' power that is in
// them, all sensors and all signals counting the same: near 1 the readings of one sensor are a
// multiple of those of any other, as their gains could make them. Sensors with
// missing readings are left out. Readings y are M×P, sensor by sensor.
func Proportions(y []float64, p int) (common []float64, power float64) {
	sizes := make([]float64, p) // squares of the signals' sizes
	var rows [][]float64
	for ; len(y) > 0; y = y[p:] {
		if row := y[:p]; blas64.Nrm2(vector(row)) > 0 { // false for NaN
			for k, v := range row {
				sizes[k] += v * v
			}
			rows = append(rows, slices.Clone(row))
		}
	}
	for _, row := range rows {
		for k, size := range sizes {
			row[k] /= math.Sqrt(max(size, math.SmallestNonzeroFloat64))
		}
		scale(row, 1/blas64.Nrm2(vector(row)))
	}
	common = make([]float64, p)
	for k := range common {
		common[k] = 1 + float64(k%7)/7 // uneven, so that it is orthogonal to no likely eigenvector
	}
	for range powerSteps { // towards the leading eigenvector of the mean of row rowᵀ
		next := make([]float64, p)
		for _, row := range rows {
			blas64.Axpy(blas64.Dot(vector(row), vector(common)), vector(row), vector(next))
		}
		length := blas64.Nrm2(vector(next))
		if !(length > 0) {
			return common, 0
		}
		power = length / (blas64.Nrm2(vector(common)) * float64(len(rows)))
		scale(next, 1/length)
		common = next
	}
	for k, size := range sizes {
		common[k] *= math.Sqrt(size)
	}
	scale(common, 1/blas64.Nrm2(vector(common)))
	return common, power
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Data: v, Inc: 1} }
