package option

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/solver"
)

// Found is a model after a run: what was given of it, and what was learned.
type Found struct {
	Flags  *pflag.FlagSet
	Args   []string // the flags that were given, as facts.Stated has them
	Model  *Model
	Prior  *SignalPrior
	Groups *Groups
	Offset *Offset
	Phases *Phases
	Result *calamp.Result
	Source string // where the readings are from

	RowSquare float64 // mean squared norm of the rows of W, about the means where those were taken out
	Centred   bool
}

// entry is a line of a model file.
type entry struct {
	value, note string
	array       []float64 // in a file of its own, which the line names
}

// Save writes the model as a file for --model, with error bars as comments. Arrays lie beside it, and their names begin as the file's does.
func (f *Found) Save(path string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "# What calamp found from %s: %v after %s.\n", filepath.Base(f.Source), f.Result.Status, console.Plural(f.Result.Iterations, "iteration"))
	if w := f.Result.Untrusted(); w != nil || f.Result.Status != calamp.Converged {
		text.WriteString("# NOT TO BE TRUSTED: see the warnings of the run.\n")
	}
	text.WriteString("# ± are standard errors of what was learned, those of the common scale among them (docs/model.md).\n")
	for _, s := range Schema {
		var lines []string
		for i := range s.Parameters {
			line, err := f.line(path, &s.Parameters[i])
			if err != nil {
				return err
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
		if lines != nil {
			fmt.Fprintf(&text, "\n[%s]\n%s", s.Name, strings.Join(lines, ""))
		}
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// line is a parameter in the file; empty where nothing is known of it.
func (f *Found) line(path string, p *Parameter) (string, error) {
	e := f.learned(path, p)
	if e.value == "" && e.array == nil {
		var err error
		if e, err = f.stated(path, p); err != nil {
			return "", err
		}
	}
	if e.array != nil {
		file := arrayPath(path, p)
		if err := dataset.SaveArray(file, p.Key(), &dataset.Array{Info: dataset.Info{Shape: []int{len(e.array)}}, Data: e.array}); err != nil {
			return "", err
		}
		e.value = quoted(filepath.Base(file))
	}
	if e.value == "" {
		return "", nil
	}
	if e.note != "" {
		e.note = "   # " + e.note
	}
	return fmt.Sprintf("%s = %s%s\n", p.Key(), e.value, e.note), nil
}

// learned is what the run found of a parameter; empty where it did not look.
func (f *Found) learned(path string, p *Parameter) entry {
	m, sd := f.Model, f.Result.ModelSD()
	number := func(v, sd float64) entry { return entry{value: console.Short(v), note: "± " + console.Brief(sd)} }
	if j := slices.Index(entryFlags[:], p.Name); j >= 0 && m.Learns(p.Name) && f.Groups.found != nil {
		var values []float64
		for _, group := range f.Groups.found {
			values = append(values, [...]float64{group.Density, group.SignalMean, group.SignalVar}[j])
		}
		if len(values) > 1 {
			return entry{array: values, note: "of each group, learned"}
		}
	}
	gains := (m.Learns("s-range") || !Given(f.Flags, "s-range") && !Given(f.Flags, "s-mean") && m.known == nil) && m.belong == nil
	switch {
	case p.Name == "density" && m.Learns(p.Name):
		return number(m.Density, sd.Density)
	case p.Name == "signal-mean" && m.Learns(p.Name):
		return number(m.SignalMean, sd.SignalMean)
	case p.Name == "signal-var" && m.Learns(p.Name):
		return number(m.SignalVar, sd.SignalVar)
	case p.Name == "noise-var" && m.Noise.PerSensor && f.Result.NoiseVar != nil:
		return entry{array: f.Result.NoiseVar, note: "of each sensor, learned"}
	case p.Name == "noise-var" && m.Learns(p.Name):
		return number(m.NoiseVar, sd.NoiseVar)
	case p.Name == "prior" && !f.Prior.Plain():
		return entry{value: quoted(networkAt(f.Prior.Family, func(file string) string { return seenFrom(filepath.Dir(path), file) }))}
	case p.Name == "slack" && f.Prior.SlackSD != nil:
		return number(*f.Prior.Slack, *f.Prior.SlackSD)
	case p.Name == "component" && f.Prior.Learned:
		var list []string
		for _, c := range f.Prior.Components {
			list = append(list, fmt.Sprintf("[%s, %s, %s]", console.Short(c.Weight), console.Short(c.Mean), console.Short(c.Var)))
		}
		return entry{value: "[" + strings.Join(list, ", ") + "]", note: "learned"}
	case p.Name == "s-range" && gains && !m.StatedGains():
		return entry{value: fmt.Sprintf("[%s, %s]", console.Short(m.SRange[0]), console.Short(m.SRange[1])), note: fmt.Sprintf("± %s, ± %s", console.Brief(sd.SRange[0]), console.Brief(sd.SRange[1]))}
	case p.Name == "s-prior" && gains && m.StatedGains():
		return entry{value: quoted(m.SPrior), note: "learned"}
	case p.Name == "s-prior" && gains:
		return entry{value: quoted(solver.UniformS.String()), note: "learned"}
	case p.Name == "s-mean" && gains && m.StatedGains():
		return number(m.SMean, sd.SMean)
	case p.Name == "s-sd" && gains && m.StatedGains():
		return number(m.SSD, sd.SSD)
	case p.Name == "offset" && (f.Offset.Learned() || f.Offset.found > 0 && !f.Offset.on):
		return entry{value: console.Short(f.Offset.found), note: "learned"}
	case p.Name == "matrix-error" && f.Result.MatrixErrorSD > 0:
		return number(f.Result.MatrixError, f.Result.MatrixErrorSD*f.Result.MatrixError)
	case p.Name == "row-square":
		return entry{value: console.Short(f.RowSquare), note: f.rowsNote()}
	case p.Name == "phase" && f.Phases.Concentration() != nil:
		return entry{value: console.Short(f.Phases.Kappa), note: "κ, learned"}
	}
	return entry{}
}

func (f *Found) rowsNote() string {
	if f.Centred {
		return "about the row and column means of W, which solving takes out"
	}
	return ""
}

// stated is what was given of a parameter, as a file has it.
func (f *Found) stated(path string, p *Parameter) (e entry, err error) {
	flag := f.Flags.Lookup(p.Name)
	if flag == nil || !flag.Changed || p.Name == "learn-components" {
		return e, nil
	}
	texts := []string{flag.Value.String()}
	if p.Repeated {
		texts = nil
		for i, word := range f.Args {
			if word == "--"+p.Name && i+1 < len(f.Args) {
				texts = append(texts, f.Args[i+1])
			}
		}
	}
	for i, text := range texts {
		if p.Array != "" {
			if text, err = f.file(path, p, text); text == "" || err != nil {
				return e, err
			}
		}
		texts[i] = valueOf(text)
	}
	e.value = strings.Join(texts, ", ")
	if p.Repeated {
		e.value = "[" + e.value + "]"
	}
	return entry{value: e.value, note: "given"}, nil
}

// file is a value with the files in it as they are named from the folder of the model: arrays other than matrices are copied there.
// Empty for what is in memory, as matrices are that Python hands over.
func (f *Found) file(path string, p *Parameter, text string) (string, error) {
	folder := filepath.Dir(path)
	if p.Array == "spec" {
		if strings.Contains(text, "/dev/fd/") {
			return "", nil
		}
		return placed(text, func(file string) string { return seenFrom(folder, file) }), nil
	}
	if !slices.Contains(arrayFiles, strings.ToLower(filepath.Ext(text))) {
		return text, nil
	}
	to := strings.TrimSuffix(arrayPath(path, p), ".npy") + strings.ToLower(filepath.Ext(text))
	if console.SameFile(text, to) {
		return filepath.Base(to), nil
	}
	data, err := os.ReadFile(text)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	return filepath.Base(to), err
}

// seenFrom is a file as it is named from a folder: as it is where an absolute name leads out of that.
func seenFrom(folder, file string) string {
	here, err := filepath.Abs(folder)
	if err != nil {
		return file
	}
	there, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	rel, err := filepath.Rel(here, there)
	if err != nil || filepath.IsAbs(file) && strings.HasPrefix(rel, "..") {
		return file
	}
	return rel
}

// arrayPath is where an array of a model lies: learned.toml has learned-noise_var.npy beside it.
func arrayPath(path string, p *Parameter) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + "-" + p.Key() + ".npy"
}

// valueOf is a flag's value as TOML.
func valueOf(text string) string {
	if text == "true" || text == "false" {
		return text
	}
	words := strings.Split(text, ",")
	for i, word := range words {
		words[i] = strings.TrimSpace(word)
		if _, err := strconv.ParseFloat(words[i], 64); err != nil {
			return quoted(text)
		}
	}
	if len(words) > 1 {
		return "[" + strings.Join(words, ", ") + "]"
	}
	return words[0]
}

// quoted is a text in TOML.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
