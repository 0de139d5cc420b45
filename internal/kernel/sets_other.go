//go:build !amd64 || noasm

package kernel

func best() Level { return Go }

func readVector([]float32) uint64 { panic("calamp: no vector kernels in this build") }
