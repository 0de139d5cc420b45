package option

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// spelling is a flag's other name: giving it gives the flag.
type spelling struct {
	flags *pflag.FlagSet
	of    string
	turn  func(text string) (string, error) // what the flag is given; nil for the same
}

func (s *spelling) flag() *pflag.Flag { return s.flags.Lookup(s.of) }

// String is empty where the flag was not given, so that help shows no second default.
func (s *spelling) String() string {
	if s.flags == nil || s.turn != nil {
		return ""
	}
	return s.flag().Value.String()
}

func (s *spelling) Type() string { return s.flag().Value.Type() }

// Words are those of the flag, for completion in a shell.
func (s *spelling) Words() []string {
	if v, ok := s.flag().Value.(interface{ Words() []string }); ok {
		return v.Words()
	}
	return nil
}

func (s *spelling) Set(text string) error {
	if s.turn != nil {
		turned, err := s.turn(text)
		if err != nil {
			return err
		}
		text = turned
	}
	err := s.flags.Set(s.of, text)
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalid.Unwrap()
	}
	return err
}

// spellings are the field's names of flags that had others first. Those of before work as they did, and help does not show them.
var spellings = []struct {
	name, of string
	usage    string // in place of that of the flag; empty for the same
	turn     func(text string) (string, error)
	hidden   bool // another name that help does not show
}{
	{"gain-range", "s-range", "range of the gains 1/s (that of s, y = z/s: --s-range)", inverted, false},
	{"gain-prior", "s-prior", "", nil, false},
	{"reference", "anchor", "", nil, false},
	{"initial-batch", "warm-up", "", nil, false},
	{"sensors", "sampled-sensors", "", nil, true},
	{"sparsity", "density", "", nil, true},
	{"told-s-range", "assume-s-range", "", nil, true}, // until November 2026
}

// inverted is the range of s for one of gains.
func inverted(text string) (string, error) {
	if text == AutoWord {
		return text, nil
	}
	first, second, ok := strings.Cut(text, ",")
	lo, errLo := strconv.ParseFloat(strings.TrimSpace(first), 64)
	hi, errHi := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if !ok || errLo != nil || errHi != nil || !(lo > 0 && lo <= hi) {
		return "", errors.New("expected a,b with 0 < a < b")
	}
	return fmt.Sprintf("%s,%s", strconv.FormatFloat(1/hi, 'g', -1, 64), strconv.FormatFloat(1/lo, 'g', -1, 64)), nil
}

// AddSpellings gives the flags of a command the field's names.
func AddSpellings(flags *pflag.FlagSet) {
	for _, s := range spellings {
		f := flags.Lookup(s.of)
		if f == nil || flags.Lookup(s.name) != nil {
			continue
		}
		usage := s.usage
		if usage == "" {
			usage = f.Usage
		} else if a, ok := f.Value.(*auto); ok && a != nil {
			usage += "; auto learns it"
		}
		flags.Var(&spelling{flags, s.of, s.turn}, s.name, usage)
		added := flags.Lookup(s.name)
		added.DefValue, added.Hidden = f.DefValue, s.hidden
		if s.turn != nil {
			added.DefValue = ""
		}
		f.Hidden = f.Hidden || !s.hidden
	}
}

// Near is the flag that was probably meant by a name that there is none of; empty for none.
func Near(flags *pflag.FlagSet, name string) (near string) {
	var names []string
	for _, f := range Essential(flags) { // of several that are as near
		names = append(names, f.Name)
	}
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return nearest(name, names)
}

// nearest is the one of names that was probably meant; empty for none.
func nearest(name string, names []string) (near string) {
	least := min(2, len(name)/2) + 1
	own := strings.ReplaceAll(name, "_", "-")
	for _, n := range names {
		d := distance(name, n)
		if len(name) > 2 && (strings.HasPrefix(n, strings.TrimSuffix(name, "s")) || strings.HasSuffix(n, "-"+name) || own == n) {
			d = min(d, 1)
		}
		if d < least || d == least && near != "" && n == own {
			near, least = n, d
		}
	}
	return near
}

// distance is how many letters must be put in, left out, changed, or exchanged with the next, to make one word of another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			default:
				change := 1
				if a[i-1] == b[j-1] {
					change = 0
				}
				rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}
