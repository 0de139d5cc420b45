// Package crash turns a panic into an error that says where it happened, and
// carries it from one goroutine to another. It knows nothing of who panics.
package crash

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Error is a panic.
type Error struct {
	Value any
	Where string // function and line that panicked, as far as is known
	Stack []byte
}

// Error is one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("internal error: %v", e.Value)
	if e.Where != "" {
		text += " (" + e.Where + ")"
	}
	return text
}

// Unwrap returns what was panicked with, where that is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Catch is deferred: it makes a panic the error of the function, and leaves the
// function's error alone where there is none.
func Catch(err *error) {
	if v := recover(); v != nil {
		*err = Of(v)
	}
}

// Try calls a function, and makes a panic of it its error: that of a goroutine would end the process.
func Try[T any](f func() (T, error)) (result T, err error) {
	defer Catch(&err)
	return f()
}

// Guard is [Try] of what has no result.
func Guard(f func() error) (err error) {
	defer Catch(&err)
	return f()
}

// Of is the error of a value that was recovered, in the function that recovers.
// One that came from another goroutine stays what it was there.
func Of(v any) *Error {
	if e, ok := v.(*Error); ok {
		return e
	}
	return &Error{Value: v, Where: where(), Stack: debug.Stack()}
}

// module is the path of this module in the names of functions.
const module = "github.com/calamp/calamp"

// where finds the innermost function of this module among those that panicked.
func where() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = panicked || f.Function == "runtime.gopanic"
		case panicked && strings.HasPrefix(f.Function, module):
			file := f.File[strings.LastIndexByte(f.File, '/')+1:]
			return fmt.Sprintf("%s, %s:%d", f.Function, file, f.Line)
		}
		if !more {
			return ""
		}
	}
}
