//go:build !amd64 || noasm

package kernel

// This build has plain Go only, and this function is never called.
func readVector([]float32) uint64 { panic("calamp: no vector kernels in this build") }
