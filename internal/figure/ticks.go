package figure

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// linearTicks marks multiples of 1, 2 or 5 times a power of ten, about n of them.
func linearTicks(lo, hi float64, n int, whole bool) []plot.Tick {
	step := niceStep(0.8 * (hi - lo) / float64(max(n, 1)))
	if whole {
		step = math.Max(step, 1)
	}
	var values []float64
	// The 1e-9 keeps a mark at the end of the range in spite of rounding errors.
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+1e-9*step; i++ {
		values = append(values, i*step)
	}
	return labelled(values, step)
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below step.
func niceStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// labelled writes all values with the same number of decimals, or all with the
// same power of ten where they are huge or tiny.
func labelled(values []float64, step float64) []plot.Tick {
	largest := 0.0
	for _, v := range values {
		largest = math.Max(largest, math.Abs(v))
	}
	ticks := make([]plot.Tick, len(values))
	exponent := 0
	if largest > 0 && (largest >= 1e6 || largest < 1e-3) {
		exponent = int(math.Floor(math.Log10(largest) + 1e-9))
	}
	decimals := max(0, exponent-int(math.Floor(math.Log10(step)+1e-9)))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: v, Label: scaled(v, exponent, decimals)}
	}
	return ticks
}

// scaled writes v as a number with the given decimals times 10^exponent.
func scaled(v float64, exponent, decimals int) string {
	mantissa := v / math.Pow(10, float64(exponent))
	if math.Abs(mantissa) < 0.5*math.Pow(10, -float64(decimals)) {
		return "0"
	}
	text := grouped(strconv.FormatFloat(mantissa, 'f', decimals, 64))
	if exponent != 0 {
		text += "·10^{" + minus(strconv.Itoa(exponent)) + "}"
	}
	return text
}

// grouped separates the thousands of a number with more than four digits.
func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	whole, fraction, dot := strings.Cut(digits, ".")
	if dot {
		fraction = "." + fraction
	}
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "\u2009" + whole[i:]
		}
	}
	return sign + whole + fraction
}

// minus replaces the hyphen by the sign that is as wide as a digit.
func minus(number string) string { return strings.Replace(number, "-", "−", 1) }

// logTicks marks decades, at most about n of them with a label; or 1, 2, 5 and
// finer where the range is too short to hold two decades.
func logTicks(lo, hi float64, n int) []plot.Tick {
	first := int(math.Ceil(math.Log10(lo) - 1e-9))
	last := int(math.Floor(math.Log10(hi) + 1e-9))
	if last <= first {
		return shortLogTicks(lo, hi, n)
	}
	stride := decadeStride(last-first+1, n)
	var ticks []plot.Tick
	for e := first - 1; e <= last; e++ {
		label := (e-last)%stride == 0
		if e >= first && (label || stride <= 10) {
			ticks = append(ticks, decade(e, label, first, last))
		}
		if stride == 1 && last-first <= 5 {
			ticks = append(ticks, between(e, lo, hi)...)
		}
	}
	return ticks
}

func decadeStride(decades, n int) int {
	for _, stride := range []int{1, 2, 3, 4, 5, 10, 20, 50} {
		if (decades+stride-1)/stride <= max(n, 2) {
			return stride
		}
	}
	return 100
}

// decade is the mark at 10^e. Its label is a plain number if those of all decades of the
// axis are short.
func decade(e int, label bool, first, last int) plot.Tick {
	tick := plot.Tick{Value: math.Pow(10, float64(e))}
	switch {
	case !label:
	case first >= -2 && last <= 3:
		tick.Label = strconv.FormatFloat(tick.Value, 'f', -1, 64)
	default:
		tick.Label = "10^{" + minus(strconv.Itoa(e)) + "}"
	}
	return tick
}

// between are the unlabelled marks from 2 to 9 times 10^e.
func between(e int, lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for m := 2.0; m <= 9; m++ {
		if v := m * math.Pow(10, float64(e)); v >= lo && v <= hi {
			ticks = append(ticks, plot.Tick{Value: v})
		}
	}
	return ticks
}

// shortLogTicks serves ranges of less than two decades.
func shortLogTicks(lo, hi float64, n int) []plot.Tick {
	var values []float64
	for e := int(math.Floor(math.Log10(lo))); e <= int(math.Log10(hi))+1; e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, float64(e)); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				values = append(values, v)
			}
		}
	}
	if len(values) < 3 {
		return linearTicks(lo, hi, min(n, 4), false)
	}
	ticks := make([]plot.Tick, len(values))
	for i, v := range values {
		e := int(math.Floor(math.Log10(v) + 1e-9))
		if e >= -3 && e <= 3 {
			ticks[i] = plot.Tick{Value: v, Label: grouped(strconv.FormatFloat(v, 'f', max(0, -e), 64))}
		} else {
			ticks[i] = plot.Tick{Value: v, Label: scaled(v, e, 0)}
		}
	}
	return ticks
}

// logScale is plot.LogScale without its panic: values that are not positive are at the
// lower end.
type logScale struct{}

func (logScale) Normalize(lo, hi, x float64) float64 {
	if x <= 0 {
		return 0
	}
	return (math.Log(x) - math.Log(lo)) / (math.Log(hi) - math.Log(lo))
}
