package prior

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
)

// CommonShift is one entry of P signals seen through fields that are off by the same unknown number,
//
//	λ_k = x_k + c a_k + N(0, Σ_k),   c ~ N(0, Var),
//
// as offsets of sensors make them, and gains where all signals are read in the same proportions a. Given c the entries are independent, so one integral over c is left, for any
// prior. Posteriors are sharp where one c makes several entries zero: the integral goes over panels as wide
// as a field is uncertain, where anything is left of the density. It is not for several goroutines at once.
type CommonShift struct {
	Along []float64 // a (P), none of it 0; nil where all are 1

	// Out: given λ, the logarithm of ∫ N(c; 0, Var) ∏ Z(λ_k - c, Σ_k) dc, with [Prior.LogNorm] for log Z; the mean of c and
	// its variance; and the variance of the sum of all entries, each times its a.
	LogNorm, Mean, Var, SumVar float64

	highest        float64 // the density where it would be largest of Gaussian entries
	sorted         []float64
	panels         []shiftPanel
	nodes          []shiftNode
	at             []float64 // fields less c
	means, spreads []float64 // posteriors at all nodes
	fields, sigmas []float64
}

// shiftPanel is an interval with the highest place seen in it.
type shiftPanel struct{ lo, width, height float64 }

// shiftNode is a place of the rule, with the logarithm of the density there.
type shiftNode struct{ c, log, weight float64 }

const (
	// mostPanels bounds the panels of one interval, where fields are known a thousand times better than others: the density is then cut by
	// what nodes there are.
	mostPanels = 1 << 12

	shiftReach = 8.5 // standard deviations of c that are looked at
	shiftNear  = 8   // standard deviations of a field within which an entry may be zero
	shiftDepth = 40  // below its highest place the density is left out
	shiftSlack = 8   // by which a peak may be higher than at the fields next to it
	shiftOrder = 10  // of the rule on a panel
)

var shiftRuleX, shiftRuleW = func() (x, w []float64) {
	x, w = make([]float64, shiftOrder), make([]float64, shiftOrder)
	quad.Legendre{}.FixedLocations(x, w, 0, 1)
	return x, w
}()

// Posterior writes mean and variance of the entries of all signals.
func (s *CommonShift) Posterior(p Prior, mean, variance, lambda, sigma []float64, shiftVar float64) {
	count := len(lambda)
	s.at = resized(s.at, count)
	if !(shiftVar > 0) {
		p.Posterior(mean, variance, lambda, sigma)
		s.LogNorm, s.Mean, s.Var, s.SumVar = SumLogNorm(p, lambda, sigma), 0, 0, 0
		for k, v := range variance {
			s.SumVar += s.along(k) * (s.along(k) * v)
		}
		return
	}
	s.place(p, lambda, sigma, shiftVar)
	top := math.Inf(-1)
	for _, n := range s.nodes {
		top = max(top, n.log)
	}
	clear(mean)
	clear(variance)
	total, centre, within := 0.0, 0.0, 0.0
	for j := range s.nodes {
		n := &s.nodes[j]
		n.weight *= math.Exp(n.log - top)
		total += n.weight
		centre += n.weight * n.c
	}
	for j, n := range s.nodes {
		copy(s.sigmas[j*count:], sigma)
		for k, l := range lambda {
			s.fields[j*count+k] = l - s.along(k)*n.c
		}
	}
	p.Posterior(s.means, s.spreads, s.fields, s.sigmas)
	for j, n := range s.nodes {
		means, spreads := s.means[j*count:(j+1)*count], s.spreads[j*count:(j+1)*count]
		w := n.weight / total
		for k, m := range means {
			mean[k] += w * m
			variance[k] += w * spreads[k]
			within += w * s.along(k) * (s.along(k) * spreads[k])
		}
	}
	s.Mean, s.Var, s.SumVar = centre/total, 0, within
	for j, n := range s.nodes {
		w, together := n.weight/total, 0.0
		for k, m := range s.means[j*count : (j+1)*count] {
			d := m - mean[k]
			variance[k] += w * d * d
			together += s.along(k) * d
		}
		s.SumVar += w * together * together
		s.Var += w * (n.c - s.Mean) * (n.c - s.Mean)
	}
	s.LogNorm = top + math.Log(total) - 0.5*math.Log(2*math.Pi*shiftVar)
}

func (s *CommonShift) shifted(lambda []float64, c float64) {
	for k, l := range lambda {
		s.at[k] = l - s.along(k)*c
	}
}

func (s *CommonShift) along(k int) float64 {
	if s.Along == nil {
		return 1
	}
	return s.Along[k]
}

// log is the logarithm of the density of c, without its normaliser.
func (s *CommonShift) log(p Prior, lambda, sigma []float64, c, shiftVar float64) float64 {
	s.shifted(lambda, c)
	return SumLogNorm(p, s.at, sigma) - 0.5*c*(c/shiftVar)
}

// place finds the panels where anything is left of the density, and puts nodes there: near fields, where entries may be zero, they are as
// wide as these are uncertain, and elsewhere as prior and c allow.
func (s *CommonShift) place(p Prior, lambda, sigma []float64, shiftVar float64) {
	reach := shiftReach * math.Sqrt(shiftVar)
	// In units of c the fields are at λ_k/a_k, and known to √Σ_k/|a_k|.
	s.sorted = s.sorted[:0]
	least, most, steepest := math.Inf(1), 0.0, 0.0
	for k, l := range lambda {
		a := s.along(k)
		s.sorted = append(s.sorted, l/a)
		least, most, steepest = min(least, sigma[k]/(a*a)), max(most, sigma[k]/(a*a)), max(steepest, a*a)
	}
	slices.Sort(s.sorted)
	narrow := math.Sqrt(min(shiftVar, least))
	wide := max(narrow, math.Sqrt(min(shiftVar, (p.Variance()/steepest+least)/float64(len(lambda)))))
	near := shiftNear * math.Sqrt(most)

	s.panels = s.panels[:0]
	top, end := math.Inf(-1), -reach
	s.highest = s.log(p, lambda, sigma, min(max(s.likely(p, lambda, sigma, shiftVar), -reach), reach), shiftVar)
	for i := 0; i < len(s.sorted) && s.sorted[i]-near < reach; {
		lo, hi := max(s.sorted[i]-near, -reach), 0.0
		if lo > end {
			top = s.cut(end, lo, wide, top, p, lambda, sigma, shiftVar)
		}
		height := math.Inf(-1)
		for hi = lo; i < len(s.sorted) && s.sorted[i]-near <= hi; i++ {
			hi = s.sorted[i] + near
			height = max(height, s.log(p, lambda, sigma, min(max(s.sorted[i], -reach), reach), shiftVar))
		}
		hi = min(hi, reach)
		top = max(top, height)
		if hi > lo && height > top-shiftDepth-shiftSlack {
			top = s.cut(lo, hi, narrow, top, p, lambda, sigma, shiftVar)
		}
		end = max(end, hi)
	}
	if end < reach {
		top = s.cut(end, reach, wide, top, p, lambda, sigma, shiftVar)
	}
	s.nodes = s.nodes[:0]
	for _, panel := range s.panels {
		if panel.height < top-shiftDepth {
			continue
		}
		for i, x := range shiftRuleX {
			c := panel.lo + x*panel.width
			s.nodes = append(s.nodes, shiftNode{c: c, log: s.log(p, lambda, sigma, c, shiftVar), weight: panel.width * shiftRuleW[i]})
		}
	}
	all := len(s.nodes) * len(lambda)
	for _, v := range []*[]float64{&s.means, &s.spreads, &s.fields, &s.sigmas} {
		*v = resized(*v, all)
	}
}

// likely is where c would be likeliest if the entries were Gaussian.
func (s *CommonShift) likely(p Prior, lambda, sigma []float64, shiftVar float64) float64 {
	field, precision, own := 0.0, 1/shiftVar, p.Variance()
	for k, l := range lambda {
		a := s.along(k)
		field += a * (l - p.Mean()) / (sigma[k] + own)
		precision += a * (a / (sigma[k] + own))
	}
	return field / precision
}

// without is how far above c the density is still that much lower than where it counts: the slope of log Z(λ - ac) is a(E[x] - λ + ac)/Σ, and E[x] is nearer to λ - ac than
// what the prior is wide. The rise over h is then at most gh + Ah²/2, with the slopes g at c and their change A.
func (s *CommonShift) without(p Prior, lambda, sigma []float64, c, lower, shiftVar float64) float64 {
	if !(lower > 0) {
		return 0
	}
	within := math.Abs(p.Mean()) + shiftReach*math.Sqrt(p.Variance())
	g, change := math.Abs(c)/shiftVar, 1/shiftVar
	for k, l := range lambda {
		a := math.Abs(s.along(k))
		g += a * (math.Abs(l-s.along(k)*c) + within) / sigma[k]
		change += a * (a / sigma[k])
	}
	return 2 * lower / (g + math.Sqrt(g*g+2*change*lower))
}

// cut adds the panels from lo to hi, and returns the highest place so far. A panel is looked at in its middle, too: a peak of P equal fields
// is √P times narrower than one of them.
func (s *CommonShift) cut(lo, hi, width, top float64, p Prior, lambda, sigma []float64, shiftVar float64) float64 {
	count := min(math.Ceil((hi-lo)/width), mostPanels)
	if !(count >= 1) { // no number: nothing is known of this interval
		return top
	}
	width = (hi - lo) / count
	left := s.log(p, lambda, sigma, lo, shiftVar)
	for j := 0; j < int(count); j++ {
		at := lo + float64(j)*width
		if nothing := s.without(p, lambda, sigma, at, max(top, s.highest)-shiftDepth-shiftSlack-left, shiftVar) / width; nothing > 2 {
			if float64(j)+nothing >= count {
				break
			}
			j += int(nothing)
			at = lo + float64(j)*width
			left = s.log(p, lambda, sigma, at, shiftVar)
		}
		middle, right := s.log(p, lambda, sigma, at+0.5*width, shiftVar), s.log(p, lambda, sigma, at+width, shiftVar)
		s.panels = append(s.panels, shiftPanel{at, width, max(left, middle, right)})
		top = max(top, left, middle, right)
		left = right
	}
	return top
}
