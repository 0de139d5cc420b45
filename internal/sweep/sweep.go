// Package sweep runs grids of many small independent runs: described once, run
// anywhere, resumed after anything, ending as one table.
//
// A [Spec] is a TOML file; its [Spec.Points] are pure functions of their
// parameters, seed and [Version], and have a [Point.Key], their hash. Running a
// point makes a [Row], which is appended to a [Store]: a folder of files of JSON
// lines, one for each process that ever wrote. Resuming is skipping the keys
// that are there. [Merge] writes one table whose bytes do not depend on who ran
// what, in which order, or how often somebody was killed on the way.
//
// [Local] runs points on the cores of this machine, [Shard] parts them among
// processes that share a file system, and package internal/sweep/queue gives them to
// workers on many machines.
package sweep

import (
	"fmt"
	"slices"
	"strings"
)

// Version is that of the points' computation: part of every key, raised
// whenever the same parameters begin to give other numbers. The version of the
// program is not in the key, since then every commit would throw all results
// away; it is in every row.
const Version = 4

// Algorithm is what a point runs.
type Algorithm string

// The algorithms. Those of theory have neither N nor seeds.
const (
	Offline   Algorithm = "offline"   // calamp.Solve
	Published Algorithm = "published" // the same with calamp.Published: exactly max_iter iterations
	Online    Algorithm = "online"    // online.Calibrator over P samples
	SE        Algorithm = "se"        // state evolution of Offline
	SEOnline  Algorithm = "se-online" // state evolution of Online
	Threshold Algorithm = "threshold" // α_min, α_CS, α_cal and the information-theoretic line

	// Rehearsal computes nothing, and takes its time for it: to try out a
	// cluster, and the ways in which points fail, before the real thing.
	Rehearsal Algorithm = "rehearsal"
)

var algorithms = []Algorithm{Offline, Published, Online, SE, SEOnline, Threshold, Rehearsal}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Algorithm) UnmarshalText(text []byte) error {
	if !slices.Contains(algorithms, Algorithm(text)) {
		names := make([]string, len(algorithms))
		for i, known := range algorithms {
			names[i] = string(known)
		}
		return fmt.Errorf("there is no algorithm %q: expected one of %s", text, strings.Join(names, ", "))
	}
	*a = Algorithm(text)
	return nil
}

// synthetic says whether the algorithm runs on problems drawn at random.
func (a Algorithm) synthetic() bool { return a == Offline || a == Published || a == Online }

// online says whether samples come one at a time.
func (a Algorithm) online() bool { return a == Online || a == SEOnline }
