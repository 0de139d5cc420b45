package memory

import "fmt"

// Allowance is the memory that what a command reads may take. Every array is counted at its size after conversion, before
// anything is allocated for it. A nil one allows everything.
type Allowance struct {
	most  Size // whatever the files' own sizes are
	files Size // the bytes of files, of which arrays may take some times as much
	taken Size
}

// OfFile is how many times its own bytes a file may always ask for: as single precision that becomes double, and is there
// twice while it is brought into the order of the kernels. That is what a file takes, not a small one that grows.
const OfFile = 4

// Half is the allowance where no other is given: half of what the machine has.
func Half() *Allowance { return Allow(Total() / 2) }

// Allow is an allowance of so many bytes, or of [OfFile] times those of the files where that is more.
func Allow(most Size) *Allowance { return &Allowance{most: most} }

// File adds the bytes of a file that is read.
func (a *Allowance) File(bytes int64) {
	if a != nil {
		a.files += Size(bytes)
	}
}

// Most is how much may be taken altogether.
func (a *Allowance) Most() Size {
	if a == nil {
		return Unlimited
	}
	return max(a.most, OfFile*min(a.files, Unlimited/OfFile))
}

// Take counts memory that is about to be allocated. It is an error, and nothing is counted, where that is too much.
func (a *Allowance) Take(bytes int64) error {
	if a == nil {
		return nil
	}
	most := a.Most()
	if wanted := Size(bytes); wanted > most-a.taken {
		if a.taken == 0 {
			return fmt.Errorf("it takes %v of memory, expected at most the %v allowed", wanted, most)
		}
		return fmt.Errorf("it takes %v of memory, beside %v for what was read before, expected at most the %v allowed", wanted, a.taken, most)
	}
	a.taken += Size(bytes)
	return nil
}

// TakeTimes is Take of a×b×each bytes, whose product may be more than a number holds.
func (a *Allowance) TakeTimes(x, y int, each int64) error {
	return a.Take(int64(min(float64(x)*float64(y)*float64(each), float64(Unlimited))))
}
