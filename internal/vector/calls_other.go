//go:build !amd64 || noasm

package vector

// This build has plain Go only, and these functions are never called.

const noVectors = "calamp: no vector functions in this build"

func logarithms([]float64) { panic(noVectors) }

func exponentials([]float64) { panic(noVectors) }

func gainPowers(_, _ []float64, _, _ int, _, _, _ []float64) { panic(noVectors) }

func gainEnds(_, _ []float64, _, _ float64, _, _, _ []float64) { panic(noVectors) }

func gainIntegrals(_, _ []float64, _ int, _, _, _ []float64) { panic(noVectors) }

func gaussBernoulli(_, _, _, _ []float64, _, _, _ float64) { panic(noVectors) }

func phasorNodes(_, _, _, _, _, _, _, _, _, _ []float64) { panic(noVectors) }

func gainShapes(_, _, _ []float64, _, _ float64, _ []float64) { panic(noVectors) }

func hinge(_ int, _ []float64, _ float64) { panic(noVectors) }

func millsRatios([]float64) { panic(noVectors) }

func logisticNodes(_, _, _ []float64) { panic(noVectors) }
