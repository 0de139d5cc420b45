//go:build !unix

package serve

import "time"

var started = time.Now()

func used() time.Duration { return time.Since(started) }
