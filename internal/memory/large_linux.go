package memory

import (
	"syscall"
	"unsafe"
)

// askLargePages is for memory that has not been touched yet. What the system makes of it is its own affair.
func askLargePages(b []byte) {
	page := uintptr(syscall.Getpagesize())
	b = b[-uintptr(unsafe.Pointer(&b[0]))&(page-1):] // from the first whole page on
	_ = syscall.Madvise(b[:uintptr(len(b))&^(page-1)], syscall.MADV_HUGEPAGE)
}
