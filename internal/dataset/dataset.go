// Package dataset reads and writes problems and results, in numpy's .npz and .npy,
// MATLAB's .mat (version 5 to 7), and readings also in CSV: it deals with files and shapes, and does not depend on solving.
//
// A problem is a .npz or .mat with
//
//	W    M×N         measurement matrix, or P×M×N, one for every signal
//	matrix   P       where W is K×M×N, which of these every signal has, integers from 0, optional
//	Y    M×P, or M   readings; NaN where one is missing
//	X0   N×P, or N   true signals, optional
//	s0   M           true calibration, positive, optional (y = z/s)
//	o0   M           true offsets, optional (y = z/s + o)
//	s_prior_mean, s_prior_sd   M   what is known of the s of each sensor, optional; NaN where nothing is
//	sensors  M       the sensor that each row is read with, integers from 0, optional; then s0 and what is known of
//	                 sensors are of as many as there are
//
// All of them can be complex (c8 or c16), or Y alone of W and Y; then there can be
//
//	s_phase  M       nominal phases of the gains in radians
//
// or W and Y as two files. Arrays can be of any float, integer or bool type, in
// C or Fortran order and either byte order, stored or deflated.
//
// Every error of a reading function is an [InputError]; rows and columns in it
// count from 0, as they do in numpy, and lines of a CSV from 1, as they do in
// an editor.
package dataset

import (
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// Problem is what a problem file holds.
type Problem struct {
	W     operator.Operator // M×N; of a table single precision where the file has f4
	Y     *mat.Dense        // M×P; NaN is a missing reading
	Truth calamp.Truth      // X N×P or nil, S and O of length M or nil: the arrays X0, s0 and o0

	// Known is what is known of single sensors: the arrays s_prior_mean and s_prior_sd; nil for nothing.
	Known *channel.Knowledge

	// Sensors is the sensor that each row of W is read with (M): the array sensors; nil where every row is a sensor.
	Sensors []int

	// Complex says that signals and readings are complex: then Y and X0 have two columns for each, real parts
	// and imaginary parts beside each other, and W is an [operator.Complex], or real. Phases (M), or nil, are nominal
	// phases of the gains in radians: the array s_phase.
	Complex bool
	Phases  []float64

	file io.Closer // that W stays in; nil when W is in memory
}

// Close closes the file of a W that was left there.
func (p *Problem) Close() {
	if p.file != nil {
		p.file.Close() // it was only read: an error here loses nothing
	}
}

// Load reads a problem from the .npz or .mat at path, of which the arrays take at most half of the machine's memory once
// they are read, or four times the file.
func Load(path string) (*Problem, error) { return LoadNamed(path, math.MaxInt64, nil) }

// LoadNamed is Load with a budget of bytes in place of half the machine's memory, for arrays that have names of their own in the file.
func LoadNamed(path string, budget int64, names Names) (*Problem, error) {
	c, err := openWithin(path, allowance(budget))
	if err != nil {
		return nil, err
	}
	defer c.close()
	c.names = names
	return c.problem()
}

// Read reads a problem in .npz or .mat format from r. It first reads all of r into memory,
// since a zip archive is read from its end. In errors, r is called name.
func Read(r io.Reader, name string) (*Problem, error) { return ReadWithin(r, name, math.MaxInt64) }

// ReadWithin is Read with a budget, as [LoadWithin] is Load.
func ReadWithin(r io.Reader, name string, budget int64) (*Problem, error) {
	c, err := buffer(r, name, allowance(budget))
	if err != nil {
		return nil, err
	}
	return c.problem()
}

// LoadParts reads a problem from the matrix that spec names ([OpenMatrix]: a file with W,
// or a kind and files) and a file with Y (.npy or CSV: a line for each sensor, an
// optional header line, and nothing or nan where a reading is missing). A .npz with the
// array Y will do as well, and then its X0, s0 and o0 are the truth.
func LoadParts(spec, readingsPath string) (*Problem, error) {
	return OpenParts(spec, readingsPath, math.MaxInt64)
}

// OpenParts is LoadParts for a W that may be larger than memory: a table beyond budget
// bytes stays in its file, if that is a .npy of little-endian f4 or f8 in C
// order, and is read in every iteration. Another file that large is an error, and so is one of which
// the arrays take more than budget bytes, and more than four times the files.
// Close the problem when done.
func OpenParts(spec, readingsPath string, budget int64) (*Problem, error) {
	allowed := allowance(budget)
	w, file, err := openMatrix(spec, budget, allowed)
	if err != nil {
		return nil, err
	}
	p := &Problem{W: w, file: file}
	if err := p.addReadings(spec, readingsPath, allowed); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// OpenPartsShared is OpenParts with the rows of the table divided over the ranks of a group ([OpenShared]).
func OpenPartsShared(path, readingsPath string, budget int64, group operator.Group, reproducible bool) (*Problem, error) {
	w, file, err := OpenShared(path, budget, group, reproducible)
	if err != nil {
		return nil, err
	}
	p := &Problem{W: w, file: file}
	if err := p.addReadings(path, readingsPath, allowance(budget)); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// allowance is that of a budget in bytes, of which the largest is half of what the machine has.
func allowance(budget int64) *memory.Allowance {
	if budget == math.MaxInt64 {
		return memory.Half()
	}
	return memory.Allow(memory.Size(budget))
}

// addReadings reads Y and the truth for the matrix that spec names.
func (p *Problem) addReadings(spec, path string, allowed *memory.Allowance) error {
	c, err := openAny(path, allowed)
	if err != nil {
		return err
	}
	defer c.close()
	y, truth, err := c.readings(true)
	if err != nil {
		return err
	}
	m, n := p.W.Dims()
	w := &Array{Info: Info{Name: "W", Shape: []int{m, n}}, path: spec}
	if operator.IsComplex(p.W) {
		w.parts = 2
	}
	p.Complex = y.isComplex()
	if p.Y, p.Truth, err = check(w, y, truth); err != nil {
		return err
	}
	if err = p.chooseMatrices(truth.matrix, w); err != nil {
		return err
	}
	if err = p.checkSignals(w); err != nil {
		return err
	}
	if p.Sensors, err = truth.sensors.sensors(m); err != nil {
		return err
	}
	if p.Known, err = c.knowledge(calamp.SensorCount(p.Sensors, m)); err != nil {
		return err
	}
	return p.readPhases(c)
}

// leave returns the description of W, without its values, when W is to stay in its
// file; nil when it fits the budget.
func (c *container) leave(budget int64) (*Array, error) {
	w, err := c.describe("W")
	if err != nil {
		return nil, err
	}
	if w.converted() > budget && len(w.Shape) == 3 {
		return nil, w.fault("W is %s and takes %d bytes, over the memory allowed for it (%d): a matrix for every signal is in memory", w.dims(), w.converted(), budget)
	}
	if w.converted() > budget && (len(w.Shape) != 2 || w.count() == 0) {
		return nil, w.fault("W is %s, expected a matrix M×N", w.dims())
	}
	if stays, err := c.stays(w, budget); !stays {
		return nil, err
	}
	return w, nil
}

// stays says whether W, or what is needed of it, is to stay in its file.
func (c *container) stays(w *Array, budget int64) (bool, error) {
	takes := w.converted()
	if takes <= budget {
		return false, nil
	}
	if c.format != npyFormat || c.closer == nil || w.Order != "C" || w.Dtype != "<f4" && w.Dtype != "<f8" {
		return false, w.fault("W takes %d bytes, over the memory allowed for it (%d), and is not in a form that can be read piece by piece: expected a .npy of <f4 or <f8 in C order, "+
			"numpy.save('W.npy', numpy.ascontiguousarray(W, '<f4'))", takes, budget)
	}
	return true, nil
}

// Save writes p to the .npz or, where its name says so, the .mat at path, or to standard output when path is "-": W
// in the precision it is stored in, Y, and X0, s0, o0 and noise_var0 where they are known. It
// refuses a problem that [Load] would not read back. Of a W that is no table it writes
// what [OpenMatrix] needs to read it from the same file, and nothing where it cannot.
func Save(path string, p *Problem) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	numbers := matrixOutput
	if p.Complex {
		numbers = pairsOutput
	}
	arrays := append(matrixOutputs(p.W), numbers("Y", p.Y))
	if p.Truth.X != nil {
		arrays = append(arrays, numbers("X0", p.Truth.X))
	}
	switch {
	case p.Truth.Phase != nil:
		arrays = append(arrays, complexVectorOutput("s0", p.Truth.ComplexS()))
	case p.Truth.S != nil:
		arrays = append(arrays, vectorOutput("s0", p.Truth.S))
	}
	if p.Phases != nil {
		arrays = append(arrays, vectorOutput("s_phase", p.Phases))
	}
	if p.Truth.O != nil {
		arrays = append(arrays, vectorOutput("o0", p.Truth.O))
	}
	if m, signals := p.Y.Dims(); len(p.Truth.NoiseVar) == m*signals && signals > 1 {
		arrays = append(arrays, matrixOutput("noise_var0", mat.NewDense(m, signals, p.Truth.NoiseVar)))
	} else if p.Truth.NoiseVar != nil {
		arrays = append(arrays, vectorOutput("noise_var0", p.Truth.NoiseVar))
	}
	if p.Sensors != nil {
		arrays = append(arrays, integersOutput(sensorsName, []int{len(p.Sensors)}, p.Sensors))
	}
	if p.Known != nil {
		arrays = append(arrays, vectorOutput(knownMean, p.Known.Mean), vectorOutput(knownSD, p.Known.SD))
	}
	return writeArrays(path, arrays)
}

// needsSeveral refuses a file with one array where a problem is expected.
func (c *container) needsSeveral() error {
	if c.format != npyFormat {
		return nil
	}
	return c.fault("", "this is a single array (.npy), expected a .npz with W and Y "+
		"(numpy.savez), or the matrix and the readings in two files")
}

// problem reads the arrays of a problem from an archive.
func (c *container) problem() (*Problem, error) {
	if err := c.needsSeveral(); err != nil {
		return nil, err
	}
	w, err := c.readNumbers("W", true, true)
	if err != nil {
		return nil, err
	}
	y, err := c.readNumbers("Y", false, true)
	if err != nil {
		return nil, err
	}
	truth, err := c.truth()
	if err != nil {
		return nil, err
	}
	p, err := assemble(w, y, truth)
	if err != nil {
		return nil, err
	}
	m, _ := p.Y.Dims()
	if p.Sensors, err = truth.sensors.sensors(m); err != nil {
		return nil, err
	}
	if p.Known, err = c.knowledge(calamp.SensorCount(p.Sensors, m)); err != nil {
		return p, err
	}
	return p, p.readPhases(c)
}

// truths are the arrays that say what a problem was made from, and of which sensors; nil where there are none.
type truths struct{ x0, s0, o0, sensors, matrix *Array }

func (c *container) truth() (t truths, err error) {
	if t.x0, err = c.readTruth("X0"); err != nil {
		return t, err
	}
	if t.s0, err = c.readTruth("s0"); err != nil {
		return t, err
	}
	if t.o0, err = c.readOptional("o0"); err != nil {
		return t, err
	}
	if t.sensors, err = c.readOptional(sensorsName); err != nil {
		return t, err
	}
	t.matrix, err = c.readOptional(matrixName)
	return t, err
}
