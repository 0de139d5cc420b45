package option

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
)

// Anchor is --anchor: mean=VALUE or sensor=ROW:VALUE, which can be repeated for
// several sensors, or off, for none.
type Anchor struct {
	calamp.Anchor
	Off bool
}

// String is empty, as is the default.
func (a *Anchor) String() string { return "" }

// Type is what help shows.
func (a *Anchor) Type() string { return "mean=V|sensor=ROW:V|phase-sensor=ROW|off" }

// Words are how values begin.
func (a *Anchor) Words() []string { return []string{"mean=", "sensor=", "phase-sensor=", "off"} }

// Set takes one of the flag's values.
func (a *Anchor) Set(text string) error {
	if a.Off || text == "off" && a.Anchor.Set() {
		return errors.New("off stands alone")
	}
	kind, rest, _ := strings.Cut(text, "=")
	switch kind {
	case "off":
		if a.Off = text == "off"; !a.Off {
			return errors.New("expected off alone")
		}
	case "mean":
		v, err := Positive.parse(rest, "mean= with a finite number above 0")
		if err != nil {
			return err
		}
		if a.Mean != 0 {
			return errors.New("the mean is anchored already")
		}
		a.Mean = v
	case "phase-sensor":
		mu, err := strconv.Atoi(rest)
		if err != nil || mu < 0 {
			return errors.New("expected phase-sensor=ROW, a row of W from 0")
		}
		if a.Phase != nil {
			return fmt.Errorf("the phase of sensor %d is anchored already", *a.Phase)
		}
		a.Phase = &mu
	case "sensor":
		row, value, _ := strings.Cut(rest, ":")
		const expected = "sensor=ROW:VALUE, a row of W from 0 and its s, a finite number above 0"
		mu, err := strconv.Atoi(row)
		if err != nil || mu < 0 {
			return errors.New("expected " + expected)
		}
		v, err := Positive.parse(value, expected)
		if err != nil {
			return err
		}
		if _, twice := a.Sensors[mu]; twice {
			return fmt.Errorf("sensor %d is anchored already", mu)
		}
		if a.Sensors == nil {
			a.Sensors = map[int]float64{}
		}
		a.Sensors[mu] = v
	default:
		return errors.New("expected mean=VALUE, sensor=ROW:VALUE, phase-sensor=ROW or off")
	}
	return a.Validate()
}
