package operator

import "fmt"

// Group is the processes, called ranks, over which the rows of a matrix are divided. Ranks run
// the same program on the same numbers, and call the same methods in the same order: each
// returns when all have called it. Package internal/ranks has one of MPI, and one within a process.
type Group interface {
	// Rank is the number of this process, from 0, and how many there are.
	Rank() (rank, size int)

	// Meet waits for all ranks. It returns an error, on every rank, unless all are at the same
	// place with the same value: the place is named in the message.
	Meet(place string, value uint64) error

	// Gather fills all with the parts of all ranks: that of rank r is all[bounds[r]:bounds[r+1]],
	// where each has its own beforehand.
	Gather(all []byte, bounds []int) error

	// Trade sends send[sent[r]:sent[r+1]] to each rank r, and fills got[taken[r]:taken[r+1]]
	// with what r sends here.
	Trade(got, send []byte, taken, sent []int) error
}

// Share says which rows are whose. Rows are divided into chunks, whose sums are added in
// order; a rank has some that follow each other.
type Share struct {
	Chunks []int // chunk c has the rows Chunks[c] … Chunks[c+1]-1
	Ranks  []int // rank r has the chunks Ranks[r] … Ranks[r+1]-1
}

const (
	// shareRows is what the number of rows of a chunk, but for the last, is a multiple of: rows
	// that the kernels take together stay together, so that their bits do.
	shareRows = 4

	// sameChunks is how many chunks there are when the bits of sums must not depend on how many
	// ranks there are; no more ranks than that can then take part.
	sameChunks = 8
)

// ShareOf divides m rows over ranks. There is a chunk for each rank, or, if sums are to have
// the same bits for any number of ranks, always as many. The error says how many ranks there can be.
func ShareOf(m, ranks int, reproducible bool) (Share, error) {
	panels := (m + shareRows - 1) / shareRows
	chunks, why := ranks, ""
	if reproducible {
		chunks, why = min(sameChunks, panels), ", as reproducible sums are made of as many parts"
	}
	if most := min(chunks, panels); ranks > most {
		return Share{}, fmt.Errorf("%d ranks for a W of %d rows, expected at most %d%s", ranks, m, most, why)
	}
	return shareIn(m, chunks, ranks), nil
}

// shareIn divides m rows into so many chunks.
func shareIn(m, chunks, ranks int) Share {
	panels := (m + shareRows - 1) / shareRows
	s := Share{Chunks: make([]int, chunks+1), Ranks: make([]int, ranks+1)}
	for c := range s.Chunks {
		s.Chunks[c] = min(c*panels/chunks*shareRows, m)
	}
	for r := range s.Ranks {
		s.Ranks[r] = r * chunks / ranks
	}
	return s
}

// Rows are those of a rank, from first to end-1.
func (s Share) Rows(rank int) (first, end int) {
	return s.Chunks[s.Ranks[rank]], s.Chunks[s.Ranks[rank+1]]
}

// owner is the rank that has a row.
func (s Share) owner(mu int) (rank int) {
	for first, end := s.Rows(rank); mu < first || mu >= end; first, end = s.Rows(rank) {
		rank++
	}
	return rank
}

// Largest is the largest number of rows that a rank has.
func (s Share) Largest() int {
	most := 0
	for rank := range len(s.Ranks) - 1 {
		first, end := s.Rows(rank)
		most = max(most, end-first)
	}
	return most
}

// bounds are where the ranks' parts end in an array with so many values a row.
func (s Share) bounds(perRow int) []int {
	all := make([]int, len(s.Ranks))
	for r, c := range s.Ranks {
		all[r] = s.Chunks[c] * perRow
	}
	return all
}

// extended is the same with further rows behind the last.
func (s Share) extended(rows int) Share {
	chunks := append([]int(nil), s.Chunks...)
	chunks[len(chunks)-1] += rows
	return Share{Chunks: chunks, Ranks: s.Ranks}
}
