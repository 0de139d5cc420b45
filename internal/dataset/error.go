package dataset

import (
	"fmt"
	"io/fs"
	"strings"
)

// InputError says what is wrong with a file that was read. All errors of this
// package's reading functions are of this type; those of writing are not.
type InputError struct {
	Path  string // as given by the caller
	Array string // W, Y, …; empty when the fault is the file's
	Err   error  // what was found, and what was expected
}

// Error is the file, the array and the fault.
func (e *InputError) Error() string { return e.Path + ": " + e.sentence() }

// sentence is the array and the fault. Some faults already begin with the array.
func (e *InputError) sentence() string {
	text := e.Err.Error()
	if e.Array == "" || strings.HasPrefix(text, e.Array+" ") || strings.HasPrefix(text, e.Array+":") {
		return text
	}
	return e.Array + ": " + text
}

// Unwrap returns the fault without its place.
func (e *InputError) Unwrap() error { return e.Err }

// fault is an InputError whose Err is fmt.Errorf(format, args...).
func fault(path, array, format string, args ...any) error {
	return &InputError{Path: path, Array: array, Err: fmt.Errorf(format, args...)}
}

// withoutPath removes the path that package os puts into its errors, where the
// message names it already.
func withoutPath(err error) error {
	if e, ok := err.(*fs.PathError); ok { // as os returns it, not wrapped
		return e.Err
	}
	return err
}
