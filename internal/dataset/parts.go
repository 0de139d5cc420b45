package dataset

import (
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/operator"
)

// matrix is the array W, in the precision it is stored in.
func (c *container) matrix() (operator.Operator, error) {
	w, err := c.readNumbers("W", true, true)
	if err != nil {
		return nil, err
	}
	return w.operator()
}

// Vector is an array with one dimension, or a single number.
type Vector struct {
	Name   string
	Values []float64
	Scalar bool // one value, and no dimension
}

// WriteVectors writes a .npz of vectors to w. It writes nothing, and says where,
// when a value is not finite.
func WriteVectors(w io.Writer, vectors ...Vector) error {
	arrays := make([]output, len(vectors))
	for k, v := range vectors {
		for i, x := range v.Values {
			if math.IsNaN(x - x) {
				return fmt.Errorf("value %d of %s is %g", i, v.Name, x)
			}
		}
		arrays[k] = vectorOutput(v.Name, v.Values)
		if v.Scalar {
			arrays[k] = scalarOutput(v.Name, v.Values[0])
		}
	}
	return writeArchive(w, arrays)
}
