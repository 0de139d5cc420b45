//go:build !amd64 || noasm

package kernel

// With plain Go the only choice, this is never called.
func readVector([]float32) uint64 { panic("calamp: no vector kernels in this build") }
