//go:build unix

package serve

import (
	"syscall"
	"time"
)

// used is the processor time of this process: a machine that does other things, too, makes no request slow.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
