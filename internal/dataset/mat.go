package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/calamp/calamp/internal/matfile"
)

// listVariables lists what is in a .mat.
func (c *container) listVariables() error {
	variables, err := matfile.List(c.file, c.size, c.allowed)
	if err != nil {
		return c.fault("", "%w", err)
	}
	for _, v := range variables {
		info := Info{Name: v.Name, Dtype: v.Dtype, Order: "F", Shape: slices.Clone(v.Shape), Bytes: v.Bytes}
		if info.Shape == nil {
			info.Shape = []int{}
		}
		open := func() (Info, io.ReadCloser, error) {
			r, err := v.Open()
			if errors.Is(err, matfile.ErrNoNumbers) { // the type says so
				r, err = strings.NewReader(""), nil
			}
			return info, io.NopCloser(r), err
		}
		if err := c.add(entry{name: v.Name, info: func() (Info, error) { return info, nil }, open: open}); err != nil {
			return err
		}
	}
	return nil
}

// matlabKinds are the types that other things than arrays of a .mat have.
var matlabKinds = []string{"cell", "struct", "object", "function", "char", "complex integer"}

// isMat says whether a file of this name is written as MATLAB's.
func isMat(path string) bool { return strings.EqualFold(filepath.Ext(path), ".mat") }

// writeArrays writes the form that the name of the file asks for: .mat, or .npz.
func writeArrays(path string, arrays []output) error {
	return WriteFile(path, func(w io.Writer) error {
		if !isMat(path) {
			return writeArchive(w, arrays)
		}
		variables := make([]matfile.Array, len(arrays))
		for k, a := range arrays {
			var err error
			if variables[k], err = a.variable(); err != nil {
				return fmt.Errorf("write %s: %w", a.name, err)
			}
		}
		return matfile.Write(w, variables)
	})
}

// variable brings the values into MATLAB's order, column by column.
func (o output) variable() (matfile.Array, error) {
	v := matfile.Array{Name: o.name, Dtype: o.dtype, Shape: o.shape}
	if strings.HasPrefix(o.dtype, "<U") {
		raw, err := o.appendRow(nil, 0)
		v.Dtype = ""
		for ; len(raw) >= 4; raw = raw[4:] {
			v.Text += string(rune(binary.LittleEndian.Uint32(raw)))
		}
		return v, err
	}
	if len(o.shape) < 2 {
		var err error
		for i := 0; i < o.rows && err == nil; i++ {
			v.Data, err = o.appendRow(v.Data, i)
		}
		return v, err
	}
	size := map[byte]int{'1': 1, '4': 4, '8': 8, '6': 16}[o.dtype[len(o.dtype)-1]] // the last digit
	columns := o.shape[1]
	v.Data = make([]byte, o.rows*columns*size)
	var row []byte
	for i := range o.rows {
		var err error
		if row, err = o.appendRow(row[:0], i); err != nil {
			return v, err
		}
		for k := range columns {
			copy(v.Data[(k*o.rows+i)*size:], row[k*size:(k+1)*size])
		}
	}
	return v, nil
}
