//go:build !linux

package memory

func askLargePages([]byte) {}
