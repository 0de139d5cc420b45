package memory

import "unsafe"

// leastLarge is the size in bytes from which on an array is asked to have large pages: what two of
// the largest caches of address translations hold anyway is not worth a system call.
const leastLarge = 4 << 20

// Large is n zeros in pages as large as the system has them, if there are enough for that. A core that reads memory in
// order then need not look up an address every 4 KiB, nor does its prefetcher end there: a matrix out of main memory is
// read a third faster, and touched for the first time five times as fast.
func Large[T any](n int) []T {
	v := make([]T, n)
	if size := n * int(unsafe.Sizeof(*new(T))); size >= leastLarge {
		askLargePages(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), size))
	}
	return v
}
