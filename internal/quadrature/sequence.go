package quadrature

import "math/bits"

// VanDerCorput returns point i of van der Corput's sequence in base 2 after a
// digital shift: its binary digits mirrored and combined with those of shift. The
// point lies inside (0, 1), and uniformly so for a uniform shift.
func VanDerCorput(i, shift uint64) float64 {
	return (float64((bits.Reverse64(i)^shift)>>12) + 0.5) * 0x1p-52
}
