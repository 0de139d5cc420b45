//go:build !noasm

package simd

import "golang.org/x/sys/cpu"

// Best returns the best instruction set that this build and machine have.
func Best() Level {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512VL:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Go
}

// Words reports whether a machine with AVX-512 has its instructions on bytes and words, too, and those that add up products of words.
func Words() bool { return cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI }
