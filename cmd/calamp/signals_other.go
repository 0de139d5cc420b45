//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endings are the signals that end a sweep in good order.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
