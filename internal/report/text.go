package report

import (
	"math"
	"strconv"
	"strings"
)

// dash stands for a value that is missing.
const dash = "–"

// number writes v with four significant digits, and a power of ten where it
// needs one.
func number(v float64) string { return digits(v, 4) }

func digits(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dash
	}
	text := strconv.FormatFloat(v, 'g', n, 64)
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if scientific && v != 0 && math.Abs(v) >= 1 && math.Abs(v) < 1e6 {
		return strings.Replace(strconv.FormatFloat(v, 'f', 0, 64), "-", "−", 1)
	}
	mantissa = strings.Replace(mantissa, "-", "−", 1)
	if !scientific {
		return mantissa
	}
	e, _ := strconv.Atoi(exponent)
	return mantissa + "·10" + superscript(e)
}

func superscript(e int) string {
	return strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
		"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(e))
}

// column writes values with the same number of decimals, so that they can be
// compared down a column: n significant digits for the smaller ones. Values too
// far apart for that get n digits each.
func column(values []float64, n int) []string {
	var sizes []float64
	for _, v := range finite(values) {
		if v != 0 {
			sizes = append(sizes, math.Abs(v))
		}
	}
	smallest, typical, largest := quantile(sizes, 0), quantile(sizes, 0.25), quantile(sizes, 1)
	decimals := n - 1 - int(math.Floor(math.Log10(typical)))
	uniform := len(sizes) > 0 && decimals <= 8 && largest < 1e6 && smallest >= math.Pow(10, -float64(decimals))
	out := make([]string, len(values))
	for i, v := range values {
		if !uniform || math.IsNaN(v) || math.IsInf(v, 0) {
			out[i] = digits(v, n)
			continue
		}
		out[i] = strings.Replace(strconv.FormatFloat(v, 'f', max(0, decimals), 64), "-", "−", 1)
	}
	return out
}

// columnOf is the column of one value for each of some sensors or signals.
func columnOf(indices []int, value func(int) float64, n int) []string {
	values := make([]float64, len(indices))
	for i, index := range indices {
		values[i] = value(index)
	}
	return column(values, n)
}

// percent writes a relative value with two significant digits.
func percent(v float64) string {
	if math.Abs(v) < 1e-5 {
		return "a factor of 1 ± " + digits(v, 2)
	}
	return "±\u202f" + digits(100*v, 2) + "\u202f%"
}

// count writes n with its thousands separated.
func count(n int) string {
	text := strconv.Itoa(n)
	if len(text) <= 4 {
		return text
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// some is "1 signal" or "3 signals".
func some(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

const maxListed = 12

// list names some indices out of all: "sensors 3, 8, 11 and 4 more".
func list(noun string, indices []int, all int) string {
	if len(indices) == 0 {
		return ""
	}
	if len(indices) == all && all > 2 {
		return "all " + noun + "s"
	}
	var words []string
	for i, index := range indices {
		if i == maxListed {
			break
		}
		words = append(words, strconv.Itoa(index))
	}
	if len(indices) > 1 {
		noun += "s"
	}
	text := noun + " " + strings.Join(words, ", ")
	if more := len(indices) - len(words); more > 0 {
		text += " and " + count(more) + " more"
	}
	return text
}

// sentence starts with a capital and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first := []rune(text)
	if upper := strings.ToUpper(string(first[0])); len(first) > 1 && first[1] != ' ' && first[1] != '=' {
		text = upper + string(first[1:])
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
