package joint

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

const (
	// densitySteps are those of expectation–maximisation for a density, from the one at hand.
	densitySteps = 10

	// largestOdds is the logarithm of odds beyond which they are certain: e to it, times a density, is a number.
	largestOdds = 600
)

// Gain is the logarithm of how much likelier fields N(x; λ, Σ) of n rows of p values (P×N each) are if the values of a row are there in all signals or in none than if
// each is there by itself, whatever the densities are. Values that are there are N(mean, variance), by signal; with columns of 2 they are the parts of complex ones. Σ = +Inf says nothing.
func Gain(n, p, columns int, lambda, sigma, mean, variance []float64, density float64) float64 {
	if density == 1 { // none is absent, and both are the same
		return 0
	}
	odds, rows := make([]float64, vector.Padded(n*p)), make([]float64, vector.Padded(n)) // logarithms of how much likelier a value is if it is there
	for k := range p {
		v := variance[k]
		for j := k * n; j < (k+1)*n; j++ {
			odds[j] = 1 + v/sigma[j]
		}
	}
	for j := n * p; j < len(odds); j++ {
		odds[j] = 1
	}
	vector.Log(odds)
	for k := range p {
		m, v := mean[k], variance[k]
		for i := range n {
			j := k*n + i
			if s := sigma[j]; math.IsInf(s, 1) {
				odds[j] = 0
			} else {
				off := lambda[j] - m
				odds[j] = 0.5 * (lambda[j]*lambda[j]/s - off*off/(v+s) - odds[j])
			}
			rows[i] += odds[j]
		}
	}
	if columns > 1 {
		for k := 0; k < p; k += 2 {
			for i := range n {
				odds[k/2*n+i] = odds[k*n+i] + odds[(k+1)*n+i]
			}
		}
		p /= 2
		odds = odds[:vector.Padded(n*p)]
		clear(odds[n*p:])
	}
	return evidence(rows, n, density) - evidence(odds, n*p, density)
}

// evidence is Σ log(1-ρ+ρ e^l) at the best ρ, over the first count of the logarithms l, which it changes.
func evidence(l []float64, count int, density float64) (total float64) {
	for i, v := range l[:count] {
		if v > largestOdds {
			total += v - largestOdds
			l[i] = largestOdds
		}
	}
	vector.Exp(l)
	for range densitySteps {
		there := 0.0
		for _, e := range l[:count] {
			there += density * e / (1 - density + density*e)
		}
		density = min(max(there/float64(count), leastDensity), 1-leastDensity)
	}
	for i, e := range l {
		l[i] = 1 - density + density*e
	}
	vector.Log(l)
	for _, v := range l[:count] {
		total += v
	}
	return total
}

// leastOwn is the logarithm of the odds from which on values of a row are there by themselves. Values that are small by chance had them in at most 5 % of the rows that signals
// share (2 to 20 signals, noise 1e-6 to 1e-2 beside signals of variance 1); where one row in ten is of some signals only, 13 % or more have them.
const leastOwn = 3

// Own is the number of rows whose fields are likelier, by leastOwn in the logarithm, if each value is there by itself than if all are there or none, as of [Gain].
func Own(n, p, columns int, lambda, sigma, mean, variance []float64, density float64) (count int) {
	for i := range n {
		together, apart := 0.0, 0.0
		for k := 0; k < p; k += columns {
			odds := 0.0
			for c := k; c < k+columns; c++ {
				j := c*n + i
				if s := sigma[j]; !math.IsInf(s, 1) {
					off := lambda[j] - mean[c]
					odds += 0.5 * (lambda[j]*lambda[j]/s - off*off/(variance[c]+s) - math.Log1p(variance[c]/s))
				}
			}
			together += odds
			apart += mixed(odds, density)
		}
		if apart-mixed(together, density) > leastOwn {
			count++
		}
	}
	return count
}

// mixed is log(1-ρ+ρ e^l).
func mixed(l, density float64) float64 {
	_, log := presence(density, l, 0)
	return log
}

// Pattern is what the values of a row are proportional to, with a mean square of 1 and a positive sum, as far as one pattern explains the fields, and by how many standard errors the variance of everything else
// differs from zero: +Inf where there is a second pattern. Of a variance r of which the readings gave the part γ (see score) in n rows the standard error is r √(2/nγ²).
func (r *Rows) Pattern() (pattern []float64, errors float64) {
	p, count, known := r.P, len(r.basis.variance), 0.0
	for k, d := range r.basis.variance {
		times := r.basis.others[k]
		if gamma := 1 - r.within[k]/(r.count*d); times > 0 && d > 0 && gamma > 0 {
			known += times * 0.5 * r.count * gamma * gamma
			if gamma > 0.5 { // readings know this direction better than the prior: few rows say so, too
				known = math.Inf(1)
			}
		}
	}
	pattern = make([]float64, p)
	total, square := 0.0, 0.0
	for k := range p {
		pattern[k] = r.basis.to[k*count+count-1]
		total += pattern[k]
		square += pattern[k] * pattern[k]
	}
	if square == 0 { // what is outside of the readings' span leads
		return pattern, math.Inf(1)
	}
	for k := range p {
		pattern[k] *= math.Copysign(math.Sqrt(float64(p)/square), total)
	}
	return pattern, math.Sqrt(known)
}
