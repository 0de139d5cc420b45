package console

import (
	"fmt"
	"math"
	"strings"
)

// Known is v for JSON, where there is no NaN: nil leaves the field out.
func Known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// OrNaN is the way back.
func OrNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Summary is text for people, in lines of a name and a sentence.
type Summary struct{ strings.Builder }

// Line adds a line.
func (s *Summary) Line(name, format string, args ...any) {
	// A name from a file cannot make a line of its own.
	value := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", `\n`)
	fmt.Fprintf(s, "%-12s %s\n", name, value)
}

// Percent is a relative uncertainty.
func Percent(v float64) string {
	if Known(v) == nil {
		return "?"
	}
	return fmt.Sprintf("%.2g %%", 100*v)
}

// Brief is a number with the digits that a comparison needs.
func Brief(v float64) string { return fmt.Sprintf("%.3g", v) }

// Short is a number with the digits that people look at.
func Short(v float64) string { return fmt.Sprintf("%.4g", v) }

// Plural is "1 signal", "2 signals", "2 entries".
func Plural(n int, noun string) string {
	if n != 1 {
		noun = strings.TrimSuffix(noun+"s", "ys")
		if !strings.HasSuffix(noun, "s") {
			noun += "ies"
		}
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// OrEmpty makes a list that JSON shows as [].
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
