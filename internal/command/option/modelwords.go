package option

import (
	"fmt"
	"slices"
	"strings"
)

// of is what the file says of a parameter; empty where it says nothing, or that it is to be learned as if it were omitted.
func (m *ModelFile) of(name string) string {
	i := slices.IndexFunc(m.Stated, func(t Stated) bool { return t.Name == name })
	if i < 0 || m.Stated[i].Texts[0] == AutoWord && slices.Contains(ModelFlags, name) {
		return ""
	}
	return strings.Join(m.Stated[i].Texts, ", ")
}

// Value is what the file says of a parameter, or other words where it says nothing.
func (m *ModelFile) Value(name, otherwise string) string {
	if text := m.of(name); text != "" && text != AutoWord {
		return text
	}
	return otherwise
}

// JSON is the file as an object: the texts that flags are given, by key.
func (m *ModelFile) JSON() map[string]any {
	object := map[string]any{}
	for _, t := range m.Stated {
		key := strings.ReplaceAll(t.Flag, "-", "_")
		if object[key] = t.Texts[0]; t.Repeated {
			object[key] = t.Texts
		}
	}
	return object
}

// gained is the flag that the file gives a range by: that of s, or of gains.
func (m *ModelFile) gained() string {
	if i := slices.IndexFunc(m.Stated, func(t Stated) bool { return t.Name == "s-range" }); i >= 0 && m.Stated[i].Flag == "gain-range" {
		return "gains 1/s"
	}
	return "s"
}

// Signals says what is known of n entries a signal; 0 where their number is unknown.
func (m *ModelFile) Signals(prior *SignalPrior, n int) string {
	like := map[string]string{
		GaussBernoulli: "Gaussian", NonNegative: "Gaussian cut to x ≥ 0", laplaceFamily: "two-sided exponential", mixtureFamily: "of a mixture of Gaussians",
	}[prior.Family]
	file, deep := strings.CutPrefix(prior.Family, networkPrefix)
	words := []string{"non-zero entries " + like}
	switch {
	case deep:
		words[0] = "out of " + file + ", its latents Gaussian"
	case n > 0:
		words[0] = fmt.Sprintf("%d entries a signal, non-zero ones %s", n, like)
	}
	for name, what := range inOrder("density", "density %s", "signal-mean", "mean %s", "signal-var", "variance %s", "component", "components %s", "groups", "in the groups of %s",
		"basis", "coefficients of the basis %s", "joint", "together: %s", "slack", "off the network by slack of variance %s") {
		if text := m.of(name); text != "" {
			words = append(words, fmt.Sprintf(what, text))
		}
	}
	return strings.Join(words, ", ")
}

// Sensors says what is known of so many sensors.
func (m *ModelFile) Sensors(count int) string {
	words := []string{"one gain a row"}
	switch file := m.of("sensors"); {
	case file != "":
		words[0] = "one gain for the rows of each sensor of " + file
	case count > 0:
		words[0] = fmt.Sprintf("%d sensors, one gain a row", count)
	}
	switch {
	case m.of("s-from") != "":
		words = append(words, "s known for each, by "+m.of("s-from"))
	case m.of("gain-smooth") != "":
		words = append(words, "gains smooth over "+m.of("gain-smooth"))
	case m.of("gain-basis") != "":
		words = append(words, "gains of the columns "+m.of("gain-basis"))
	case m.of("s-mean") != "":
		words = append(words, fmt.Sprintf("s %s, %s ± %s", m.Value("s-prior", "normal"), m.of("s-mean"), m.of("s-sd")))
	case m.of("s-range") != "":
		words = append(words, fmt.Sprintf("%s unknown within [%s]", m.gained(), strings.ReplaceAll(m.of("s-range"), ",", ", ")))
	default:
		words = append(words, "s unknown")
	}
	for name, what := range inOrder("anchor", "scale held by %s", "phase", "phases %s", "offset", "offsets of standard deviation %s", "saturation", "clipped at %s", "quantised", "read as codes with the step %s", "sign", "read as signs about %s", "counts", "counts of %s each") {
		if text := m.of(name); text != "" && text != "off" {
			words = append(words, fmt.Sprintf(what, text))
		}
	}
	return strings.Join(words, ", ")
}

// Noise says what is known of noise.
func (m *ModelFile) Noise() string {
	where := "before the division by s"
	if m.of("noise-at") == atReading {
		where = "at the reading, behind the division by s"
	}
	switch text := m.of("noise-var"); {
	case text == "":
		return "variance unknown, the same for all readings; " + where
	case text == perSensorWord:
		return "variance unknown, of each sensor"
	case slices.ContainsFunc(arrayFiles, func(end string) bool { return strings.HasSuffix(text, end) }):
		return "variances in " + text + ", " + where
	default:
		return "variance " + text + ", " + where
	}
}

// Matrix says what W may be wrong in; empty for nothing.
func (m *ModelFile) Matrix() string {
	var words []string
	for name, what := range inOrder("matrix-error", "entries wrong at random: %s", "derivatives", "may be moved along %s", "sensor-derivatives", "every sensor's own parameters along %s", "image", "rows are images of %s") {
		if text := m.of(name); text != "" {
			words = append(words, fmt.Sprintf(what, text))
		}
	}
	return strings.Join(words, ", ")
}

// Open are the parameters that are neither given nor have a default: what is learned.
func (m *ModelFile) Open(prior *SignalPrior) (open []string) {
	foreign := strings.Fields(map[string]string{mixtureFamily: "density signal-mean signal-var", laplaceFamily: "signal-mean"}[prior.Family])
	for _, name := range ModelFlags {
		known := m.of(name) != "" || name == "s-range" && (m.of("s-mean") != "" || m.of("s-from") != "")
		if !known && !slices.Contains(foreign, name) {
			open = append(open, strings.ReplaceAll(name, "-", "_"))
		}
	}
	if prior.Family == mixtureFamily && (prior.Learned || len(prior.Components) == 0) {
		open = append(open, "components")
	}
	return open
}

// inOrder goes through pairs in their order.
func inOrder(pairs ...string) func(yield func(a, b string) bool) {
	return func(yield func(a, b string) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}
