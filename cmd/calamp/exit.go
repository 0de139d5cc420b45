package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/calamp/calamp/dataset"
)

const (
	exitFailed       = 1
	exitUsage        = 2
	exitNotConverged = 3
	exitInterrupted  = 130
)

// exit is an error with the code to exit with, and what to do about it.
type exit struct {
	code int
	err  error
	hint string
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

// usage is an error in what the user gave, in the words of fmt.Errorf.
func usage(format string, args ...any) *exit {
	return &exit{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// withHint adds what to do about an error.
func (e *exit) withHint(format string, args ...any) *exit {
	e.hint = fmt.Sprintf(format, args...)
	return e
}

// report prints an error and returns the exit code. Messages begin in lower
// case and have no final period.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	code, hint := exitFailed, ""
	if e, ok := errors.AsType[*exit](err); ok {
		code, hint = e.code, e.hint
	} else if _, ok := errors.AsType[*dataset.InputError](err); ok {
		code = exitUsage
	} else if errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	fmt.Fprintf(a.stderr, "calamp: %v\n", err)
	if hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", hint)
	}
	return code
}

// warn prints what the user should know all the same.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.stderr, "calamp: warning: "+format+"\n", args...)
}

// note prints what a user who asked for quiet does not need.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "calamp: "+format+"\n", args...)
	}
}
