package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
)

// MostInCommon is the part of the readings' power in common proportions above which gains
// and signals hardly separate, and a run is helped (see [jointMoves]).
const MostInCommon = 0.9

// wildPower is the mean square of a sensor's readings, relative to the typical one, that
// no gain gives: such a sensor is broken, and says nothing of the signals' sizes. Left in,
// a single one would decide them all.
const wildPower = 100

// powerSteps is enough where common proportions have most of the power.
const powerSteps = 30

// Proportions looks for proportions in which all sensors read the P signals, and
// returns them, a unit vector, with the part of the readings' power that is in
// them, all sensors and all signals counting the same: near 1 the readings of one sensor are a
// multiple of those of any other, as their gains could make them. Sensors with
// missing readings, and those far larger than the others, are left out. Readings y are M×P, sensor by sensor.
func Proportions(y []float64, p int) (common []float64, power float64) {
	sizes := make([]float64, p) // squares of the signals' sizes
	rows := ordinary(y, p)
	for _, row := range rows {
		for k, v := range row {
			sizes[k] += v * v
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

// ordinary returns copies of the sensors' readings that can be compared.
func ordinary(y []float64, p int) (rows [][]float64) {
	var lengths []float64
	for ; len(y) > 0; y = y[p:] {
		if length := blas64.Nrm2(vector(y[:p])); length > 0 { // false for NaN
			rows = append(rows, slices.Clone(y[:p]))
			lengths = append(lengths, length)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	largest := math.Sqrt(wildPower) * slices.Sorted(slices.Values(lengths))[len(lengths)/2]
	kept := rows[:0]
	for i, row := range rows {
		if lengths[i] <= largest {
			kept = append(kept, row)
		}
	}
	return kept
}

func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Data: v, Inc: 1} }
