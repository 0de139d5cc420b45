package option

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
)

// RowSensors is --sensors: the sensor that each row of W is read with.
type RowSensors struct{ File string }

// Register adds the flag.
func (s *RowSensors) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.File, "sensors", "", About("sensors"))
}

// Load reads the file into the problem, and returns how many sensors there are, and the readings that a sensor has at most of
// signals and rows.
func (s *RowSensors) Load(data *dataset.Problem, compare bool) (count, each int, err error) {
	rows, p := data.Y.Dims()
	if err := s.Read(data, rows); err != nil {
		return 0, 0, err
	}
	count = calamp.SensorCount(data.Sensors, rows)
	if data.Sensors != nil && compare {
		return 0, 0, console.Usage("--compare is for sensors with a row each: leave it or the sensors out")
	}
	if data.Complex {
		p /= 2
	}
	return count, (rows + count - 1) / count * p, nil
}

// Read reads the file into the problem, which has so many rows.
func (s *RowSensors) Read(data *dataset.Problem, rows int) (err error) {
	switch {
	case s.File == "":
		return nil
	case data.Sensors != nil:
		return console.Usage("--sensors and the array sensors of the problem both say which sensor a row is read with, give one")
	}
	if data.Sensors, err = dataset.LoadSensors(s.File, rows); err != nil {
		return console.Usage("--sensors %w", err)
	}
	return nil
}

// LoadNoise is [Model.LoadNoise] for sensors of which some have several rows: noise is that of each row, sensor or reading.
func (s *RowSensors) LoadNoise(m *Model, data *dataset.Problem) error {
	rows, p := data.Y.Dims()
	err := m.LoadNoise(rows, p)
	if count := calamp.SensorCount(data.Sensors, rows); err != nil && count != rows && m.LoadNoise(count, p) == nil {
		return nil
	}
	return err
}
