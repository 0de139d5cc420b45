// Package simd chooses the instruction set for inner loops: it knows processors, and
// nothing of what the loops compute. The loops that exist in several instruction sets are
// those over W (package kernel) and those over sensors and entries (package vector). The
// folder gen holds the generator of their assembly, a module of its own.
package simd

import (
	"fmt"
	"os"
)

// Level is an instruction set.
type Level int

// Instruction sets, worst first.
const (
	Go Level = iota // plain Go
	AVX2
	AVX512

	Levels // how many there are
)

var levelNames = [Levels]string{"go", "avx2", "avx512"}

func (l Level) String() string { return levelNames[l] }

// Variable is the environment variable that names the instruction set to use,
// "go", "avx2" or "avx512".
const Variable = "CALAMP_KERNEL"

var active, activeErr = choose(os.Getenv(Variable), Best())

// Active returns the instruction set in use. The error is that of a wrong
// [Variable].
func Active() (Level, error) { return active, activeErr }

// choose returns the level with this name, or the best one when there is no name.
func choose(name string, best Level) (Level, error) {
	if name == "" {
		return best, nil
	}
	for l, known := range levelNames {
		if known != name {
			continue
		}
		if Level(l) > best {
			return best, fmt.Errorf("%s=%s: this build or machine has no more than %s", Variable, name, best)
		}
		return Level(l), nil
	}
	return best, fmt.Errorf("%s=%s: expected go, avx2 or avx512", Variable, name)
}
