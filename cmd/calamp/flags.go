package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/memory"
)

// The flags' values check themselves: a wrong one is found before anything is
// done, and the message names the flag.

// number is a flag's value that must satisfy a condition.
type number struct {
	value    *float64
	valid    func(float64) bool // false for NaN
	expected string
}

func (n number) String() string {
	if n.value == nil {
		return ""
	}
	return strconv.FormatFloat(*n.value, 'g', -1, 64)
}

func (n number) Type() string { return "number" }

func (n number) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || !n.valid(v) {
		return errors.New("expected " + n.expected)
	}
	*n.value = v
	return nil
}

// count is a flag's value that is a whole number, not below least.
type count struct {
	value *int
	least int
}

func (c count) String() string {
	if c.value == nil {
		return ""
	}
	return strconv.Itoa(*c.value)
}

func (c count) Type() string { return "int" }

func (c count) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < c.least {
		return fmt.Errorf("expected a whole number, at least %d", c.least)
	}
	*c.value = v
	return nil
}

// amount is a flag's amount of memory.
type amount struct{ *memory.Size }

func (s amount) String() string {
	if s.Size == nil {
		return ""
	}
	return s.Size.String()
}

func (s amount) Type() string { return "size" }

func (s amount) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// interval is a flag's value a,b with 0 < a < b.
type interval struct{ lo, hi *float64 }

func (i interval) String() string {
	if i.lo == nil {
		return ""
	}
	return fmt.Sprintf("%g,%g", *i.lo, *i.hi)
}

func (i interval) Type() string { return "a,b" }

func (i interval) Set(text string) error {
	first, second, ok := strings.Cut(text, ",")
	lo, errLo := strconv.ParseFloat(strings.TrimSpace(first), 64)
	hi, errHi := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if !ok || errLo != nil || errHi != nil || !(lo > 0) || !(lo < hi) || math.IsInf(hi, 1) {
		return errors.New("expected a,b with 0 < a < b")
	}
	*i.lo, *i.hi = lo, hi
	return nil
}

// choice is a flag's value that is one of a few words; the first is the default.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("expected " + strings.Join(c.words, " or "))
	}
	*c.value = text
	return nil
}

// given says whether the user gave the flag.
func given(flags *pflag.FlagSet, name string) bool { return flags.Changed(name) }
