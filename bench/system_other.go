//go:build !linux

package main

import (
	"runtime"
	"time"
)

// What Linux tells of processors and processes is not looked for elsewhere: the
// clock is the wall's, no round is known to be disturbed, nothing is pinned.

func threadTime() time.Duration { return time.Since(started) }

type used struct{}

func usage([]int) used { return used{} }

func (used) others(used) float64 { return 0 }

func pin(int) func() { return func() {} }

func processor() string { return runtime.GOOS + "/" + runtime.GOARCH }

func load() string { return "unknown load" }
