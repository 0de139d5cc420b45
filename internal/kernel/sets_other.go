//go:build !amd64 || noasm

package kernel

// This build has plain Go only, and this function is never called.
func readVector([]float32) uint64 { panic("calamp: no vector kernels in this build") }

func largest([]float32, int, *[Rows]float32) { panic("calamp: no vector kernels in this build") }

func toBytes([]float32, int, *[Rows]float32, []int8) {
	panic("calamp: no vector kernels in this build")
}

func butterflies2([]float64, int) { panic("calamp: no vector kernels in this build") }

func butterflies4([]float64, int) { panic("calamp: no vector kernels in this build") }

func fourier(int, []float64, []float64, int, int, []float64, []float64) {
	panic("calamp: no vector kernels in this build")
}

func turn(_, _, _ []float64, _, _ float64) { panic("calamp: no vector kernels in this build") }

func sparseDot[T Entry]([]T, []int32, []float64, *[4]float64) {
	panic("calamp: no vector kernels in this build")
}

func sparseDotBoth[T Entry]([]T, []int32, []float64, *[8]float64) {
	panic("calamp: no vector kernels in this build")
}

func sparseAxpy[T Entry]([]T, []int32, []float64, *[4]float64) {
	panic("calamp: no vector kernels in this build")
}

func sparseAxpyBoth[T Entry]([]T, []int32, []float64, *[8]float64) {
	panic("calamp: no vector kernels in this build")
}
