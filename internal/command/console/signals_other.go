//go:build !unix

package console

import (
	"os"
	"syscall"
)

// endings are the signals that end a command in good order; the end of the terminal
// comes as one of them.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM}

// warnings of schedulers do not come as signals here.
var warnings []os.Signal
