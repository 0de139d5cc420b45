//go:build !amd64 || noasm

package simd

// Best returns the best instruction set that this build and machine have.
func Best() Level { return Go }
