package console

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/printable"
)

// The exit codes; 0 is done.
const (
	Failed       = 1
	WrongUsage   = 2
	NotConverged = 3
	Interrupted  = 130
)

// Exit is an error with the code to exit with, and what to do about it.
type Exit struct {
	Code int
	Err  error
	Hint string
}

// Error is the error without the hint.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Exit) Unwrap() error { return e.Err }

// Usage is an error in what the user gave, in the words of fmt.Errorf.
func Usage(format string, args ...any) *Exit {
	return &Exit{Code: WrongUsage, Err: fmt.Errorf(format, args...)}
}

// WithHint adds what to do about an error.
func (e *Exit) WithHint(format string, args ...any) *Exit {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Report prints an error and returns the exit code. Messages begin in lower
// case and have no final period.
func (c *Console) Report(err error) int {
	if err == nil {
		return 0
	}
	e := ExitOf(err)
	fmt.Fprintf(c.Stderr, "calamp: %s\n", printable.Text(err.Error()))
	if e.Hint != "" {
		fmt.Fprintf(c.Stderr, "hint: %s\n", printable.Text(e.Hint))
	}
	return e.Code
}

// ExitOf is the code and the hint of an error.
func ExitOf(err error) *Exit {
	code, hint := Failed, ""
	if bug, ok := errors.AsType[*crash.Error](err); ok {
		hint = "this is a fault of calamp: please report it, with this line and the command; what there was is written"
		if os.Getenv("GOTRACEBACK") != "" { // as for any program in Go
			hint += "\n" + string(bug.Stack)
		}
	} else if e, ok := errors.AsType[*Exit](err); ok {
		code, hint = e.Code, e.Hint
	} else if _, ok := errors.AsType[*dataset.InputError](err); ok {
		code = WrongUsage
	} else if errors.Is(err, context.Canceled) {
		code = Interrupted
	}
	return &Exit{Code: code, Err: err, Hint: hint}
}

// Warn prints what the user should know all the same.
func (c *Console) Warn(format string, args ...any) {
	fmt.Fprint(c.Stderr, printable.Text(fmt.Sprintf("calamp: warning: "+format+"\n", args...)))
}

// Note prints what a user who asked for quiet does not need.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprint(c.Stderr, printable.Text(fmt.Sprintf("calamp: "+format+"\n", args...)))
	}
}

// Interruption is the end of a run that was stopped, or err.
func Interruption(ctx context.Context, err error, done string) error {
	if ctx.Err() == nil {
		return err
	}
	return &Exit{Code: Interrupted, Err: fmt.Errorf("interrupted: %s", done)}
}

// ExitCodes is what help says of them.
const ExitCodes = `
Exit codes:
  0    done
  1    failed (a full disk, say)
  2    wrong usage or wrong input
  3    ended without convergence, or with a result that is not to be trusted; it is written, and marked
  130  interrupted; what there is, is written
`
