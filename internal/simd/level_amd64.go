//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// Best returns the best instruction set that this build and machine have.
func Best() Level {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Go
}
