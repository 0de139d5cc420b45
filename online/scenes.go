package online

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/cholesky"
)

// scene is a pattern that the calibrated readings ŝy of several samples had in common.
type scene struct {
	Pattern []float64 // M (2M of complex readings), of length 1; the mean of the samples that it was nearest to
	Samples float64   // how many these were
	Last    uint64    // how many had been committed when the latest came
}

const (
	mostScenes = 4

	// sameScene is the part of a sample's power in a scene's pattern from which on
	// the sample is one of the scene.
	sameScene = 0.5

	// byChance is how many standard deviations of what unrelated patterns have in
	// common a sample must have in common with the scenes, to count for less.
	byChance = 3
)

func (s *scene) clone() scene {
	c := *s
	c.Pattern = slices.Clone(s.Pattern)
	return c
}

func (s *scene) validate(m int) error {
	if len(s.Pattern) != m || !amp.AllFinite(s.Pattern) || !(s.Samples >= 1) || math.IsInf(s.Samples, 1) {
		return fmt.Errorf("state: a scene of %d samples with a pattern of %d readings", int(s.Samples), len(s.Pattern))
	}
	return nil
}

// weigh says for how much the sample counts: less than 1 where earlier samples have
// taught the same. Errors that samples of one scene share, the entries that are found in none of
// them above all, do not average over the samples. With the part R² of its power in
// the patterns of earlier scenes, what is due to chance taken off, a sample
// counts (1-R²)/(1+R²). That is empirical, see docs/log/validation.md. A block needs it, too, for scenes before it. After 100 samples of one scene, of one with amplitudes correlated by .98 and by .9, 95 % intervals
// of s cover 22, 67 and 92 % without it, and 97 to 100 % with it; of the first one as little with blocks, which it is none of.
func (c *Calibrator) weigh() float64 {
	z := c.scene
	c.novelReadings(z)
	if !normalise(z) {
		return 1
	}
	novel := c.novelTo(c.state.Scenes)
	if b := c.state.Block; b != nil {
		b.Novel += c.novelTo(b.Scenes)
	}
	c.remember(z)
	return countsAs(novel)
}

// countsAs is for how much a sample counts of whose power such a part is novel: (1-R²)/(1+R²).
func countsAs(novel float64) float64 { return novel / (2 - novel) }

// weightOf is for how much a sample would count that nothing is learned from.
func (c *Calibrator) weightOf() float64 {
	if c.opt.Commit != Sane || c.opt.Still {
		return 1
	}
	c.novelReadings(c.scene)
	if !normalise(c.scene) {
		return 1
	}
	return countsAs(c.novelTo(c.state.Scenes))
}

// novelTo is the part of the power of c.scene that scenes do not have.
func (c *Calibrator) novelTo(scenes []scene) float64 {
	rest, rank := max(0, 1-c.explained(scenes)), float64(len(scenes)) // the part rounds to a little above 1
	m := float64(c.used() * c.rows)
	novel := min(1, rest*m/max(1, m-rank))
	if 1-novel < byChance*math.Sqrt(2*max(1, rank)/float64(c.parts))/m {
		novel = 1
	}
	return novel
}

// explained is the part of the power of c.scene in the span of the scenes' patterns.
func (c *Calibrator) explained(scenes []scene) (power float64) {
	for i, s := range scenes {
		size := len(c.scene)
		q := c.basis[i*size : (i+1)*size]
		copy(q, s.Pattern)
		for j := range i {
			before := c.basis[j*size : (j+1)*size]
			c.addTimes(q, -c.inner(before, q), before)
		}
		length := norm(q)
		if length < 1e-3 {
			clear(q)
			continue
		}
		scale(q, 1/length)
		power += square(c.inner(q, c.scene))
	}
	return power
}

// remember puts a pattern to the scene that it is one of, or in the place of the one
// that was seen last longest ago.
func (c *Calibrator) remember(z []float64) {
	s := &c.state
	best, most := -1, sameScene
	for i, scene := range s.Scenes {
		if power := square(c.inner(scene.Pattern, z)); power > most {
			best, most = i, power
		}
	}
	if best >= 0 {
		scene := &s.Scenes[best]
		scene.Samples++
		scene.Last = s.Samples
		toPattern := cmplx.Conj(c.inner(scene.Pattern, z)) // of length at least the root of sameScene
		unit := toPattern / complex(cmplx.Abs(toPattern), 0)
		c.addTimes(scene.Pattern, complex(1/scene.Samples, 0)*unit, z)
		scale(scene.Pattern, 1/norm(scene.Pattern))
		return
	}
	if len(s.Scenes) < mostScenes {
		s.Scenes = append(s.Scenes, scene{Pattern: slices.Clone(z), Samples: 1, Last: s.Samples})
		return
	}
	oldest := 0
	for i, scene := range s.Scenes {
		if scene.Last < s.Scenes[oldest].Last {
			oldest = i
		}
	}
	scene := &s.Scenes[oldest]
	copy(scene.Pattern, z)
	scene.Samples, scene.Last = 1, s.Samples
}

// novelReadings are the calibrated readings ŝy without what the prior's mean gives: 0 where there is none.
func (c *Calibrator) novelReadings(z []float64) {
	if c.parts == 1 {
		c.sample.NovelReadings(z)
		return
	}
	e := c.sample // whose prior has the mean 0
	for j := range len(z) / complexColumns {
		v, mu := complex128(0), j/c.rows
		if y := c.number(c.y, j); c.uses(mu) && !cmplx.IsNaN(y) {
			v = cmplx.Rect(e.S[mu], e.Phase[mu]) * y
		}
		z[complexColumns*j], z[complexColumns*j+1] = real(v), imag(v)
	}
}

// inner is Σ a*b over readings.
func (c *instrument) inner(a, b []float64) (total complex128) {
	if c.parts == 1 {
		return complex(cholesky.Dot(a, b), 0)
	}
	for j := range len(a) / complexColumns {
		total += cmplx.Conj(c.number(a, j)) * c.number(b, j)
	}
	return total
}

// addTimes adds by times v.
func (c *instrument) addTimes(to []float64, by complex128, v []float64) {
	if c.parts == 1 {
		addTo(to, real(by), v)
		return
	}
	for j := range len(v) / complexColumns {
		add := by * c.number(v, j)
		to[complexColumns*j] += real(add)
		to[complexColumns*j+1] += imag(add)
	}
}

// normalise makes the length of v 1, unless that is 0.
func normalise(v []float64) bool {
	length := norm(v)
	if length > 0 {
		scale(v, 1/length)
	}
	return length > 0
}

func norm(v []float64) float64 { return math.Sqrt(cholesky.Dot(v, v)) }

// addTo adds c times v.
func addTo(to []float64, c float64, v []float64) {
	for i, x := range v {
		to[i] += c * x
	}
}

func scale(v []float64, c float64) {
	for i := range v {
		v[i] *= c
	}
}
