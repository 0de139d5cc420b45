package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// functions times what an iteration does beside the sweep, an item at a time:
// the posterior of a gain, and the denoiser.
func (b *bench) functions() error {
	b.printf("\n## Functions\n\nNanoseconds an item, 1 thread. numpy does the same vectorised, 1024 sensors at a time and to the same accuracy.\n")
	if !b.cpu {
		defer pin(0)()
	}
	for _, regime := range []struct {
		name   string
		lo, hi float64 // of log10 τ
		most   float64 // ns
	}{{"gain posterior, hard (τ from 1 to 10⁴)", 0, 4, 80}, {"gain posterior, narrow (τ from 10⁶ to 10¹²)", 6, 12, 25}} {
		if err := b.moments(regime.name, regime.lo, regime.hi, regime.most); err != nil {
			return err
		}
	}
	return b.denoiser()
}

// moments times the posteriors of sensors that have seen ten signals.
func (b *bench) moments(title string, least, most, ns float64) error {
	const sensors, signals = 1024, 10
	rng := rand.New(rand.NewPCG(1, 2))
	var n, tau, shift, logMass, mean, variance [sensors]float64
	for mu := range sensors {
		n[mu] = signals
		tau[mu] = math.Pow(10, least+(most-least)*rng.Float64())
		shift[mu] = tau[mu] * (lo + 0.05 + 0.9*(hi-lo)*rng.Float64())
	}
	run := func() {
		quadrature.GainMomentsBatch(logMass[:], mean[:], variance[:], n[:], tau[:], shift[:], 0, 0, lo, hi)
	}
	return b.function(title, ns, sensors, "moments", run, map[string][]float64{"tau": tau[:], "b": shift[:]}, func(numpy *child, directory string) error {
		if _, err := numpy.time("check-moments", 1); err != nil {
			return err
		}
		run()
		for name, got := range map[string][]float64{"mean": mean[:], "variance": variance[:]} {
			want, err := readFloats(directory, name)
			if err != nil {
				return err
			}
			if e := distance(got, want); !(e < 1e-6) { // numpy's slope cancels where posteriors are narrow
				return fmt.Errorf("the %s of gains differs from numpy's by %.2g", name, e)
			}
		}
		return nil
	})
}

func (b *bench) denoiser() error {
	const entries = 1024
	rng := rand.New(rand.NewPCG(3, 4))
	var lambda, sigma, mean, variance [entries]float64
	for i := range lambda {
		lambda[i], sigma[i] = rng.NormFloat64(), 1e-3*(1+rng.Float64())
	}
	p := prior.GaussBernoulli{Density: density, SignalVar: power}
	run := func() { p.Posterior(mean[:], variance[:], lambda[:], sigma[:]) }
	return b.function("denoiser", 5, entries, "denoiser", run, map[string][]float64{"lambda": lambda[:], "sigma": sigma[:]}, nil)
}

// function compares a function of count items, which may take most ns each, with
// numpy's.
func (b *bench) function(title string, most float64, count int, command string, run func(), data map[string][]float64, verify func(*child, string) error) error {
	variants := []*variant{{name: "calamp", f: b.timed(run)}}
	var pids []int
	if b.python != "" {
		directory, err := scratch(float64(count), 1, 10, density, power, noise, lo, hi)
		if err != nil {
			return err
		}
		defer remove(directory)
		for name, values := range data {
			if err := writeFloats(directory, name, values); err != nil {
				return err
			}
		}
		numpy, err := b.startNumpy(directory, 1, false)
		if err != nil {
			return err
		}
		defer numpy.stop()
		if verify != nil {
			if err := verify(numpy, directory); err != nil {
				return err
			}
		}
		variants = append(variants, numpy.variant("numpy", command))
		pids = append(pids, numpy.command.Process.Pid)
	}
	c, err := b.measure(variants, pids)
	if err != nil {
		return err
	}
	b.table(c, title, "ns", 1e6/float64(count), "numpy")
	each := make([]float64, len(variants[0].times))
	for i, ms := range variants[0].times {
		each[i] = 1e6 * ms / float64(count)
	}
	b.recordTime(title, most, "ns", each)
	return nil
}
