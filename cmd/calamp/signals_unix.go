//go:build unix

package main

import (
	"os"
	"syscall"
)

// endings are the signals that end a sweep in good order. Schedulers can be
// asked for USR1 some time before they kill a job.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1}
