package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Spec is a sweep as its TOML file describes it. docs/format/sweep.md has every key.
type Spec struct {
	Name  string `toml:"name"`  // of the sweep; by default that of the file
	About string `toml:"about"` // a sentence for people

	// Grids are run one after the other; each is the product of its axes.
	Grids []Grid `toml:"grid"`
	// Quick replaces the grids where only a sketch is wanted.
	Quick []Grid `toml:"quick"`

	Solver   Solver   `toml:"solver"`
	Record   Record   `toml:"record"`
	Rehearse Rehearse `toml:"rehearsal"`
	Run      Limits   `toml:"run"`
}

// Grid is a product of axes.
type Grid struct {
	Algorithm  Words    `toml:"algorithm"`
	N          Axis     `toml:"n"`
	Density    Axis     `toml:"density"`
	Alpha      Axis     `toml:"alpha"`
	P          Axis     `toml:"p"`
	NoiseVar   Axis     `toml:"noise_var"`
	SRange     Ranges   `toml:"s_range"`
	Matrix     Kinds    `toml:"matrix"`  // how W is drawn, as in calamp simulate --matrix-kind; default iid
	Network    Networks `toml:"network"` // that signals come out of, as calamp threshold --prior has it; default none
	Covariance Words    `toml:"covariance"`
	Complex    bool     `toml:"complex"`         // W, signals, noise and gains are
	Phase      Phases   `toml:"phase"`           // what is known of complex gains' phases; default free
	Rows       Axis     `toml:"rows_per_sensor"` // rows of W that are read with one gain; default 1
	Joint      Joints   `toml:"joint"`           // correlation of signals that share their entries, or "off"; default off
	Seeds      Seeds    `toml:"seeds"`
	// SharedMatrix gives points that differ in nothing but P, noise, range and algorithm one W.
	SharedMatrix bool `toml:"shared_matrix"`

	Solver *Solver `toml:"solver"` // in place of the sweep's
	Record *Record `toml:"record"` // in place of the sweep's
}

// Solver are the solver's settings, by default 500 iterations and else its own
// defaults, which samples of a stream are learned from, and whether hopeless runs are given
// up. Covariances are an axis.
type Solver struct {
	solver.Settings
	Commit online.Commit `toml:"commit" json:"commit,omitzero"`
	GiveUp bool          `toml:"give_up" json:"give_up,omitempty"` // ends runs of which nothing is to be expected any more
}

// Record says what a row holds besides the metrics at the end.
type Record struct {
	Trajectory bool    `toml:"trajectory" json:"trajectory,omitempty"` // metrics after every iteration
	Samples    []int   `toml:"samples" json:"samples,omitempty"`       // online: after these samples, from 1; default the last
	Prediction bool    `toml:"prediction" json:"prediction,omitempty"` // state evolution's errors next to them
	Target     float64 `toml:"target" json:"target,omitempty"`         // error that counts as success in α_cal; default 1e-5
}

// Limits bound a point. They are not part of its key: a point that fits gives
// the same row under any.
type Limits struct {
	Timeout Duration `toml:"timeout" json:"timeout,omitempty"` // of one point; default none
	Memory  Size     `toml:"memory" json:"memory,omitempty"`   // of one point; default what the machine has
	Threads int      `toml:"threads" json:"threads,omitempty"` // of one point; default 1
}

// Rehearse says what rehearsals do: take some time, and fail at some seeds.
type Rehearse struct {
	Work  Duration `toml:"work" json:"work,omitempty"`
	Panic uint64   `toml:"panic" json:"panic,omitempty"`
	Hang  uint64   `toml:"hang" json:"hang,omitempty"`
	Eat   uint64   `toml:"eat" json:"eat,omitempty"` // asks for more memory than there is
}

// SpecError is a fault of a spec and its place.
type SpecError struct {
	File string
	Line int // from 1; 0 where it has no line
	Err  error
}

// Error names the place.
func (e *SpecError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the fault without its place.
func (e *SpecError) Unwrap() error { return e.Err }

// mostText bounds a file that may be no spec, or a device without an end.
const mostText = 16 << 20

// FolderOf is where the rows of the spec at path are kept, unless another folder is named.
func FolderOf(path string) string {
	if name, is := strings.CutSuffix(path, ".toml"); is {
		return name
	}
	return path + ".rows"
}

// Load reads a spec from a file.
func Load(path string) (*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostText {
		return nil, &SpecError{path, 0, fmt.Errorf("it has more than %d MB, expected a sweep's lines of text", mostText>>20)}
	}
	return Parse(path, string(text))
}

// Parse reads a spec from text; name is the file's, for messages.
func Parse(name, text string) (*Spec, error) {
	s := &Spec{}
	if err := countAxes(name, text); err != nil {
		return nil, err
	}
	meta, err := toml.Decode(text, s)
	if err != nil {
		return nil, tomlError(name, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		key := unknown[0]
		return nil, &SpecError{name, lineOf(text, key), fmt.Errorf("unknown key %s", key)}
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(name), ".toml")
	}
	if err := s.validate(); err != nil {
		return nil, &SpecError{File: name, Err: err}
	}
	return s, nil
}

// countAxes refuses ranges and numbers of seeds of which there are too many values, before they are made: a line of text can
// ask for a million. Where a spec is wrong in another way it says nothing.
func countAxes(name, text string) error {
	var spec map[string]any
	if _, err := toml.Decode(text, &spec); err != nil {
		return nil // and the same of the whole
	}
	for key, value := range spec {
		if !strings.EqualFold(key, "grid") && !strings.EqualFold(key, "quick") { // as the parser has it
			continue
		}
		total := 0.0
		for i, grid := range arrayOfTables(value) {
			points := 1.0 // or more, by its other axes
			for key, value := range grid {
				points *= max(1, longer(key, value))
			}
			if total += points; total > mostPoints {
				return &SpecError{File: name, Err: tooMany(i, total)}
			}
		}
	}
	return nil
}

// arrayOfTables are the tables of an array of tables, however it is written.
func arrayOfTables(value any) (list []map[string]any) {
	switch value := value.(type) {
	case []map[string]any:
		return value
	case map[string]any:
		return []map[string]any{value}
	case []any:
		for _, entry := range value {
			list = append(list, arrayOfTables(entry)...)
		}
	}
	return list
}

// tooMany is the error of grid i, up to which there are so many points.
func tooMany(i int, points float64) error {
	return fmt.Errorf("grid %d: %.3g points up to here, expected at most %d; "+
		"shorten an axis, or part the sweep into several specs", i+1, points, mostPoints)
}

// longer is how many values a range, or a number of seeds, stands for.
func longer(key string, value any) float64 {
	if table, ok := value.(map[string]any); ok {
		value = table["count"]
	} else if !strings.EqualFold(key, "seeds") {
		return 0
	}
	count, err := toFloat(value)
	if err != nil || count > mostCount {
		return 0 // which is refused where it is read
	}
	return count
}

// placed is how the parser tells the place of most faults.
var placed = regexp.MustCompile(`^toml: line (\d+)(?: \(last key "(.*?)"\))?: (.*)$`)

func tomlError(name string, err error) error {
	found := placed.FindStringSubmatch(err.Error())
	if found == nil {
		return &SpecError{File: name, Err: errors.New(strings.TrimPrefix(err.Error(), "toml: "))}
	}
	line, _ := strconv.Atoi(found[1])
	message := found[3]
	if found[2] != "" {
		message = found[2] + ": " + message
	}
	return &SpecError{name, line, errors.New(message)}
}

// lineOf finds the line that assigns a key, or opens its table: the parser does
// not say where it saw a key.
func lineOf(text string, key toml.Key) int {
	table, last := "", key[len(key)-1]
	parent := strings.Join(key[:len(key)-1], ".")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.TrimSpace(strings.Trim(strings.SplitN(line, "#", 2)[0], "[] \t"))
			if table == key.String() {
				return i + 1
			}
			continue
		}
		name, _, assigned := strings.Cut(line, "=")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if assigned && table == parent && name == last {
			return i + 1
		}
	}
	return 0
}

// validate refuses specs without points, or with points that cannot be run.
func (s *Spec) validate() error {
	if len(s.Grids) == 0 {
		return errors.New("there is no [[grid]]")
	}
	if strings.ContainsAny(s.Name, "/\\ \t\n*>.") {
		return fmt.Errorf("name %q: expected one word, without dots and slashes", s.Name)
	}
	for _, all := range [][]Grid{s.Grids, s.Quick} {
		total := 0.0
		for i := range all {
			g := &all[i]
			if err := g.validate(s); err != nil {
				return fmt.Errorf("grid %d: %w", i+1, err)
			}
			if total += g.size(); total > mostPoints {
				return tooMany(i, total)
			}
			one := *g
			one.Seeds = nil // seeds do not matter to validity
			err := one.each(s, func(p Point) error {
				if err := p.canonical().Validate(); err != nil {
					return fmt.Errorf("grid %d, %v: %w", i+1, p.canonical(), err)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Grid) validate(s *Spec) error {
	if len(g.Algorithm) == 0 {
		return errors.New("algorithm is missing")
	}
	for _, word := range g.Algorithm {
		var a Algorithm
		if err := a.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		if err := g.needs(a); err != nil {
			return err
		}
	}
	for _, word := range g.Covariance {
		if word != solver.Diagonal.String() && word != solver.Full.String() { // sweeps have no offsets
			return fmt.Errorf("covariance is diagonal or full, found %q", word)
		}
	}
	if err := wholeAxes(g); err != nil {
		return err
	}
	if len(g.Phase) > 0 && !g.Complex {
		return errors.New("phase is for complex problems: complex = true")
	}
	return errors.Join(g.solver(s).validate(), g.record(s).validate(int(slices.Max(append(Axis{0}, g.P...)))))
}

// needs reports an axis that an algorithm cannot do without.
func (g *Grid) needs(a Algorithm) error {
	if a == Rehearsal {
		return nil
	}
	for _, axis := range []struct {
		name   string
		values Axis
		needed bool
	}{
		{"n", g.N, a.synthetic()},
		{"density", g.Density, true},
		{"alpha", g.Alpha, a != Threshold},
		{"p", g.P, true},
	} {
		if axis.needed && len(axis.values) == 0 {
			return fmt.Errorf("%s is missing, which %s needs", axis.name, a)
		}
	}
	return nil
}

func wholeAxes(g *Grid) error {
	for name, axis := range map[string]Axis{"n": g.N, "p": g.P} {
		for _, v := range axis {
			if v != float64(int(v)) || v < 1 {
				return fmt.Errorf("%s: expected whole numbers from 1, found %g", name, v)
			}
		}
	}
	return nil
}

func (s Solver) validate() error {
	if err := s.Settings.Validate(); err != nil {
		return fmt.Errorf("solver: %w", err)
	}
	return nil
}

// normal fills in defaults that are part of the key.
func (s Solver) normal() Solver {
	s.MaxIter = cmp.Or(s.MaxIter, 500)
	return s
}

func (r Record) validate(p int) error {
	for i, k := range r.Samples {
		if k < 1 || k > p || i > 0 && k <= r.Samples[i-1] {
			return fmt.Errorf("record: samples must increase from 1 to at most p = %d, found %v", p, r.Samples)
		}
	}
	if r.Target < 0 || r.Target >= 1 {
		return fmt.Errorf("record: target must be in (0, 1), found %g", r.Target)
	}
	return nil
}

func (g *Grid) solver(s *Spec) Solver {
	if g.Solver != nil {
		return g.Solver.normal()
	}
	return s.Solver.normal()
}

func (g *Grid) record(s *Spec) Record {
	if g.Record != nil {
		return *g.Record
	}
	return s.Record
}

// Sketch is the spec with its quick grids in place of the full ones.
func (s *Spec) Sketch() (*Spec, error) {
	if len(s.Quick) == 0 {
		return nil, fmt.Errorf("%s has no [[quick]] grid", s.Name)
	}
	sketch := *s
	sketch.Grids, sketch.Quick = s.Quick, nil
	return &sketch, nil
}

// Points are the runs of all grids in order, each once.
func (s *Spec) Points() []Point {
	var all []Point
	seen := make(map[string]bool)
	for i := range s.Grids {
		for _, p := range s.Grids[i].points(s) {
			if !seen[p.key] {
				seen[p.key] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// mostPoints is how many points a sweep may have. A plan, a status or a table
// holds all of them in memory, about 1.6 KB each.
const mostPoints = 1_000_000

// size is the number of points, which may be far too large for an int.
func (g *Grid) size() float64 {
	n := float64(len(g.Algorithm))
	for _, axis := range []int{
		len(g.P), len(g.NoiseVar), len(g.SRange), len(g.Phase), len(g.Joint), len(g.Rows), len(g.Matrix), len(g.Network), len(g.Covariance), len(g.N), len(g.Density), len(g.Alpha), len(g.Seeds),
	} {
		n *= float64(max(1, axis))
	}
	return n
}

// points is the product of the axes, the last of which, the seeds, changes fastest.
func (g *Grid) points(s *Spec) (out []Point) {
	g.each(s, func(p Point) error { // which never fails
		out = append(out, p.identified())
		return nil
	})
	return out
}

// each calls do with every point in order, which has no key yet, until there is an error.
func (g *Grid) each(s *Spec, do func(Point) error) error {
	base := Point{Solver: g.solver(s), Record: g.record(s), Rehearse: s.Rehearse, SharedMatrix: g.SharedMatrix}
	for _, a := range g.Algorithm {
		for _, p := range or(g.P, 1) {
			for _, noise := range or(g.NoiseVar, 0) {
				for _, r := range or(g.SRange, defaultRange) {
					for _, phase := range g.phases() {
						for _, kind := range or(g.Matrix, teacher.Ensemble{}) {
							at := base
							at.Algorithm, at.P, at.NoiseVar, at.SRange, at.Phase, at.Matrix = Algorithm(a), int(p), noise, r, phase, kind
							if err := g.behind(at, do); err != nil {
								return err
							}
						}
					}
				}
			}
		}
	}
	return nil
}

func (g *Grid) behind(at Point, do func(Point) error) error {
	for _, network := range or(g.Network, "") {
		for _, c := range or(g.Covariance, solver.Diagonal.String()) {
			at.Network, at.Covariance = network, c
			if err := g.inner(at, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Grid) inner(at Point, do func(Point) error) error {
	if at.Covariance == solver.Diagonal.String() {
		at.Covariance = "" // as keys have it
	}
	for _, rows := range or(g.Rows, 1) {
		at.Rows = int(rows)
		if float64(at.Rows) != rows || rows < 1 {
			at.Rows = -1 // which is refused
		}
		if err := g.ofRows(at, do); err != nil {
			return err
		}
	}
	return nil
}

// ofRows is inner for one number of rows a sensor.
func (g *Grid) ofRows(at Point, do func(Point) error) error {
	for _, joint := range or(g.Joint, "") {
		for _, n := range or(g.N, 0) {
			for _, density := range or(g.Density, 0) {
				for _, alpha := range or(g.Alpha, 0) {
					for _, seed := range or(g.Seeds, 1) {
						at.Joint, at.N, at.Density, at.Alpha, at.Seed = joint, int(n), density, alpha, seed
						if err := do(at); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// String is the point in a line.
func (p Point) String() string {
	text := []string{string(p.Algorithm)}
	add := func(name string, v float64) {
		if v != 0 {
			text = append(text, fmt.Sprintf("%s = %g", name, v))
		}
	}
	add("n", float64(p.N))
	add("density", p.Density)
	add("alpha", p.Alpha)
	add("p", float64(p.P))
	add("noise_var", p.NoiseVar)
	add("seed", float64(p.Seed))
	if p.Covariance != "" {
		text = append(text, p.Covariance)
	}
	if p.Complex() {
		text = append(text, "phase "+string(p.Phase))
	}
	if p.Rows > 1 {
		add("rows_per_sensor", float64(p.Rows))
	}
	if p.Joint.on() {
		text = append(text, "joint "+string(p.Joint))
	}
	if !p.independent() {
		text = append(text, p.Matrix.String())
	}
	if p.Network != "" {
		text = append(text, "network "+p.Network)
	}
	return strings.Join(text, ", ")
}

// Duration is a time.Duration that is written as in "1m30s".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("expected a duration such as \"90s\" or \"10m\", found %q", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
