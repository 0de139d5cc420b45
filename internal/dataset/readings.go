package dataset

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/calamp/calamp/internal/memory"
)

// LoadReadings reads the readings Y, M×P or M, from a .npy, from the array Y of a .npz or
// .mat, or from text. NaN is a missing reading. Complex ones are pairs in Data, and are to be complex.
func LoadReadings(path string, complex bool) (*Array, error) {
	c, err := openAny(path, memory.Half())
	if err != nil {
		return nil, err
	}
	defer c.close()
	y, _, err := c.readings(complex)
	if err != nil {
		return nil, err
	}
	if complex && !y.isComplex() {
		return nil, y.fault("Y is real (%s), and the sensors' gains are complex", y.Dtype)
	}
	if y, err = y.asPairs(complex); err != nil {
		return nil, err
	}
	columns, err := y.columns("M×P")
	if err != nil {
		return nil, err
	}
	return y, checkFinite(columns, true)
}

// LoadOptional reads an array that the .npz or .mat at path may have; nil where it has not.
func LoadOptional(path, name string) (*Array, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.readOptional(name)
}

// ArrayFiles are the ends of the names that SaveArray writes.
var ArrayFiles = []string{".npy", ".npz", ".mat", ".csv"}

// Writable says whether SaveArray writes the kind of file.
func Writable(path string) bool { return slices.Contains(ArrayFiles, extension(path)) }

func extension(path string) string { return strings.ToLower(filepath.Ext(path)) }

// SaveArray writes an array with at most two dimensions as the kind of file that its
// name says, under the given name where files have names for arrays.
func SaveArray(path, name string, a *Array) error {
	columns, parts, dtype := 1, max(1, a.parts), "<f8"
	if len(a.Shape) == 2 {
		columns = a.Shape[1]
	}
	if parts == 2 {
		dtype = "<c16"
	}
	columns *= parts
	rows := len(a.Data) / columns
	o := output{name, dtype, a.Shape, rows, func(dst []byte, row int) ([]byte, error) {
		return appendFloats(dst, a.Data[row*columns:(row+1)*columns]), nil
	}}
	switch extension(path) {
	case ".npy":
		return WriteFile(path, o.write)
	case ".csv":
		if parts == 2 {
			return fmt.Errorf("%s: complex numbers are not written as CSV: .npy, .npz and .mat can have them", path)
		}
		return WriteFile(path, func(w io.Writer) error { return writeCSV(w, a.Data, columns) })
	case ".npz", ".mat":
		if len(a.Shape) < 2 {
			o.rows, o.appendRow = 1, vectorOutput(name, a.Data).appendRow
		}
		return writeArrays(path, []output{o})
	}
	return fmt.Errorf("%s: expected a name that ends in %s", path, strings.Join(ArrayFiles, ", "))
}

// writeCSV writes a line for each row; NaN is left empty.
func writeCSV(w io.Writer, values []float64, columns int) error {
	c := csv.NewWriter(w)
	for row := range slices.Chunk(values, columns) {
		cells := make([]string, columns)
		for k, v := range row {
			if !math.IsNaN(v) {
				cells[k] = strconv.FormatFloat(v, 'g', -1, 64)
			} else if columns == 1 {
				cells[k] = "nan" // an empty line would be left out by many readers
			}
		}
		c.Write(cells)
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

// SaveIntegers writes a vector of whole numbers as a .npy, or as an array of that name in a .npz or .mat.
func SaveIntegers(path, name string, v []int) error {
	o := integersOutput(name, []int{len(v)}, v)
	switch extension(path) {
	case ".npy":
		return WriteFile(path, o.write)
	case ".npz", ".mat":
		return writeArrays(path, []output{o})
	}
	return fmt.Errorf("%s: expected a name that ends in .npy, .npz or .mat", path)
}
