package solve

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
)

// print tells what was found, to standard output unless a file goes there.
func (s *solve) print(data *dataset.Problem, res *calamp.Result, others comparisons, written []string) error {
	if s.json {
		return s.PrintJSON(s.object(data, res, others, written))
	}
	var text console.Summary
	text.Line("problem", "%v", facts.SizeOf(data))
	text.Line("status", "%v: %s; %v", res.Status, res.Reason, res.Wall.Round(time.Millisecond))
	if learned := slices.Concat(s.prior.LearnedNames(), s.model.Learned); len(learned) > 0 {
		text.Line("model", "%s, %s; %s learned", s.prior.Words(&s.model), s.model.ChannelWords(), strings.Join(learned, ", "))
	}
	for _, line := range s.groups.Words() {
		text.Line("group", "%s", line)
	}
	if res.Amplitude != nil {
		text.Line("signals", "from %s to %s times as large as their root mean square", console.Short(slices.Min(res.Amplitude)), console.Short(slices.Max(res.Amplitude)))
	}
	s.joint.Line(&text, res)
	if res.Plan.Has("mean removal") {
		text.Line("matrix", "%s", facts.MeansRemoved)
	}
	if res.Phase != nil {
		complexLines(&text, res, s.model)
		if kappa := s.phases.Concentration(); kappa != nil {
			text.Line("phases", "spread about the nominal ones by %s rad: κ = %s, learned", console.Short(min(math.Pi/math.Sqrt(3), 1/math.Sqrt(*kappa))), console.Short(*kappa))
		}
	} else {
		calibrationLines(&text, res, s.model)
	}
	if s.model.AtReading() && len(res.NoiseVar) > 0 {
		text.Line("noise", "added to readings, of variance %s: before the division by s from %s to %s", s.model.NoiseAtReading(), console.Short(slices.Min(res.NoiseVar)), console.Short(slices.Max(res.NoiseVar)))
	}
	s.belong.Line(&text)
	s.offset.Line(&text, res)
	s.doubt.lines(&text, res)
	facts.BrokenLines(&text, res)
	facts.OutlierLines(&text, res)
	facts.TruthLines(&text, s.metricsOf(data, res))
	others.table(&text)
	if len(written) > 0 {
		text.Line("written", "%s", strings.Join(written, ", "))
	} else if s.out == "" {
		text.Line("written", "no result: give -o R.npz to keep it")
	}
	switch {
	case !s.outputs().TakesStdout():
		return s.Print(text.String())
	case s.Quiet:
		return nil
	}
	return s.PrintBeside(text.String())
}

// object is what solve prints with --json.
func (s *solve) object(data *dataset.Problem, res *calamp.Result, others comparisons, written []string) console.Object {
	return console.Object{
		"status", res.Status, "reason", res.Reason, "iterations", res.Iterations, "wall_s", res.Wall.Seconds(), "", facts.SizeOf(data), "", s.prior,
		"groups?", s.groups.Found(), "amplitude?", res.Amplitude, "model", s.model,
		"phase?", s.phaseWord(res), "phase_concentration?", s.phases.Concentration(), "phase_sd?", phaseSD(res),
		"options", s.solver.JSON(), "", s.faults.JSON(res), "", s.offset.JSON(), "", s.belong.JSON(), "", s.joint.JSON(res),
		"means_removed", res.Plan.Has("mean removal"), "plan", res.Plan, "scale_sd?", console.Known(res.ScaleSD), "log_evidence?", console.Known(res.LogEvidence),
		"matrix", facts.MatrixName(data.W, res.Storage, res.Arithmetic), "w_storage", res.Storage, "w_arithmetic", res.Arithmetic,
		"warnings", console.OrEmpty(res.Warnings), "converged_signals", facts.Converged(res), "metrics?", s.metricsOf(data, res), "compare?", others,
		"", s.doubt.json(res), "written", console.OrEmpty(written),
	}
}

func calibrationLines(s *console.Summary, res *calamp.Result, m option.Model) {
	mean, variance := m.GainPrior().Moments()
	s.Line("gains", "typical uncertainty ±%s, before the readings ±%s",
		console.Percent(facts.TypicalGainSD(res)), console.Percent(math.Sqrt(variance)/mean))
	scaleLine(s, res, m)
}

func scaleLine(s *console.Summary, res *calamp.Result, m option.Model) {
	convention := ""
	if scaleFree(res, m) {
		convention = "a convention, "
	}
	s.Line("scale", "common to signals and gains, %suncertainty ±%s", convention, console.Percent(res.ScaleSD))
}

// scaleFree reports whether the common scale of signals and gains is a convention, since both are learned; its uncertainty is that about the convention.
func scaleFree(res *calamp.Result, m option.Model) bool {
	return m.Learns("s-range") && slices.ContainsFunc(res.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.ScaleFromGains })
}

// phaseWord is --phase for complex problems; empty for others.
func (s *solve) phaseWord(res *calamp.Result) string {
	if res.Phase == nil {
		return ""
	}
	return s.phases.String()
}

func phaseSD(res *calamp.Result) *float64 {
	if res.Phase == nil || res.PhaseFree {
		return nil
	}
	return console.Known(res.PhaseSD)
}

// complexLines say how well amplitudes and phases are known.
func complexLines(s *console.Summary, res *calamp.Result, m option.Model) {
	_, _, lo, hi := res.SIntervals(onePart)
	_, _, from, to := res.PhaseIntervals(onePart)
	amplitude, phase := make([]float64, len(lo)), make([]float64, len(lo))
	for mu, v := range res.S {
		amplitude[mu], phase[mu] = 0.5*(hi[mu]-lo[mu])/max(v, math.SmallestNonzeroFloat64), 0.5*(to[mu]-from[mu])
	}
	slices.Sort(amplitude)
	slices.Sort(phase)
	s.Line("gains", "typical uncertainty of amplitudes ±%s, of phases ±%s rad", console.Percent(amplitude[len(amplitude)/2]), console.Short(phase[len(phase)/2]))
	scaleLine(s, res, m)
	if res.PhaseFree {
		s.Line("phase", "common to signals and gains, a convention: nothing is known of it")
	} else {
		s.Line("phase", "common to signals and gains, uncertainty ±%s rad", console.Short(res.PhaseSD))
	}
}

// onePart is the probability of one standard deviation to either side.
const onePart = 0.683
