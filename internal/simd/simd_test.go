package simd

import "testing"

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name string
		best Level
		want Level
		ok   bool
	}{
		{"", AVX2, AVX2, true},
		{"", AVX512, AVX512, true},
		{"avx512", AVX512, AVX512, true},
		{"go", AVX512, Go, true},
		{"avx2", AVX512, AVX2, true},
		{"avx512", AVX2, AVX2, false},
		{"AVX2", AVX2, AVX2, false},
	} {
		if got, err := choose(c.name, c.best); got != c.want || (err == nil) != c.ok {
			t.Errorf("choose(%q, %v) = %v, %v", c.name, c.best, got, err)
		}
	}
}

// The environment may ask for an instruction set: it must be one of those here.
func TestChosenLevelIsThere(t *testing.T) {
	if _, err := Active(); err != nil {
		t.Fatal(err)
	}
}
