package dataset

import (
	"fmt"
	"io"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// LoadDerivatives reads the derivatives of a matrix of m×n entries by what is not known of it: of each spec a .npy, or a .npz with one array or
// the array D, that is J×M×N or M×N, or a matrix as [OpenMatrix] reads it. They are called after the files.
func LoadDerivatives(specs []string, m, n int) (list []calamp.Direction, err error) {
	for _, spec := range specs {
		var found []operator.Operator
		if IsSpec(spec) {
			w, _, err := openMatrix(spec, int64(memory.Unlimited), memory.Half())
			if err != nil {
				return nil, err
			}
			if rows, columns := w.Dims(); rows != m || columns != n {
				return nil, fault(spec, "", "the derivative is %d×%d, expected %d×%d, as W", rows, columns, m, n)
			}
			found = append(found, w)
		} else if found, err = loadTables(spec, m, n); err != nil {
			return nil, err
		}
		for j, d := range found {
			name := spec
			if len(found) > 1 {
				name = fmt.Sprintf("%s, derivative %d", spec, j)
			}
			list = append(list, calamp.Direction{Name: name, D: d})
		}
	}
	return list, nil
}

// loadTables reads J×M×N tables, or one.
func loadTables(path string, m, n int) ([]operator.Operator, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	name := ""
	if c.format != npyFormat && c.find("D") != nil {
		name = "D"
	}
	a, err := c.readNumbers(name, false, true)
	if err != nil {
		return nil, err
	}
	dims := a.dims()
	if len(a.Shape) == 2 {
		a.Shape = append([]int{1}, a.Shape...)
	}
	if shape := a.Shape; len(shape) != 3 || shape[0] < 1 || shape[1] != m || shape[2] != n {
		return nil, a.fault("the derivatives are %s, expected J×%d×%d, one of the size of W for each parameter", dims, m, n)
	}
	if err := checkFinite(a, false); err != nil {
		return nil, err
	}
	list := make([]operator.Operator, a.Shape[0])
	for j := range list {
		if list[j], err = a.page(j).table(); err != nil {
			return nil, fmt.Errorf("derivative %d: %w", j, err)
		}
	}
	return list, nil
}

// SaveMatrix writes a matrix as [OpenMatrix] reads it: a table as .npy, or as the array W of a .npz or .mat.
func SaveMatrix(path string, w operator.Operator) error {
	arrays := matrixOutputs(w)
	if arrays == nil {
		return fmt.Errorf("%s: a %s is not written", path, operator.Describe(w))
	}
	if extension(path) == ".npy" {
		if len(arrays) != 1 {
			return fmt.Errorf("%s: a %s is not written as .npy: expected a name that ends in .npz", path, operator.Describe(w))
		}
		return WriteFile(path, func(to io.Writer) error { return arrays[0].write(to) })
	}
	return writeArrays(path, arrays)
}
