package option

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
)

// Anchor is --anchor: mean=VALUE or sensor=ROW:VALUE, which can be repeated for
// several sensors.
func Anchor(value *calamp.Anchor) pflag.Value { return anchor{value} }

type anchor struct{ *calamp.Anchor }

func (a anchor) String() string { return "" }

func (a anchor) Type() string { return "mean=V|sensor=ROW:V" }

// Words are how values begin.
func (a anchor) Words() []string { return []string{"mean=", "sensor="} }

func (a anchor) Set(text string) error {
	kind, rest, _ := strings.Cut(text, "=")
	switch kind {
	case "mean":
		v, err := strconv.ParseFloat(rest, 64)
		if err != nil || !(v > 0) || math.IsInf(v, 1) {
			return errors.New("expected mean= with a finite number above 0")
		}
		if a.Mean != 0 {
			return errors.New("the mean is anchored already")
		}
		a.Mean = v
	case "sensor":
		row, value, _ := strings.Cut(rest, ":")
		mu, err := strconv.Atoi(row)
		v, errV := strconv.ParseFloat(value, 64)
		if err != nil || errV != nil || mu < 0 || !(v > 0) || math.IsInf(v, 1) {
			return errors.New("expected sensor=ROW:VALUE, a row of W from 0 and its s, a finite number above 0")
		}
		if _, twice := a.Sensors[mu]; twice {
			return fmt.Errorf("sensor %d is anchored already", mu)
		}
		if a.Sensors == nil {
			a.Sensors = map[int]float64{}
		}
		a.Sensors[mu] = v
	default:
		return errors.New("expected mean=VALUE or sensor=ROW:VALUE")
	}
	return a.Validate()
}
