//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package online

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockWithin takes the lock of the whole file, the one bbolt uses, shared or
// exclusive. It ends with the process, however that ends.
func lockWithin(f *os.File, exclusive bool, timeout time.Duration) error {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if !time.Now().Before(deadline) {
			return ErrStateInUse
		}
	}
}
