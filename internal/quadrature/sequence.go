package quadrature

import "math/bits"

// VanDerCorput returns point i of van der Corput's sequence in base 2 with a digital
// shift: the binary digits of i in reverse, each added to that of shift modulo 2. The
// point lies inside (0, 1), and is uniformly distributed when shift is.
func VanDerCorput(i, shift uint64) float64 {
	return (float64((bits.Reverse64(i)^shift)>>12) + 0.5) * 0x1p-52
}
