package option

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
)

// ModelFile is a model that was written down once: what is specified of an instrument and of what it looks at, in the names of the [Schema].
//
//	about = "the camera on the bench"
//	[signals]
//	density = 0.15
//	[sensors]
//	gain_range = [0.7, 1.4]
//	[noise]
//	noise_var = "noise.npy"     # beside this file
//	[matrix]
//	matrix = "masks.npy"
//
// What is not in it is not given. Files are named from where it lies.
type ModelFile struct {
	Path   string
	About  string
	Stated []Stated // in the order of the schema
}

// Stated is a parameter that a model file gives.
type Stated struct {
	*Parameter
	Flag  string   // the name that the file has for it, which may be another spelling
	Texts []string // values of the flag: one, but of a repeated one
}

// LoadModel reads a model file. What it says is not checked beyond its names: the flags of a command do that.
func LoadModel(path string) (*ModelFile, error) {
	var raw map[string]any
	_, err := toml.DecodeFile(path, &raw)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, console.Usage("--model %s: there is no such file", path).WithHint("calamp model -h says what is in one; calamp solve --save-model %s writes one", path)
	}
	if bad, ok := errors.AsType[toml.ParseError](err); ok {
		return nil, console.Usage("%s: line %d: %s", path, bad.Position.Line, strings.TrimPrefix(bad.Message, "toml: "))
	}
	if err != nil {
		return nil, console.Usage("%s: %w", path, console.Cause(err))
	}
	m := &ModelFile{Path: path}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		switch table, is := raw[name].(map[string]any); {
		case name == "about":
			if m.About, is = raw[name].(string); !is {
				err = console.Usage("%s: about: expected a text", path)
			}
		case !is:
			err = m.add("", name, raw[name])
		case !slices.ContainsFunc(Schema, func(s Section) bool { return s.Name == name }):
			err = m.unknown("the table ["+name+"]", name, sectionNames())
		default:
			for _, key := range slices.Sorted(maps.Keys(table)) {
				if err == nil {
					err = m.add(name, key, table[key])
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(m.Stated, func(a, b Stated) int { return order(a.Name) - order(b.Name) })
	return m, nil
}

// add takes in one key of a table, or of none.
func (m *ModelFile) add(table, key string, value any) error {
	p := ParameterOf(strings.ReplaceAll(key, "_", "-"))
	if p == nil || strings.Contains(key, "-") {
		return m.unknown(key, strings.ReplaceAll(key, "-", "_"), keys())
	}
	if own := sectionOf(p); table != "" && own != table {
		return console.Usage("%s: [%s] %s: expected it in [%s]", m.Path, table, key, own)
	}
	if i := slices.IndexFunc(m.Stated, func(t Stated) bool { return t.Parameter == p }); i >= 0 {
		return console.Usage("%s: %s and %s both say the same, give one", m.Path, strings.ReplaceAll(m.Stated[i].Flag, "-", "_"), key)
	}
	texts, err := textsOf(p, value)
	if err != nil {
		return console.Usage("%s: %s: %w", m.Path, key, err)
	}
	here := func(file string) string {
		if filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(filepath.Dir(m.Path), file)
	}
	for i, text := range texts {
		switch {
		case p.Array != "":
			texts[i] = placed(text, here)
		case p.Name == "prior":
			texts[i] = networkAt(text, here)
		}
	}
	m.Stated = append(m.Stated, Stated{p, strings.ReplaceAll(key, "_", "-"), texts})
	return nil
}

// unknown refuses a name, and says which was probably meant.
func (m *ModelFile) unknown(what, name string, names []string) error {
	err := console.Usage("%s: %s: there is no such key in a model", m.Path, what)
	if meant := nearest(name, names); meant != "" {
		return err.WithHint("did you mean %s?", meant)
	}
	return err.WithHint("expected one of %s", strings.Join(names, ", "))
}

// textsOf is a TOML value as the flag is given it: a list of numbers is one value, a list of others several.
func textsOf(p *Parameter, value any) ([]string, error) {
	list, is := value.([]any)
	if !is {
		text, err := textOf(value)
		return []string{text}, err
	}
	if len(list) == 0 {
		return nil, errors.New("expected a value, found none")
	}
	var texts []string
	numbers := true
	for _, v := range list {
		inner, nested := v.([]any)
		_, word := v.(string)
		if numbers = numbers && !nested && !word; !numbers && !p.Repeated {
			return nil, errors.New("expected one value, or numbers")
		}
		if !nested {
			inner = []any{v}
		}
		text, err := joined(inner)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if numbers {
		return []string{strings.Join(texts, ",")}, nil
	}
	return texts, nil
}

func joined(list []any) (string, error) {
	var texts []string
	for _, v := range list {
		text, err := textOf(v)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

func textOf(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("expected a number, numbers or a text, found a %T", value)
}

// arrayFiles are the ends of names of files that a model can name.
var arrayFiles = []string{".npy", ".npz", ".mat", ".csv", ".txt"}

// placed is a value with other names for the files in it.
func placed(text string, rename func(file string) string) string {
	var out strings.Builder
	for _, file := range dataset.SpecFiles(text) {
		i := strings.Index(text, file)
		out.WriteString(text[:i])
		text = text[i+len(file):]
		if slices.Contains(arrayFiles, strings.ToLower(filepath.Ext(file))) {
			file = rename(file)
		}
		out.WriteString(file)
	}
	return out.String() + text
}

// Apply gives flags that were not given what the model says, and returns the parameters that the command has no flag for. positional
// says that a problem was named, which has a matrix.
func (m *ModelFile) Apply(flags *pflag.FlagSet, positional bool) (unused []string, err error) {
	given := map[string]bool{} // on the command line
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, t := range m.Stated {
		f := FlagOf(flags, t.Parameter, t.Flag)
		switch {
		case given[t.Name], t.Name == "matrix" && positional, slices.ContainsFunc(strings.Fields(t.GivesWay), func(name string) bool { return given[name] }):
			continue
		case t.Texts[0] == AutoWord && slices.Contains(ModelFlags, t.Name):
			continue // as if it were omitted, which commands that learn nothing have a default for
		case f == nil && t.NoData && flags.Lookup("readings") != nil:
			continue
		case f == nil:
			unused = append(unused, t.Key())
			continue
		}
		for _, text := range t.Texts {
			if err := flags.Set(t.Flag, text); err != nil {
				if text == AutoWord {
					unused = append(unused, t.Key())
					break
				}
				if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
					err = invalid.Unwrap()
				}
				return nil, console.Usage("%s: %s = %s: %w", m.Path, t.Key(), text, err)
			}
		}
		own := flags.Lookup(t.Name)
		own.Annotations = map[string][]string{console.FromModel: nil}
		for _, text := range t.Texts {
			if spelt, ok := f.Value.(*spelling); ok && spelt.turn != nil {
				text = own.Value.String()
			}
			own.Annotations[console.FromModel] = append(own.Annotations[console.FromModel], text)
		}
	}
	return unused, nil
}

// FlagOf is a command's flag by one of a parameter's names; nil where it has none, or where the name is an old one of another flag.
func FlagOf(flags *pflag.FlagSet, p *Parameter, name string) *pflag.Flag {
	f := flags.Lookup(name)
	if f == nil {
		return nil
	}
	if s, ok := f.Value.(*spelling); ok && s.of != p.Name {
		return nil
	}
	return f
}

// AddModel gives a command that has parameters of a model the flag --model, which tells them all, unless it has one.
func AddModel(a *console.Console, cmd *cobra.Command) {
	flags := cmd.Flags()
	if flags.Lookup("model") != nil || cmd.RunE == nil {
		return
	}
	var path string
	flags.StringVar(&path, "model", "", "take what is known from this .toml (calamp model says what is in it); flags go before it")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if path == "" {
			return run(cmd, args)
		}
		m, err := LoadModel(path)
		if err != nil {
			return err
		}
		unused, err := m.Apply(flags, len(args) > 0)
		if err != nil {
			return err
		}
		if len(unused) > 0 && flags.Lookup("density") != nil && !flags.Changed("mpi") {
			a.Note("%s: %s has no use for %s", path, cmd.CommandPath(), strings.Join(unused, ", "))
		}
		return run(cmd, args)
	}
}

// sectionOf is the name of the section of a parameter.
func sectionOf(p *Parameter) string {
	for i := range Schema {
		for j := range Schema[i].Parameters {
			if &Schema[i].Parameters[j] == p {
				return Schema[i].Name
			}
		}
	}
	return ""
}

func sectionNames() (names []string) {
	for _, s := range Schema {
		names = append(names, s.Name)
	}
	return names
}

// keys are the names that a model file can have, other spellings of them among them.
func keys() (names []string) {
	for _, s := range Schema {
		for _, p := range s.Parameters {
			names = append(names, p.Key())
			for _, other := range spellings {
				if other.of == p.Name {
					names = append(names, strings.ReplaceAll(other.name, "-", "_"))
				}
			}
		}
	}
	return names
}

// order is where a parameter stands in the schema.
func order(name string) int { return slices.Index(keys(), strings.ReplaceAll(name, "-", "_")) }

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

// said is what the file says of the parameters of a section, in the schema's words.
func (m *ModelFile) said(section string) (words []string) {
	i := slices.Index(sectionNames(), section)
	for _, p := range Schema[i].Parameters {
		if text := m.of(p.Name); p.Words != "" && text != "" && text != p.Idle {
			words = append(words, fmt.Sprintf(p.Words, text))
		}
	}
	return words
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
		GaussBernoulli: "Gaussian", NonNegative: "Gaussian cut to x ≥ 0", Laplace: "two-sided exponential", mixtureFamily: "of a mixture of Gaussians",
	}[prior.Family]
	file, deep := strings.CutPrefix(prior.Family, networkPrefix)
	words := []string{"non-zero entries " + like}
	switch {
	case deep:
		words[0] = "out of " + file + ", its latents Gaussian"
	case n > 0:
		words[0] = fmt.Sprintf("%d entries a signal, non-zero ones %s", n, like)
	}
	return strings.Join(append(words, m.said("signals")...), ", ")
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
	return strings.Join(append(words, m.said("sensors")...), ", ")
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
	return strings.Join(m.said("matrix"), ", ")
}

// Open are the parameters that are neither given nor have a default: what is learned.
func (m *ModelFile) Open(prior *SignalPrior) (open []string) {
	foreign := foreignTo(prior.Family)
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
