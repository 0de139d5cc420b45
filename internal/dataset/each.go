package dataset

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// A matrix for every signal is the array W of a problem with three dimensions, P×M×N, or a list of matrices, each:FILE,FILE….

// size is the description of one matrix M×N of a W, of which there may be one for every signal.
func (a *Array) size() *Array {
	if len(a.Shape) != 3 {
		return a
	}
	one := *a
	one.Shape = a.Shape[1:]
	return &one
}

// operator makes one of the values of W: M×N, or P×M×N.
func (a *Array) operator() (operator.Operator, error) {
	if len(a.Shape) != 2 && len(a.Shape) != 3 || a.count() == 0 {
		return nil, a.fault("W is %s, expected a matrix M×N, or P×M×N, one for every signal", a.dims())
	}
	if len(a.Shape) == 2 {
		return a.table()
	}
	matrices := make([]operator.Operator, a.Shape[0])
	for j := range matrices {
		var err error
		if matrices[j], err = a.page(j).table(); err != nil {
			return nil, err
		}
	}
	w, err := operator.NewEach(matrices, nil)
	if err != nil {
		return nil, a.fault("%w", err)
	}
	return w, nil
}

// page is matrix j of an array of three dimensions.
func (a *Array) page(j int) *Array {
	one := *a.size()
	from, to := j*one.count(), (j+1)*one.count()
	switch {
	case a.complex128 != nil:
		one.complex128 = a.complex128[from:to]
	case a.complex64 != nil:
		one.complex64 = a.complex64[from:to]
	case a.data32 != nil:
		one.data32 = a.data32[from:to]
	default:
		one.Data = a.Data[from:to]
	}
	return &one
}

// matrixName is the array that says which of several matrices every signal has (P integers).
const matrixName = "matrix"

// chooseMatrices gives every signal one of the matrices that W has, as the array says; without one they have one each. w describes W.
func (p *Problem) chooseMatrices(a, w *Array) error {
	if a == nil {
		return nil
	}
	matrices, of := operator.Separate(p.W)
	count := len(of)
	if len(w.Shape) == 3 { // which may all be the same
		count = w.Shape[0]
	}
	_, signals := p.Y.Dims()
	if p.Complex {
		signals /= 2
	}
	switch {
	case count == 0:
		return a.fault("matrix says which matrix every signal has, and W is one for all: expected P×M×N, or a list of matrices")
	case !a.isVector() || a.count() != signals:
		return a.fault("matrix is %s, expected %d integers, one a signal: which matrix it has, from 0", a.dims(), signals)
	}
	chosen := make([]int, signals)
	for k, v := range a.Data {
		if !(v >= 0 && v < float64(count) && v == math.Trunc(v)) {
			return a.fault("matrix of signal %d is %g, expected one of 0 to %d", k, v, count-1)
		}
		if of != nil {
			chosen[k] = of[int(v)]
		}
	}
	if of == nil {
		return nil
	}
	var err error
	p.W, err = operator.NewEach(matrices, chosen)
	w.Shape = w.Shape[len(w.Shape)-2:]
	return err
}

// MatrixCount is how many matrices a spec, or the array W of a file, has of which signals have one each; 0 where W is one for all, or cannot be read.
func MatrixCount(spec string) int {
	kind, rest, err := kindOf(spec)
	switch {
	case err != nil:
		return 0
	case kind != nil && kind.name == "each":
		list, _ := eachOf(rest)
		return len(list)
	case kind != nil:
		return 0
	}
	arrays, err := Inspect(rest)
	if err != nil {
		return 0
	}
	for _, a := range arrays {
		if len(a.Shape) == 3 && (a.Name == "W" || len(arrays) == 1) {
			return a.Shape[0]
		}
	}
	return 0
}

// checkSignals refuses a W that has matrices for another number of signals than Y has.
func (p *Problem) checkSignals(w *Array) error {
	_, signals := p.Y.Dims()
	if p.Complex {
		signals /= 2
	}
	matrices := 0
	if _, of := operator.Separate(p.W); of != nil {
		matrices = len(of)
	} else if len(w.Shape) == 3 { // which are all the same
		matrices = w.Shape[0]
	}
	if matrices > 0 && matrices != signals {
		return w.fault("W has a matrix for each of %d signals, and Y has %d: expected as many", matrices, signals)
	}
	return nil
}

// openEach reads a matrix for every signal: from the files of a folder, in the order of their names, or from a list.
func openEach(rest string, allowed *memory.Allowance) (operator.Operator, error) {
	list, err := eachOf(rest)
	if err != nil {
		return nil, err
	}
	matrices := make([]operator.Operator, len(list))
	for j, spec := range list {
		if strings.HasPrefix(spec, "each:") {
			return nil, fault(spec, "", "a list of matrices within a list: expected one matrix for each signal")
		}
		if matrices[j], _, err = openMatrix(spec, int64(memory.Unlimited), allowed); err != nil {
			return nil, err
		}
		if _, of := operator.Separate(matrices[j]); of != nil {
			return nil, fault(spec, "W", "it has %d matrices, expected one for each signal", len(of))
		}
	}
	return operator.NewEach(matrices, nil)
}

// eachOf are the specs that a list of them, or a folder, names.
func eachOf(rest string) (list []string, err error) {
	if info, err := os.Stat(rest); err == nil && info.IsDir() {
		return tablesIn(rest)
	}
	parts := strings.Split(rest, ",")
	for i := 0; i < len(parts); i++ {
		spec := parts[i]
		if strings.HasPrefix(spec, "kron:") && i+1 < len(parts) { // which has two files
			i++
			spec += "," + parts[i]
		}
		if spec == "" {
			return nil, fault(rest, "", "expected files with commas between them, as in each:W0.npy,W1.npy, or a folder")
		}
		list = append(list, spec)
	}
	return list, nil
}

// tablesIn are the files with matrices in a folder, by name.
func tablesIn(folder string) (list []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fault(folder, "", "%w", err)
	}
	for _, e := range entries {
		if slices.Contains([]string{".npy", ".npz", ".mat"}, extension(e.Name())) {
			list = append(list, filepath.Join(folder, e.Name()))
		}
	}
	if len(list) == 0 {
		return nil, fault(folder, "", "no .npy, .npz or .mat in this folder, expected a matrix for every signal")
	}
	return list, nil
}

// eachOutputs is a W of three dimensions; nothing of matrices that are no tables of one kind.
func eachOutputs(matrices []operator.Operator, of []int) []output {
	pages := make([]output, len(matrices))
	for j, w := range matrices {
		own := matrixOutputs(w)
		if len(own) != 1 || own[0].dtype != pages[0].dtype && j > 0 {
			return nil
		}
		pages[j] = own[0]
	}
	first := pages[0]
	shape := append([]int{len(of)}, first.shape...)
	return []output{{first.name, first.dtype, shape, len(of) * first.rows, func(dst []byte, row int) ([]byte, error) {
		return pages[of[row/first.rows]].appendRow(dst, row%first.rows)
	}}}
}
