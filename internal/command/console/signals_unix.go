//go:build unix

package console

import (
	"os"
	"syscall"
)

// endings are the signals that end a command in good order: Ctrl-C, the end of a
// job's time, and of the terminal.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// warnings are what schedulers can be asked for some time before they kill a job.
var warnings = []os.Signal{syscall.SIGUSR1}
