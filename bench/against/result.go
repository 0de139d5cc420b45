package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sbinet/npyio/npy"
)

// An array of an .npz.
type array struct {
	shape  string
	bytes  []byte    // as in the file, with its header
	values []float64 // nil if they are not real numbers
}

// readArrays reads a whole .npz.
func readArrays(path string) (map[string]*array, error) {
	file, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	arrays := map[string]*array{}
	for _, entry := range file.File {
		a, err := readArray(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, entry.Name, err)
		}
		arrays[strings.TrimSuffix(entry.Name, ".npy")] = a
	}
	return arrays, nil
}

func readArray(entry *zip.File) (*array, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a := &array{}
	if a.bytes, err = io.ReadAll(r); err != nil {
		return nil, err
	}
	n, err := npy.NewReader(bytes.NewReader(a.bytes))
	if err != nil {
		return nil, err
	}
	a.shape = fmt.Sprint(n.Header.Descr.Type, n.Header.Descr.Shape)
	switch n.Header.Descr.Type {
	case "<f8":
		return a, n.Read(&a.values)
	case "<f4":
		var single []float32
		err := n.Read(&single)
		for _, v := range single {
			a.values = append(a.values, float64(v))
		}
		return a, err
	}
	return a, nil
}

// results compares all arrays of two results.
func (c *comparison) results(before, after string) {
	b, errBefore := readArrays(before)
	a, errAfter := readArrays(after)
	if err := errors.Join(errBefore, errAfter); err != nil {
		c.differ("%v", err)
		return
	}
	for _, name := range sortedKeys(b) {
		switch {
		case a[name] == nil:
			c.differ("array %s is gone", name)
		case bytes.Equal(b[name].bytes, a[name].bytes):
		case b[name].shape != a[name].shape || b[name].values == nil:
			c.differ("array %s: %s → %s, and not the same bytes", name, b[name].shape, a[name].shape)
		default:
			c.unlike = true
			c.array(name, b, a[name].values)
		}
	}
	for name := range a {
		if b[name] == nil {
			c.added = append(c.added, "array "+name)
		}
	}
}

// array compares an array with what it was, each value in units of what it may
// be off.
func (c *comparison) array(name string, before map[string]*array, after []float64) {
	values := before[name].values
	worst, at := 0.0, 0
	for i, v := range values {
		unit := tolerance(name, before, i)
		off := math.Abs(after[i]-v) / unit
		if v == after[i] || math.IsNaN(v) && math.IsNaN(after[i]) {
			off = 0
		} else if math.IsNaN(off) {
			off = math.Inf(1)
		}
		if off > worst {
			worst, at = off, i
		}
	}
	switch name { // the units are inStandardDeviations, or slightly more
	case "x":
		c.x = max(c.x, worst*inStandardDeviations)
		c.apart = max(c.apart, apart(values, after, before["x_var"]))
	case "s":
		c.s = max(c.s, worst*inStandardDeviations)
	}
	if worst > 1 {
		c.differ("array %s: %v → %v at %d, %.3g times the tolerance", name, values[at], after[at], at, worst)
	}
}

// apart is the root mean square difference of two x, in standard deviations of the first, after the factor of the second that makes
// it least; NaN where there are no variances.
func apart(before, after []float64, variance *array) float64 {
	if variance == nil {
		return math.NaN()
	}
	along, square := 0.0, 0.0
	for i, v := range variance.values {
		if v > 0 {
			along += before[i] * after[i] / v
			square += after[i] * after[i] / v
		}
	}
	sum := 0.0
	for i, v := range variance.values {
		if v > 0 {
			off := before[i] - along/square*after[i]
			sum += off * off / v
		}
	}
	return math.Sqrt(sum / float64(len(before)))
}

// tolerance is how much value i of an array may be off.
func tolerance(name string, before map[string]*array, i int) float64 {
	v := before[name].values[i]
	rounding := lastPlaces * math.Abs(v)
	deviation := func(variance string) float64 {
		if a := before[variance]; a != nil && i < len(a.values) {
			return math.Sqrt(a.values[i])
		}
		return 0
	}
	switch name {
	case "x":
		return inStandardDeviations*deviation("x_var") + rounding
	case "s":
		return inStandardDeviations*deviation("s_var") + rounding
	case "s_lo", "s_hi":
		return ofIntervals*deviation("s_var") + rounding
	case "gain": // 1/s
		return inStandardDeviations*deviation("s_var")*v*v + rounding
	case "residual", "broken":
		return ofResiduals
	}
	if len(before[name].values) == 1 {
		return ofReported*math.Abs(v) + ofZero
	}
	return ofVariances * math.Abs(v)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
