package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Levels are sensors that read a level of their own with noise of its own, whatever the signals are: readings that are stuck. Taken for those of sensors that work they are signal, and errors of all gains. Their readings are left out,
// and have the evidence of normal numbers of unknown mean and variance.
type Levels struct {
	Sensors  []int
	read     [][]float64 // what each of them reads, in all its rows
	evidence float64     // of their readings, less what it costs that these sensors are found
}

// mostLevels is the part of the sensors above which the model is in doubt, and not they: that of broken sensors.
const mostLevels = 0.2

// sureLevel is the part of the largest logarithm of odds that sensors need to be left out at once: those that are stuck spoil all predictions, and others are asked again without them. Of a blurred line of 256 sensors the 13 that were stuck
// had 38 to 123, three others 8 to 15, and none of these anything without those.
const sureLevel = 0.25

// WithLevels is a fit of the same readings from the start, without sensors that seem to read a level of their own, and with those left out that seem to read none without the others; nil where there are neither, or too many.
func (f *Fit) WithLevels() *Fit {
	if f.summed { // the readings were given without the sum
		return nil
	}
	if f.each == 1 && f.Independent() < LeastIndependent {
		return nil
	}
	m, y, next, changed, size := len(f.S), mat.DenseCopyOf(f.read), &Levels{}, false, f.squareOfReadings()
	if f.Levels != nil {
		open, _ := f.Variances()
		wider := f.widerSnapshots()
		for j, mu := range f.Levels.Sensors {
			if read := f.Levels.read[j]; f.isStuck(mu, read, open, wider, size) {
				next.add(mu, read)
			} else {
				copy(f.rowsOf(y, mu), read)
				changed = true
			}
		}
	}
	all := f.oddsOfLevels()
	least := max(math.Log(float64(m)), sureLevel*floats.Max(all)) // as one of them has to be chosen
	for mu, odds := range all {
		if odds > least {
			own := f.rowsOf(y, mu)
			next.add(mu, slices.Clone(own))
			changed = true
			for j := range own {
				own[j] = math.NaN()
			}
		}
	}
	if !changed || float64(len(next.Sensors)) > mostLevels*float64(m) {
		return nil
	}
	next.evidence = -choices(m, len(next.Sensors))
	for _, read := range next.read {
		next.evidence += evidenceOfLevel(read, size)
	}
	fit := f.afresh(f.w, y)
	if fit.Levels = next; len(next.Sensors) == 0 {
		fit.Levels = nil
	}
	return fit
}

func (l *Levels) add(mu int, read []float64) {
	l.Sensors, l.read = append(l.Sensors, mu), append(l.read, read)
}

// isStuck reports whether the readings of a sensor that is left out are likelier for a level of its own than for what the others predict by now, with gains of such variances (open), snapshots so many times as wide, and readings of such a mean square (size).
func (f *Fit) isStuck(mu int, read, open, wider []float64, size float64) bool {
	if f.Correlated != nil || open == nil {
		return true
	}
	return evidenceOfLevel(read, size) > f.unread(mu, read, open, wider).integrated()
}

// oddsOfLevels is by how much the logarithm of the likelihood of a sensor's readings is larger for a level of its own than for what the others predict of it.
func (f *Fit) oddsOfLevels() []float64 {
	odds, size := make([]float64, len(f.S)), f.squareOfReadings()
	likelihoods, left := f.foreseen(f.widerSnapshots())
	for mu := range odds {
		odds[mu] = math.Inf(-1)
		if f.readings[mu] > 1 && left[mu] < (1-leastForeseen)*f.squareBefore(mu) {
			odds[mu] = evidenceOfLevel(f.rowsOf(f.read, mu), size) - likelihoods[mu].integrated()
		}
	}
	return odds
}

// leastForeseen is the part of the variance of z, as it is before any reading, which the other sensors must tell. Of one that alone sees an entry they say nothing: the mean of scenes, which the first row of a Hadamard matrix sees, may well be
// the same in all of them.
const leastForeseen = 0.5

// squareBefore is the sum of the mean squares of z of a sensor's readings before they are read.
func (f *Fit) squareBefore(mu int) (total float64) {
	for j, y := range f.rowsOf(f.read, mu) {
		if math.IsNaN(y) {
			continue
		}
		row, k := f.place(mu, j)
		for i, w := range f.w.Row(row) {
			total += w * w * f.squareOfEntry(i, k)
		}
	}
	return total
}

// squareOfEntry is the mean square of an entry before it is read: sites have the variances of what was read, and the square of what was found stands for it.
func (f *Fit) squareOfEntry(i, k int) float64 {
	if f.Sparse == nil {
		return f.shared()[i]
	}
	return f.X.At(i, k)*f.X.At(i, k) + f.C.At(i, k)
}

// foreseenReading is a reading, and what the others of its snapshot predict of s y: its mean, and its variance, which is 0 where they predict nothing.
type foreseenReading struct {
	y, mean, variance float64
	out               bool // it is left out
}

// foreseenOf are the readings of a sensor in all its rows, with the variances of each snapshot so many times as large.
func (f *Fit) foreseenOf(mu int, wider []float64) []foreseenReading {
	list := make([]foreseenReading, len(f.rowsOf(f.read, mu)))
	for j := range list {
		row, k := f.place(mu, j)
		if own, inverse := f.Predicted(row, k); inverse > 0 {
			y := f.y.At(row, k)
			list[j] = foreseenReading{y: y, mean: f.S[mu]*y - own/inverse, variance: wider[k] / inverse}
		}
	}
	return list
}

// ofReadings is the likelihood of a sensor's readings if the others predict s y_k to m_k with variances v_k: Π_k s N(s y_k; m_k, v_k).
func (f *Fit) ofReadings(list []foreseenReading) ofGain {
	g := f.beforeRead()
	for _, r := range list {
		if r.out || r.variance == 0 {
			continue
		}
		g.n++
		g.a, g.b, g.c = g.a+r.y*r.y/r.variance, g.b+r.y*r.mean/r.variance, g.c+r.mean*r.mean/r.variance
		g.log -= 0.5 * math.Log(2*math.Pi*r.variance)
	}
	return g
}

// evidenceOfLevel is the logarithm of the likelihood of a sensor's readings as n normal numbers, with their mean integrated out over one of the size of all readings (their mean square), and the logarithm of their variance over logRange:
//
//	N(ȳ; 0, Y²) n^(-½) (π Σ(y-ȳ)²)^(-(n-1)/2) Γ((n-1)/2) / logRange.
func evidenceOfLevel(read []float64, size float64) float64 {
	var own []float64
	for _, v := range read {
		if !math.IsNaN(v) {
			own = append(own, v)
		}
	}
	n, mean := float64(len(own)), stat.Mean(own, nil)
	floats.AddConst(-mean, own)
	half, _ := math.Lgamma(0.5 * (n - 1))
	squares := max(floats.Dot(own, own), n*leastNoise*size)
	return -0.5*(mean*mean/size+math.Log(2*math.Pi*size)) - 0.5*math.Log(n) - 0.5*(n-1)*math.Log(math.Pi*squares) + half - math.Log(logRange)
}

// squareOfReadings is their mean square as they were given.
func (f *Fit) squareOfReadings() float64 {
	total, count := 0.0, 0.0
	for _, v := range f.read.RawMatrix().Data {
		if !math.IsNaN(v) {
			total, count = total+v*v, count+1
		}
	}
	return total / count
}
