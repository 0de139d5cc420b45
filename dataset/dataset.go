// Package dataset brings problems and results in and out of files: numpy's
// .npz and .npy, and CSV for readings.
//
// A problem is a .npz with
//
//	W    M×N         measurement matrix
//	Y    M×P, or M   readings; NaN where one is missing
//	X0   N×P, or N   true signals, optional
//	s0   M           true calibration, positive, optional (y = z/s)
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

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// Problem is what a problem file holds.
type Problem struct {
	W     *operator.Dense // M×N; single precision where the file has f4
	Y     *mat.Dense      // M×P; NaN is a missing reading
	Truth calamp.Truth    // X N×P or nil, S of length M or nil: the arrays X0 and s0
}

// Load reads a problem from the .npz at path.
func Load(path string) (*Problem, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.problem()
}

// Read reads a problem in .npz format from r, all of which it buffers first: a
// zip archive is read from its end. The name stands for r in errors.
func Read(r io.Reader, name string) (*Problem, error) {
	c, err := buffer(r, name)
	if err != nil {
		return nil, err
	}
	return c.problem()
}

// LoadParts reads a problem from a file with W (.npy) and one with Y (.npy or
// CSV: a line for each sensor, an optional header line, and nothing or nan
// where a reading is missing). A .npz with the array W or Y will do as well.
func LoadParts(matrixPath, readingsPath string) (*Problem, error) {
	w, err := loadArray(matrixPath, "W", true)
	if err != nil {
		return nil, err
	}
	y, err := loadReadings(readingsPath)
	if err != nil {
		return nil, err
	}
	return assemble(w, y, nil, nil)
}

// Save writes p to the .npz at path, or to standard output when path is "-": W
// in the precision it is stored in, Y, and X0 and s0 where they are known. It
// refuses a problem that [Load] would not read back.
func Save(path string, p *Problem) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	arrays := []output{denseOutput("W", p.W), matrixOutput("Y", p.Y)}
	if p.Truth.X != nil {
		arrays = append(arrays, matrixOutput("X0", p.Truth.X))
	}
	if p.Truth.S != nil {
		arrays = append(arrays, vectorOutput("s0", p.Truth.S))
	}
	return WriteFile(path, func(w io.Writer) error { return writeArchive(w, arrays) })
}

// problem reads the arrays of a problem from an archive.
func (c *container) problem() (*Problem, error) {
	if c.format == npyFormat {
		return nil, c.fault("", "this is a single array (.npy), expected a .npz with W and Y "+
			"(numpy.savez), or the matrix and the readings in two files")
	}
	w, err := c.read("W", true)
	if err != nil {
		return nil, err
	}
	y, err := c.read("Y", false)
	if err != nil {
		return nil, err
	}
	x0, err := c.readOptional("X0")
	if err != nil {
		return nil, err
	}
	s0, err := c.readOptional("s0")
	if err != nil {
		return nil, err
	}
	return assemble(w, y, x0, s0)
}
