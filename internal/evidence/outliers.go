package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Outliers are single readings that nothing explains: spikes, dropped bits. They are left out, and each has the evidence of a number of unknown size,
//
//	p(y) = ∫ N(y; 0, v) d log v / logRange = 1/(|y| logRange),
//
// with |y| no less than the noise.
type Outliers struct {
	At       [][2]int  // row and snapshot of each
	read     []float64 // what they read
	evidence float64   // of these readings
	cost     float64   // what it costs that they are found
}

const (
	// mostOutliers is the part of the readings of a snapshot above which the model is in doubt, and not they: that of single readings in message passing.
	mostOutliers = 0.2

	// medianSquare is the median of the square of a normal number.
	medianSquare = 0.4549364
)

// OutliersSeen are the readings (row and snapshot) that seem to be outliers, and whether they are others than those left out. The largest spoil what is predicted of others: they come first, and
// what is left is asked again, with those that were left out. Sensors that rather read a level of their own, where there may be such, are none of them. Correlated snapshots are not asked.
func (f *Fit) OutliersSeen(levels bool) (seen [][2]int, others bool) {
	if f.summed || f.Correlated != nil {
		return nil, false
	}
	m, p := f.read.Dims()
	left := 0
	if f.Outliers != nil {
		left = len(f.Outliers.At)
	}
	worth, ofLevels := f.worthOfOutliers(levels)
	least := max(choices(m*p, left+1)-choices(m*p, left), sureLevel*floats.Max(ofLevels))
	for _, each := range worth {
		least = max(least, sureLevel*floats.Max(each))
	}
	for mu, each := range worth {
		for j, w := range each {
			row, k := f.place(mu, j)
			out := f.isOutlier(row, k)
			switch {
			case w == 0 && out: // it stays
				seen = append(seen, [2]int{row, k})
			case w > 0 && out: // it is taken back
				others = true
			case w > least && floats.Sum(each) > ofLevels[mu]:
				seen, others = append(seen, [2]int{row, k}), true
			}
		}
	}
	return seen, others && f.fewInEach(seen)
}

// fewInEach reports whether no snapshot loses a good part of its readings.
func (f *Fit) fewInEach(outliers [][2]int) bool {
	m, p := f.read.Dims()
	lost := make([]float64, p)
	for _, at := range outliers {
		lost[at[1]]++
	}
	return floats.Max(lost) <= mostOutliers*float64(m)
}

// worthOfOutliers is by how much the logarithm of the likelihood of a sensor's readings rises where each is left out, or taken back, and where the sensor reads a level of its own, if there may be such.
func (f *Fit) worthOfOutliers(levels bool) (worth [][]float64, ofLevels []float64) {
	wider, oddest := f.widerSnapshots(), f.oddestEntries()
	for mu := range f.S {
		worth = append(worth, f.inTurn(f.withLeftOut(mu, wider), oddest))
	}
	if levels {
		return worth, f.oddsOfLevels()
	}
	ofLevels = make([]float64, len(f.S))
	floats.AddConst(math.Inf(-1), ofLevels)
	return worth, ofLevels
}

// isOutlier reports whether a reading is left out as one.
func (f *Fit) isOutlier(row, k int) bool {
	return f.Outliers != nil && slices.Contains(f.Outliers.At, [2]int{row, k})
}

// widerSnapshots is how many times as large residuals of each snapshot are as they should be, in squares, by their median: those of one that is brighter than others are larger in all readings.
func (f *Fit) widerSnapshots() []float64 {
	m, p := f.read.Dims()
	wider, misfits := make([]float64, p), []float64(nil)
	for k := range p {
		misfits = misfits[:0]
		for mu := range m {
			if own, inverse := f.Predicted(mu, k); inverse > 0 {
				misfits = append(misfits, own*own/inverse)
			}
		}
		if wider[k] = 1; len(misfits) > 0 {
			slices.Sort(misfits)
			wider[k] = max(1, stat.Quantile(0.5, stat.Empirical, misfits, nil)/medianSquare)
		}
	}
	return wider
}

// oddestEntries is by how much the evidence of each snapshot rises most where an entry has a variance of its own in it (see [Fit.readmit]). Where that is more than a reading is worth, it is the entry that
// is unusual, as a spot is that appears in one scene alone, and not the reading.
func (f *Fit) oddestEntries() []float64 {
	_, p := f.read.Dims()
	oddest := make([]float64, p)
	for _, a := range f.Families {
		for _, at := range a.patterns {
			if len(at.rows) == 0 {
				continue
			}
			reach, _ := f.reachOf(at)
			fields := mat.NewVecDense(f.w.Columns, nil)
			for _, k := range at.snapshots {
				fields.Zero()
				for _, mu := range at.rows {
					floats.AddScaled(fields.RawVector().Data, f.G.At(mu, k), f.w.Row(mu))
				}
				for i, q := range fields.RawVector().Data {
					if f.seen[i] && reach[i] > 0 {
						ratio := max(1, q*q/reach[i])
						oddest[k] = max(oddest[k], 0.5*(ratio-1-math.Log(ratio)))
					}
				}
			}
		}
	}
	return oddest
}

// withLeftOut are the readings of a sensor, and what is predicted of them, with those that are left out. Of these the variance is that of independent entries.
func (f *Fit) withLeftOut(mu int, wider []float64) []foreseenReading {
	list := f.foreseenOf(mu, wider)
	if f.Outliers == nil {
		return list
	}
	for j, at := range f.Outliers.At {
		row, k := at[0], at[1]
		if f.sensorOf(row) != mu {
			continue
		}
		own := foreseenReading{y: f.Outliers.read[j], variance: f.noiseOf(mu), out: true}
		for i, v := range f.w.Row(row) {
			own.mean += v * f.X.At(i, k)
			own.variance += v * v * f.C.At(i, k)
		}
		if f.offset() {
			own.mean += f.Offsets.B[mu]
		}
		own.variance *= wider[k]
		list[(row-mu*f.each)*len(wider)+k] = own
	}
	return list
}

// inTurn is by how much the logarithm of the likelihood of a sensor's readings rises where each is left out, or taken back; 0 where it stays. They are asked in turn, the one of largest worth first, since one that is wrong spoils the gain, and
// with it what all others are expected to be.
func (f *Fit) inTurn(list []foreseenReading, oddest []float64) []float64 {
	worth := make([]float64, len(list))
	present, left := 0, 0
	for _, r := range list {
		if r.variance > 0 {
			present++
		}
		if r.out {
			left++
		}
	}
	for range list {
		all, best, most := f.ofReadings(list).integrated(), -1, float64(worthReadmitting)
		for k := range list {
			r := &list[k]
			if r.variance == 0 || worth[k] > 0 || !r.out && 2*(left+1) >= present {
				continue
			}
			own := f.evidenceOfOutlier(r.y)
			if r.out {
				own = -own
			}
			r.out = !r.out
			rise := f.ofReadings(list).integrated() + own - all
			if r.out = !r.out; rise > most && (r.out || rise > oddest[k%len(oddest)]) {
				best, most = k, rise
			}
		}
		if best < 0 {
			break
		}
		if list[best].out = !list[best].out; list[best].out {
			left++
		} else {
			left--
		}
		worth[best] = most
	}
	return worth
}

// LeavingOut is a fit of the same readings but these, begun at what f found.
func (f *Fit) LeavingOut(outliers [][2]int) *Fit {
	fit := f.WithoutReadings(outliers)
	fit.beginAt(f, 0, 1)
	return fit
}

// WithoutReadings is a fit of the same readings but these (row and snapshot of each) from the start; nil where a snapshot would lose a good part of its own.
func (f *Fit) WithoutReadings(outliers [][2]int) *Fit {
	if !f.fewInEach(outliers) {
		return nil
	}
	m, p := f.read.Dims()
	y := mat.DenseCopyOf(f.read)
	if out := f.Outliers; out != nil {
		for j, at := range out.At {
			y.Set(at[0], at[1], out.read[j])
		}
	}
	next := &Outliers{At: outliers, cost: choices(m*p, len(outliers))}
	for _, at := range outliers {
		reads := y.At(at[0], at[1])
		next.read = append(next.read, reads)
		next.evidence += f.evidenceOfOutlier(reads)
		y.Set(at[0], at[1], math.NaN())
	}
	fit := f.afresh(f.w, y)
	if fit.Outliers = next; len(outliers) == 0 {
		fit.Outliers = nil
	}
	return fit
}

// evidenceOfOutlier is log p(y) of an outlier.
func (f *Fit) evidenceOfOutlier(y float64) float64 {
	return -math.Log(max(math.Abs(y), math.Sqrt(f.Noise)) * logRange)
}

// OfOutliers is the logarithm of the evidence of readings that are left out as outliers.
func (f *Fit) OfOutliers() float64 {
	if f.Outliers == nil {
		return 0
	}
	return f.Outliers.evidence
}
