//go:build !unix

package console

import (
	"os"
	"syscall"
)

// endings are the signals that end a sweep in good order.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM}
