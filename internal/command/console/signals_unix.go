//go:build unix

package console

import (
	"os"
	"syscall"
)

// endings are the signals that end a sweep in good order. Schedulers can be
// asked for USR1 some time before they kill a job.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1}
