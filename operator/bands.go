package operator

import (
	"fmt"
	"math"
	"slices"
)

// Bands divides the cosines of images of height×width pixels, numbered as those of the basis
// dct2 (row by row), into bands of frequency: band 0 is the mean, and the others are rings of
// equal width in the logarithm of the frequency √((u/height)² + (v/width)²). It returns the band of each (N). The error says that there
// are fewer frequencies than bands.
func Bands(height, width, bands int) ([]int, error) {
	frequency := make([]float64, height*width)
	for i := range frequency {
		frequency[i] = math.Hypot(float64(i/width)/float64(height), float64(i%width)/float64(width))
	}
	distinct := slices.Clone(frequency)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	if bands < 1 || bands > len(distinct) {
		return nil, fmt.Errorf("images of %d×%d pixels have %d frequencies, expected 1 to as many bands, found %d", height, width, len(distinct), bands)
	}
	of := make([]int, len(frequency))
	if bands == 1 {
		return of, nil
	}
	least, most := math.Log(distinct[1]), math.Log(distinct[len(distinct)-1])
	band := make(map[float64]int, len(distinct))
	previous := 0
	for at, f := range distinct[1:] {
		ring := 1 + int(float64(bands-1)*(math.Log(f)-least)/max(most-least, math.SmallestNonzeroFloat64))
		ring = min(ring, bands-1, previous+1)                  // none is left out
		ring = max(ring, previous, bands-len(distinct[1:])+at) // and there are enough
		band[f], previous = ring, ring
	}
	for i, f := range frequency {
		of[i] = band[f]
	}
	return of, nil
}
