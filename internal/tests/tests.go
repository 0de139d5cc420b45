// Package tests is what tests of several packages share.
package tests

import "testing"

// Long skips a test of numbers in short runs, which are those of the race detector: it makes them six times slower, and what runs
// side by side in them does so in shorter ones.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long")
	}
}
