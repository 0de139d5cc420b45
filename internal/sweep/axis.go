package sweep

import (
	"fmt"
	"math"
	"strconv"

	"github.com/calamp/calamp/internal/memory"
)

// Axis is the values of a parameter: in TOML a number, a list, or
// {from = a, to = b, count = n}, with log = true in equal ratios.
type Axis []float64

// UnmarshalTOML implements toml.Unmarshaler.
func (a *Axis) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case map[string]any:
		return a.fromRange(v)
	case []any:
		for _, entry := range v {
			x, err := toFloat(entry)
			if err != nil {
				return err
			}
			*a = append(*a, x)
		}
		return nil
	default:
		x, err := toFloat(v)
		*a = Axis{x}
		return err
	}
}

func toFloat(v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			break
		}
		return v, nil
	}
	return 0, fmt.Errorf("expected a finite number, found %v", v)
}

const mostCount = 1_000_000

func (a *Axis) fromRange(v map[string]any) error {
	var from, to, count float64
	log := false
	for key, entry := range v {
		var err error
		switch key {
		case "from":
			from, err = toFloat(entry)
		case "to":
			to, err = toFloat(entry)
		case "count":
			count, err = toFloat(entry)
		case "log":
			var ok bool
			if log, ok = entry.(bool); !ok {
				err = fmt.Errorf("log is true or false, found %v", entry)
			}
		default:
			err = fmt.Errorf("unknown key %s in a range: expected from, to, count, log", key)
		}
		if err != nil {
			return err
		}
	}
	if count != math.Trunc(count) || count < 2 || count > mostCount || !(from < to) || log && from <= 0 {
		return fmt.Errorf("a range needs from < to and a count of 2 or more (and from > 0 with log), found from = %g, to = %g, count = %g", from, to, count)
	}
	*a = make(Axis, int(count))
	for i := range *a {
		(*a)[i] = between(from, to, float64(i)/(count-1), log)
	}
	return nil
}

// between is rounded to twelve digits, which makes 0.3 of what would be
// 0.30000000000000004, and is the same on every processor.
func between(from, to, t float64, log bool) float64 {
	v := from + float64(t*(to-from))
	if log {
		v = from * math.Exp(t*math.Log(to/from))
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return v
}

// or is a list, or the one value where it is empty.
func or[L ~[]E, E any](list L, value E) L {
	if len(list) == 0 {
		return L{value}
	}
	return list
}

// listOf is a TOML list, or the one value as a list.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// Words is a word or a list of words.
type Words []string

// UnmarshalTOML implements toml.Unmarshaler.
func (w *Words) UnmarshalTOML(v any) error {
	for _, entry := range listOf(v) {
		word, ok := entry.(string)
		if !ok {
			return fmt.Errorf("expected a word in quotes, found %v", entry)
		}
		*w = append(*w, word)
	}
	return nil
}

// Ranges is [a, b] or a list of such. [a, a] means that the gains are known.
type Ranges [][2]float64

// defaultRange is the paper's.
var defaultRange = [2]float64{0.95, 1.05}

// UnmarshalTOML implements toml.Unmarshaler.
func (r *Ranges) UnmarshalTOML(v any) error {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return fmt.Errorf("expected [a, b] or a list of such, found %v", v)
	}
	if _, nested := list[0].([]any); !nested {
		list = []any{v}
	}
	for _, entry := range list {
		pair, ok := entry.([]any)
		if !ok || len(pair) != 2 {
			return fmt.Errorf("expected [a, b], found %v", entry)
		}
		a, errA := toFloat(pair[0])
		b, errB := toFloat(pair[1])
		if errA != nil || errB != nil || a <= 0 || b < a {
			return fmt.Errorf("expected [a, b] with 0 < a ≤ b, found %v", entry)
		}
		*r = append(*r, [2]float64{a, b})
	}
	return nil
}

// Seeds is a count, for 1, 2, …, or a list of seeds.
type Seeds []uint64

// UnmarshalTOML implements toml.Unmarshaler.
func (s *Seeds) UnmarshalTOML(v any) error {
	if n, ok := v.(int64); ok {
		if n < 1 || n > mostCount {
			return fmt.Errorf("expected a number of seeds from 1 to %d, or a list of seeds, found %d", mostCount, n)
		}
		for seed := range uint64(n) {
			*s = append(*s, seed+1)
		}
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("expected a number of seeds or a list of seeds, found %v", v)
	}
	for _, entry := range list {
		seed, ok := entry.(int64)
		if !ok || seed < 1 {
			return fmt.Errorf("expected whole numbers from 1, found %v", entry)
		}
		*s = append(*s, uint64(seed))
	}
	return nil
}

// Size is a number of bytes, written as in "4GB" or "2GiB".
type Size = memory.Size
