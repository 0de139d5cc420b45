//go:build !linux

package main

import "time"

var started = time.Now()

// threadTime falls back to the wall clock.
func threadTime() time.Duration { return time.Since(started) }
