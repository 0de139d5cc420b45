// Package option is the flags that several commands have, each defined once, and
// what they describe: the model, the variant of the solver, the faults of sensors.
// It depends on the library's options, and on no command.
package option

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/solver"
)

// The flags' values check themselves: a wrong one is found before anything is
// done, and the message names the flag.

// Range is the numbers that a flag accepts.
type Range struct {
	holds    func(float64) bool // false for NaN
	expected string             // in words, for the message
	square   bool               // of variances, which are as far as the squares of others
	unsized  bool               // of numbers that no model has
}

// sized returns an error that begins with what is expected where a finite number is of no size to compute with.
func sized(v float64, square bool, expected string) error {
	least, most := solver.LeastSize, solver.MostSize
	if square {
		least, most = least*least, most*most
	}
	if size := math.Abs(v); size > 0 && size < least || size > most && !math.IsInf(v, 0) {
		return fmt.Errorf("expected %s, of a size from %.0g to %.0g", expected, least, most)
	}
	return nil
}

// The ranges that several flags have.
var (
	Finite      = Range{holds: func(v float64) bool { return !math.IsNaN(v) }, expected: "a finite number"}
	Positive    = Range{holds: func(v float64) bool { return v > 0 }, expected: "a finite number above 0"}
	Ratio       = Range{holds: Positive.holds, expected: Positive.expected, unsized: true}
	NotNegative = Range{holds: func(v float64) bool { return v >= 0 }, expected: "a finite number, not below 0"}
	Square      = Range{holds: Positive.holds, expected: Positive.expected, square: true} // a variance
	SquareOr0   = Range{holds: NotNegative.holds, expected: NotNegative.expected, square: true}
	Fraction    = Range{holds: func(v float64) bool { return v > 0 && v <= 1 }, expected: "a number in (0, 1]"}
	Inside01    = Range{holds: func(v float64) bool { return v > 0 && v < 1 }, expected: "a number in (0, 1)"}
	AnyCount    = Range{holds: NotNegative.holds, unsized: true} // of samples
	AtLeast1    = Range{holds: func(v float64) bool { return v >= 1 && v == math.Trunc(v) }, unsized: true}
	below1      = Range{holds: func(v float64) bool { return v >= 0 && v < 1 }, expected: "a number in [0, 1)"}
)

// Between is the numbers from lo to hi, both included.
func Between(lo, hi float64) Range {
	return Range{holds: func(v float64) bool { return v >= lo && v <= hi }, expected: fmt.Sprintf("a number in [%g, %g]", lo, hi)}
}

// UpTo is the positive numbers up to hi.
func UpTo(hi float64) Range {
	return Range{holds: func(v float64) bool { return v > 0 && v <= hi }, expected: fmt.Sprintf("a number in (0, %g]", hi)}
}

type number struct {
	value  *float64
	within Range
}

// Number is a flag's value that is a finite number of a range.
func Number(value *float64, within Range) pflag.Value { return number{value, within} }

func (n number) String() string { return strconv.FormatFloat(*n.value, 'g', -1, 64) }

func (n number) Type() string { return "number" }

func (n number) Set(text string) error {
	v, err := n.within.parse(text, n.within.expected)
	if err == nil {
		*n.value = v
	}
	return err
}

// parse reads a number of the range, or says what was expected.
func (r Range) parse(text, expected string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || !r.holds(v) {
		return 0, errors.New("expected " + expected)
	}
	if err := sized(v, r.square, expected); err != nil && !r.unsized {
		return 0, err
	}
	return v, nil
}

// NumberOr is a flag's value that is a number of a range, or one of a few words.
type NumberOr struct {
	fmt.Stringer // the value as it is
	Kind, Or     string
	Within       Range
	Expected     string // for the message
	Word         func(word string)
	Number       func(v float64)
}

// Type is what help says of the value.
func (n NumberOr) Type() string { return n.Kind }

// Words are the values that are words.
func (n NumberOr) Words() []string { return strings.Fields(n.Or) }

// Set takes a word or a number.
func (n NumberOr) Set(text string) error {
	if slices.Contains(n.Words(), text) {
		n.Word(text)
		return nil
	}
	v, err := n.Within.parse(text, n.Expected)
	if err == nil {
		n.Number(v)
	}
	return err
}

type count struct {
	value *int
	least int
}

// Count is a flag's value that is a whole number, not below least.
func Count(value *int, least int) pflag.Value { return count{value, least} }

func (c count) String() string { return strconv.Itoa(*c.value) }

func (c count) Type() string { return "int" }

func (c count) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < c.least {
		return fmt.Errorf("expected a whole number, at least %d", c.least)
	}
	*c.value = v
	return nil
}

type sequence struct {
	value *int64
	least int64
}

// Sequence is a flag's value that is a number of a sample, or of samples, not below least.
func Sequence(value *int64, least int64) pflag.Value { return sequence{value, least} }

func (s sequence) String() string { return strconv.FormatInt(*s.value, 10) }

func (s sequence) Type() string { return "int" }

func (s sequence) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < s.least || v > intake.MaxSequence {
		return fmt.Errorf("expected a whole number from %d to %d", s.least, intake.MaxSequence)
	}
	*s.value = v
	return nil
}

// RangeFlag is the flag of a range of s that may be left out.
func RangeFlag(flags *pflag.FlagSet, r *[2]float64, name, usage string) {
	flags.Var(&interval{lo: &r[0], hi: &r[1]}, name, usage)
	flags.Lookup(name).DefValue = "0" // there is none
}

// interval is a flag's value a,b with 0 < a < b.
type interval struct {
	lo, hi *float64
	point  bool // a = b is allowed, too
}

func (i *interval) String() string { return fmt.Sprintf("%g,%g", *i.lo, *i.hi) }

func (i *interval) Type() string { return "a,b" }

func (i *interval) Set(text string) error {
	first, second, ok := strings.Cut(text, ",")
	lo, errLo := strconv.ParseFloat(strings.TrimSpace(first), 64)
	hi, errHi := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if !ok || errLo != nil || errHi != nil || !(lo > 0) || !(lo < hi || i.point && lo == hi) || math.IsInf(hi, 1) {
		return errors.New("expected a,b with 0 < a < b")
	}
	if err := cmp.Or(sized(lo, false, "a,b with 0 < a < b"), sized(hi, false, "a,b with 0 < a < b")); err != nil {
		return err
	}
	*i.lo, *i.hi = lo, hi
	return nil
}

// choice is a flag's value that is one of a few words.
type choice struct {
	value *string
	words []string
}

// Choice is a flag's value that is one of a few words.
func Choice(value *string, words ...string) pflag.Value { return choice{value, words} }

func (c choice) String() string { return *c.value }

func (c choice) Type() string { return strings.Join(c.words, "|") }

// Words are the values there are, for completion in a shell.
func (c choice) Words() []string { return c.words }

func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("expected " + strings.Join(c.words, " or "))
	}
	*c.value = text
	return nil
}

// readable is a pointer to a type of ours that reads and writes itself as text.
type readable[T any] interface {
	*T
	encoding.TextUnmarshaler
	fmt.Stringer
}

// Wording is how a value that reads itself from text appears on the command line.
type Wording[T any] struct {
	Kind     string       // what help says it is, as in "auto|fraction"
	Words    []string     // the values that are words, for completion in a shell
	Expected string       // for the message; empty leaves the message to the type
	Valid    func(T) bool // nil where all that can be read is valid
}

// OneOf is the wording of a type that has only these values, each with its word.
func OneOf[T fmt.Stringer](values ...T) Wording[T] {
	var words []string
	for _, v := range values {
		words = append(words, v.String())
	}
	return Wording[T]{Kind: strings.Join(words, "|"), Words: words, Expected: strings.Join(words, " or ")}
}

type text[T any, P readable[T]] struct {
	value P
	Wording[T]
}

// Text is a flag's value of a type that reads itself from text, so that its
// words are spelt in one place: with the type.
func Text[T any, P readable[T]](value P, w Wording[T]) pflag.Value { return text[T, P]{value, w} }

func (v text[T, P]) String() string { return v.value.String() }

func (v text[T, P]) Type() string { return v.Kind }

// Words are those of the wording.
func (v text[T, P]) Words() []string { return v.Wording.Words }

func (v text[T, P]) Set(given string) error {
	var read T
	err := P(&read).UnmarshalText([]byte(given))
	switch {
	case v.Expected == "" && err != nil:
		return err
	case err != nil, v.Valid != nil && !v.Valid(read):
		return errors.New("expected " + v.Expected)
	}
	*v.value = read
	return nil
}

// Given says whether the user gave the flag.
func Given(flags *pflag.FlagSet, name string) bool { return flags.Changed(name) }

// AutoWord is what a flag is given whose value is to be learned.
const AutoWord = "auto"

// auto is a model flag's value that may also be the word auto: learn it.
type auto struct {
	pflag.Value
	on bool
}

func (a *auto) String() string {
	if a.on {
		return AutoWord
	}
	return a.Value.String()
}

func (a *auto) Type() string { return a.Value.Type() + "|" + AutoWord }

// Words is the one word.
func (a *auto) Words() []string { return []string{AutoWord} }

func (a *auto) Set(text string) error {
	if a.on = text == AutoWord; a.on {
		return nil
	}
	return a.Value.Set(text)
}
