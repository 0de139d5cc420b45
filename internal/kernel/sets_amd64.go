//go:build !noasm

package kernel

import "github.com/calamp/calamp/internal/simd"

func largest(w []float32, blocks int, top *[Rows]float32) { largestAVX2(w, blocks, top) }

func toBytes(w []float32, blocks int, inverse *[Rows]float32, to []int8) {
	toBytesAVX2(w, blocks, inverse, to)
}

func readVector(w []float32) uint64 { return readAVX2(w) }

func butterflies2(x []float64, run int) { butterflies2AVX2(x, run) }

func butterflies4(x []float64, run int) { butterflies4AVX2(x, run) }

func fourier(radix int, re, im []float64, rest, run int, twiddles, roots []float64) {
	switch radix {
	case 2:
		fourier2AVX2(re, im, rest, run, twiddles, roots)
	case 3:
		fourier3AVX2(re, im, rest, run, twiddles, roots)
	case 4:
		fourier4AVX2(re, im, rest, run, twiddles, roots)
	case 5:
		fourier5AVX2(re, im, rest, run, twiddles, roots)
	}
}

func turn(re, im, factors []float64, cos, sin float64) { turnAVX2(re, im, factors, cos, sin) }

func sparseDot[T Entry](w []T, columns []int32, x []float64, z *[4]float64) {
	switch w := any(w).(type) {
	case []float32:
		sparseDotF32AVX2(w, columns, x, z)
	case []float64:
		sparseDotF64AVX2(w, columns, x, z)
	}
}

func sparseDotBoth[T Entry](w []T, columns []int32, x []float64, z *[8]float64) {
	switch w := any(w).(type) {
	case []float32:
		sparseDotBothF32AVX2(w, columns, x, z)
	case []float64:
		sparseDotBothF64AVX2(w, columns, x, z)
	}
}

func sparseAxpy[T Entry](w []T, columns []int32, r []float64, g *[4]float64) {
	switch w := any(w).(type) {
	case []float32:
		sparseAxpyF32AVX2(w, columns, r, g)
	case []float64:
		sparseAxpyF64AVX2(w, columns, r, g)
	}
}

func sparseAxpyBoth[T Entry](w []T, columns []int32, r []float64, g *[8]float64) {
	switch w := any(w).(type) {
	case []float32:
		sparseAxpyBothF32AVX2(w, columns, r, g)
	case []float64:
		sparseAxpyBothF64AVX2(w, columns, r, g)
	}
}

func init() {
	wholes[simd.AVX2] = Whole{
		Forward:  []WholeForward{nil, wholeForward1AVX2, wholeForward2AVX2},
		Backward: []WholeBackward{nil, wholeBackward1AVX2, wholeBackward2AVX2},
		Drain:    wholeDrainAVX2,
	}
	wholes[simd.AVX512] = wholes[simd.AVX2]
	if simd.Words() {
		wholes[simd.AVX512] = Whole{
			Forward:  []WholeForward{nil, wholeForward1AVX512, wholeForward2AVX512, wholeForward3AVX512, wholeForward4AVX512, wholeForward5AVX512},
			Backward: []WholeBackward{nil, wholeBackward1AVX512, wholeBackward2AVX512, wholeBackward3AVX512, wholeBackward4AVX512, wholeBackward5AVX512},
			Drain:    wholeDrainAVX512,
		}
	}
	drains[simd.AVX2], drains[simd.AVX512] = drainAVX2, drainAVX512
	tiles[simd.AVX2], tiles[simd.AVX512] = tileAVX2, tileAVX512
	sets32[Packed][simd.AVX2] = &Set[float32, float64]{
		ForwardOne: forwardOneF32AVX2, ForwardOneLinear: forwardOneLinearF32AVX2,
		BackwardOne: backwardOneF32AVX2, BackwardOneLinear: backwardOneLinearF32AVX2,
		Dot:         []Dot[float32, float64]{nil, dot1F32AVX2, dot2F32AVX2, dot3F32AVX2},
		DotSquares:  []Dot[float32, float64]{nil, dotSquares1F32AVX2, dotSquares2F32AVX2, dotSquares3F32AVX2},
		Axpy:        []Axpy[float32, float64]{nil, axpy1F32AVX2, axpy2F32AVX2, axpy3F32AVX2},
		AxpySquares: []Axpy[float32, float64]{nil, axpySquares1F32AVX2, axpySquares2F32AVX2, axpySquares3F32AVX2},
	}
	sets64[Packed][simd.AVX2] = &Set[float64, float64]{
		ForwardOne: forwardOneF64AVX2, ForwardOneLinear: forwardOneLinearF64AVX2,
		BackwardOne: backwardOneF64AVX2, BackwardOneLinear: backwardOneLinearF64AVX2,
		Dot:         []Dot[float64, float64]{nil, dot1F64AVX2, dot2F64AVX2, dot3F64AVX2},
		DotSquares:  []Dot[float64, float64]{nil, dotSquares1F64AVX2, dotSquares2F64AVX2, dotSquares3F64AVX2},
		Axpy:        []Axpy[float64, float64]{nil, axpy1F64AVX2, axpy2F64AVX2, axpy3F64AVX2},
		AxpySquares: []Axpy[float64, float64]{nil, axpySquares1F64AVX2, axpySquares2F64AVX2, axpySquares3F64AVX2},
	}
	setsSingle[Packed][simd.AVX2] = &Set[float32, float32]{
		ForwardOne: forwardOneSingleAVX2, ForwardOneLinear: forwardOneLinearSingleAVX2,
		BackwardOne: backwardOneSingleAVX2, BackwardOneLinear: backwardOneLinearSingleAVX2,
		Dot:         []Dot[float32, float32]{nil, dot1SingleAVX2, dot2SingleAVX2, dot3SingleAVX2},
		DotSquares:  []Dot[float32, float32]{nil, dotSquares1SingleAVX2, dotSquares2SingleAVX2, dotSquares3SingleAVX2},
		Axpy:        []Axpy[float32, float32]{nil, axpy1SingleAVX2, axpy2SingleAVX2, axpy3SingleAVX2, axpy4SingleAVX2, axpy5SingleAVX2},
		AxpySquares: []Axpy[float32, float32]{nil, axpySquares1SingleAVX2, axpySquares2SingleAVX2, axpySquares3SingleAVX2, axpySquares4SingleAVX2, axpySquares5SingleAVX2},
	}
	sets32[Packed][simd.AVX512] = &Set[float32, float64]{
		ForwardOne: forwardOneF32AVX512, ForwardOneLinear: forwardOneLinearF32AVX512,
		BackwardOne: backwardOneF32AVX512, BackwardOneLinear: backwardOneLinearF32AVX512,
		Dot:         []Dot[float32, float64]{nil, dot1F32AVX512, dot2F32AVX512, dot3F32AVX512, dot4F32AVX512, dot5F32AVX512},
		DotSquares:  []Dot[float32, float64]{nil, dotSquares1F32AVX512, dotSquares2F32AVX512, dotSquares3F32AVX512, dotSquares4F32AVX512, dotSquares5F32AVX512},
		Axpy:        []Axpy[float32, float64]{nil, axpy1F32AVX512, axpy2F32AVX512, axpy3F32AVX512, axpy4F32AVX512, axpy5F32AVX512},
		AxpySquares: []Axpy[float32, float64]{nil, axpySquares1F32AVX512, axpySquares2F32AVX512, axpySquares3F32AVX512, axpySquares4F32AVX512, axpySquares5F32AVX512},
	}
	sets64[Packed][simd.AVX512] = &Set[float64, float64]{
		ForwardOne: forwardOneF64AVX512, ForwardOneLinear: forwardOneLinearF64AVX512,
		BackwardOne: backwardOneF64AVX512, BackwardOneLinear: backwardOneLinearF64AVX512,
		Dot:         []Dot[float64, float64]{nil, dot1F64AVX512, dot2F64AVX512, dot3F64AVX512, dot4F64AVX512, dot5F64AVX512},
		DotSquares:  []Dot[float64, float64]{nil, dotSquares1F64AVX512, dotSquares2F64AVX512, dotSquares3F64AVX512, dotSquares4F64AVX512, dotSquares5F64AVX512},
		Axpy:        []Axpy[float64, float64]{nil, axpy1F64AVX512, axpy2F64AVX512, axpy3F64AVX512, axpy4F64AVX512, axpy5F64AVX512},
		AxpySquares: []Axpy[float64, float64]{nil, axpySquares1F64AVX512, axpySquares2F64AVX512, axpySquares3F64AVX512, axpySquares4F64AVX512, axpySquares5F64AVX512},
	}
	setsSingle[Packed][simd.AVX512] = &Set[float32, float32]{
		ForwardOne: forwardOneSingleAVX512, ForwardOneLinear: forwardOneLinearSingleAVX512,
		BackwardOne: backwardOneSingleAVX512, BackwardOneLinear: backwardOneLinearSingleAVX512,
		Dot:         []Dot[float32, float32]{nil, dot1SingleAVX512, dot2SingleAVX512, dot3SingleAVX512, dot4SingleAVX512, dot5SingleAVX512},
		DotSquares:  []Dot[float32, float32]{nil, dotSquares1SingleAVX512, dotSquares2SingleAVX512, dotSquares3SingleAVX512, dotSquares4SingleAVX512, dotSquares5SingleAVX512},
		Axpy:        []Axpy[float32, float32]{nil, axpy1SingleAVX512, axpy2SingleAVX512, axpy3SingleAVX512, axpy4SingleAVX512, axpy5SingleAVX512},
		AxpySquares: []Axpy[float32, float32]{nil, axpySquares1SingleAVX512, axpySquares2SingleAVX512, axpySquares3SingleAVX512, axpySquares4SingleAVX512, axpySquares5SingleAVX512},
	}
	sets32[InRows][simd.AVX2] = &Set[float32, float64]{
		ForwardOne: forwardOneRowsF32AVX2, ForwardOneLinear: forwardOneLinearRowsF32AVX2,
		BackwardOne: backwardOneRowsF32AVX2, BackwardOneLinear: backwardOneLinearRowsF32AVX2,
		Dot:         []Dot[float32, float64]{nil, dot1RowsF32AVX2, dot2RowsF32AVX2, dot3RowsF32AVX2},
		DotSquares:  []Dot[float32, float64]{nil, dotSquares1RowsF32AVX2, dotSquares2RowsF32AVX2, dotSquares3RowsF32AVX2},
		Axpy:        []Axpy[float32, float64]{nil, axpy1RowsF32AVX2, axpy2RowsF32AVX2, axpy3RowsF32AVX2},
		AxpySquares: []Axpy[float32, float64]{nil, axpySquares1RowsF32AVX2, axpySquares2RowsF32AVX2, axpySquares3RowsF32AVX2},
	}
	sets64[InRows][simd.AVX2] = &Set[float64, float64]{
		ForwardOne: forwardOneRowsF64AVX2, ForwardOneLinear: forwardOneLinearRowsF64AVX2,
		BackwardOne: backwardOneRowsF64AVX2, BackwardOneLinear: backwardOneLinearRowsF64AVX2,
		Dot:         []Dot[float64, float64]{nil, dot1RowsF64AVX2, dot2RowsF64AVX2, dot3RowsF64AVX2},
		DotSquares:  []Dot[float64, float64]{nil, dotSquares1RowsF64AVX2, dotSquares2RowsF64AVX2, dotSquares3RowsF64AVX2},
		Axpy:        []Axpy[float64, float64]{nil, axpy1RowsF64AVX2, axpy2RowsF64AVX2, axpy3RowsF64AVX2},
		AxpySquares: []Axpy[float64, float64]{nil, axpySquares1RowsF64AVX2, axpySquares2RowsF64AVX2, axpySquares3RowsF64AVX2},
	}
	setsSingle[InRows][simd.AVX2] = &Set[float32, float32]{
		ForwardOne: forwardOneRowsSingleAVX2, ForwardOneLinear: forwardOneLinearRowsSingleAVX2,
		BackwardOne: backwardOneRowsSingleAVX2, BackwardOneLinear: backwardOneLinearRowsSingleAVX2,
		Dot:         []Dot[float32, float32]{nil, dot1RowsSingleAVX2, dot2RowsSingleAVX2, dot3RowsSingleAVX2},
		DotSquares:  []Dot[float32, float32]{nil, dotSquares1RowsSingleAVX2, dotSquares2RowsSingleAVX2, dotSquares3RowsSingleAVX2},
		Axpy:        []Axpy[float32, float32]{nil, axpy1RowsSingleAVX2, axpy2RowsSingleAVX2, axpy3RowsSingleAVX2, axpy4RowsSingleAVX2, axpy5RowsSingleAVX2},
		AxpySquares: []Axpy[float32, float32]{nil, axpySquares1RowsSingleAVX2, axpySquares2RowsSingleAVX2, axpySquares3RowsSingleAVX2, axpySquares4RowsSingleAVX2, axpySquares5RowsSingleAVX2},
	}
	sets32[InRows][simd.AVX512] = &Set[float32, float64]{
		ForwardOne: forwardOneRowsF32AVX512, ForwardOneLinear: forwardOneLinearRowsF32AVX512,
		BackwardOne: backwardOneRowsF32AVX512, BackwardOneLinear: backwardOneLinearRowsF32AVX512,
		Dot:         []Dot[float32, float64]{nil, dot1RowsF32AVX512, dot2RowsF32AVX512, dot3RowsF32AVX512, dot4RowsF32AVX512, dot5RowsF32AVX512},
		DotSquares:  []Dot[float32, float64]{nil, dotSquares1RowsF32AVX512, dotSquares2RowsF32AVX512, dotSquares3RowsF32AVX512, dotSquares4RowsF32AVX512, dotSquares5RowsF32AVX512},
		Axpy:        []Axpy[float32, float64]{nil, axpy1RowsF32AVX512, axpy2RowsF32AVX512, axpy3RowsF32AVX512, axpy4RowsF32AVX512, axpy5RowsF32AVX512},
		AxpySquares: []Axpy[float32, float64]{nil, axpySquares1RowsF32AVX512, axpySquares2RowsF32AVX512, axpySquares3RowsF32AVX512, axpySquares4RowsF32AVX512, axpySquares5RowsF32AVX512},
	}
	sets64[InRows][simd.AVX512] = &Set[float64, float64]{
		ForwardOne: forwardOneRowsF64AVX512, ForwardOneLinear: forwardOneLinearRowsF64AVX512,
		BackwardOne: backwardOneRowsF64AVX512, BackwardOneLinear: backwardOneLinearRowsF64AVX512,
		Dot:         []Dot[float64, float64]{nil, dot1RowsF64AVX512, dot2RowsF64AVX512, dot3RowsF64AVX512, dot4RowsF64AVX512, dot5RowsF64AVX512},
		DotSquares:  []Dot[float64, float64]{nil, dotSquares1RowsF64AVX512, dotSquares2RowsF64AVX512, dotSquares3RowsF64AVX512, dotSquares4RowsF64AVX512, dotSquares5RowsF64AVX512},
		Axpy:        []Axpy[float64, float64]{nil, axpy1RowsF64AVX512, axpy2RowsF64AVX512, axpy3RowsF64AVX512, axpy4RowsF64AVX512, axpy5RowsF64AVX512},
		AxpySquares: []Axpy[float64, float64]{nil, axpySquares1RowsF64AVX512, axpySquares2RowsF64AVX512, axpySquares3RowsF64AVX512, axpySquares4RowsF64AVX512, axpySquares5RowsF64AVX512},
	}
	setsSingle[InRows][simd.AVX512] = &Set[float32, float32]{
		ForwardOne: forwardOneRowsSingleAVX512, ForwardOneLinear: forwardOneLinearRowsSingleAVX512,
		BackwardOne: backwardOneRowsSingleAVX512, BackwardOneLinear: backwardOneLinearRowsSingleAVX512,
		Dot:         []Dot[float32, float32]{nil, dot1RowsSingleAVX512, dot2RowsSingleAVX512, dot3RowsSingleAVX512, dot4RowsSingleAVX512, dot5RowsSingleAVX512},
		DotSquares:  []Dot[float32, float32]{nil, dotSquares1RowsSingleAVX512, dotSquares2RowsSingleAVX512, dotSquares3RowsSingleAVX512, dotSquares4RowsSingleAVX512, dotSquares5RowsSingleAVX512},
		Axpy:        []Axpy[float32, float32]{nil, axpy1RowsSingleAVX512, axpy2RowsSingleAVX512, axpy3RowsSingleAVX512, axpy4RowsSingleAVX512, axpy5RowsSingleAVX512},
		AxpySquares: []Axpy[float32, float32]{nil, axpySquares1RowsSingleAVX512, axpySquares2RowsSingleAVX512, axpySquares3RowsSingleAVX512, axpySquares4RowsSingleAVX512, axpySquares5RowsSingleAVX512},
	}
}
