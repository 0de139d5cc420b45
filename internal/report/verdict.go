package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/calamp/calamp"
	warnings "github.com/calamp/calamp/internal/warning"
)

// verdict is the result in one sentence.
type verdict struct {
	Level  string // good, doubtful or bad: the colour
	Badge  string // the level in words, for readers who cannot see the colour
	Text   string
	Detail string // the solver's own reason, and the time it took
}

// Mark is the symbol before the badge.
func (v verdict) Mark() string {
	switch v.Level {
	case good:
		return "✓"
	case doubtful:
		return "!"
	default:
		return "✕"
	}
}

const (
	good     = "good"
	doubtful = "doubtful"
	bad      = "bad"
)

func (r *Report) verdict() verdict {
	v := r.judge()
	switch n := len(r.Result.Warnings); {
	case n == 1:
		v.Text += " See the warning below."
	case n > 1:
		v.Text += " See the " + some(n, "warning") + " below."
	}
	v.Detail = sentence(r.Result.Reason)
	if r.Result.Wall > 0 {
		v.Detail = strings.TrimSpace(v.Detail + " Took " + wall(r.Result.Wall) + ".")
	}
	return v
}

func wall(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	if d < time.Minute {
		return fmt.Sprintf("%.1f\u202fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func (r *Report) judge() verdict {
	iterations := some(r.Result.Iterations, "iteration")
	switch r.Result.Status {
	case calamp.Diverged:
		return verdict{Level: bad, Badge: "Diverged", Text: "The run diverged after " + iterations +
			": the estimates diverged. What is shown is the last finite state, not an answer: do not use it."}
	case calamp.Cancelled:
		return verdict{Level: doubtful, Badge: "Cancelled", Text: "The run was cancelled after " + iterations +
			". What is shown is the state it had reached, not an answer."}
	case calamp.NothingRecovered:
		return verdict{Level: bad, Badge: "Nothing recovered", Text: "The iteration reached a fixed point after " + iterations +
			", but its estimate is no answer: trust neither the signals nor the gains."}
	case calamp.Converged:
		return r.judgeConverged(iterations)
	default:
		return verdict{Level: bad, Badge: "Not converged", Text: "The run stopped after " + iterations +
			" without having converged" + r.stillMoving() + ". What is shown is provisional." + r.nothingLearned()}
	}
}

// stillMoving says how far from convergence the run ended.
func (r *Report) stillMoving() string {
	open, largest := 0, 0.0
	for k, done := range r.Result.Converged {
		if done {
			continue
		}
		open++
		if k < len(r.Result.Change) {
			largest = math.Max(largest, r.Result.Change[k])
		}
	}
	if open == 0 {
		return ""
	}
	verb := "were"
	if open == 1 {
		verb = "was"
	}
	text := fmt.Sprintf(": %s of %s %s still changing", count(open), some(len(r.Result.Converged), "signal"), verb)
	if largest > 0 {
		text += ", by up to " + digits(100*largest, 2) + "\u202f% an iteration"
	}
	return text
}

func (r *Report) judgeConverged(iterations string) verdict {
	v := verdict{Level: good, Badge: "Converged", Text: "Converged in " + iterations + ": "}
	switch {
	case r.warned(calamp.NothingLearned):
		v.Level, v.Badge = bad, "Nothing learned"
		v.Text = "Converged in " + iterations + ", but the readings taught nothing about the sensors: " +
			"their calibration is as uncertain as before. Trust neither the signals nor the gains."
	case r.untrusted():
		v.Level, v.Badge = bad, "Not to be trusted"
		v.Text = "Converged in " + iterations + ", but to nothing that can be trusted: see the first warning."
	case r.gainsKnown():
		v.Text += some(r.Problem.P, "signal") + " recovered, with the gains taken as known."
	default:
		v.Text += fmt.Sprintf("%s and %s recovered; %s.", some(r.Problem.P, "signal"), some(r.Problem.M, "gain"), r.accuracy())
	}
	if v.Level == good && r.doubted() {
		v.Level, v.Badge = doubtful, "Converged, with doubts"
		v.Text = strings.Replace(v.Text, " recovered", " estimated", 1)
	}
	return v
}

// accuracy says how well the gains and their common scale are known.
func (r *Report) accuracy() string {
	sds := r.relativeSD()
	text := ""
	if len(sds) > 0 {
		text = "the typical gain is known to " + percent(quantile(sds, 0.5)) + ", "
	}
	if r.ScaleFree {
		return text + "the common scale is a convention"
	}
	return text + "the common scale to " + percent(r.Result.ScaleSD)
}

// relativeSD is the posterior standard deviation of every s over its mean.
func (r *Report) relativeSD() []float64 {
	var sds []float64
	for i, s := range r.Result.S {
		if sd := r.sd(i) / math.Abs(s); !math.IsNaN(sd) && !math.IsInf(sd, 0) {
			sds = append(sds, sd)
		}
	}
	return sds
}

func (r *Report) sd(sensor int) float64 {
	if sensor >= len(r.Result.SVar) {
		return math.NaN()
	}
	return math.Sqrt(r.Result.SVar[sensor])
}

// gainsKnown reports whether the channel does not calibrate: then nothing about s is
// uncertain.
func (r *Report) gainsKnown() bool {
	return r.Result.ScaleSD == 0 && r.phases == nil && !r.uncertain()
}

// uncertain reports whether anything of s, or of its amplitude where it is complex, is.
func (r *Report) uncertain() bool {
	return slices.ContainsFunc(r.Result.SVar, func(v float64) bool { return v != 0 })
}

func (r *Report) nothingLearned() string {
	if r.warned(calamp.NothingLearned) {
		return " So far the readings have taught nothing about the sensors."
	}
	return ""
}

func (r *Report) warned(code calamp.WarningCode) bool {
	return slices.ContainsFunc(r.Result.Warnings, func(w calamp.Warning) bool { return w.Code == code })
}

func (r *Report) doubted() bool {
	return r.gravest() >= warnings.Doubt
}

func (r *Report) untrusted() bool { return r.gravest() == warnings.Untrusted }

// gravest is how much the warning matters that matters most.
func (r *Report) gravest() (level warnings.Level) {
	for _, w := range r.Result.Warnings {
		level = max(level, warnings.LevelOf(string(w.Code)))
	}
	return level
}

// warning is one of the solver's warnings, with the sensors or signals that it is about
// in words.
type warning struct {
	Level string
	Code  string
	Text  string
	Where string
	Page  warnings.Page // what it means, and what to do
}

func (r *Report) warnings() []warning {
	var out []warning
	for _, w := range r.Result.Warnings {
		page, _ := warnings.Of(string(w.Code))
		level := ""
		switch page.Level {
		case warnings.Doubt:
			level = doubtful
		case warnings.Untrusted:
			level = bad
		}
		where := strings.TrimSpace(list("sensor", w.Sensors, r.Problem.M) + " " + list("signal", w.Signals, r.Problem.P))
		out = append(out, warning{level, strings.ReplaceAll(string(w.Code), "-", " "), sentence(w.Message), sentence(where), page.Plain()})
	}
	return out
}

// quantile q of some values, or NaN when there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}
