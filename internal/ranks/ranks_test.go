package ranks

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// together calls do on so many ranks.
func together(size int, do func(rank int, g *Group)) {
	var all sync.WaitGroup
	for r, transport := range Local(size) {
		all.Go(func() { do(r, Of(transport)) })
	}
	all.Wait()
}

func TestRanksThatDiffer(t *testing.T) {
	for want, of := range map[string]func(rank int) (place string, value uint64){
		"":                                     func(int) (string, uint64) { return "the same", 7 },
		"agree on Y: rank 2 has another":       func(r int) (string, uint64) { return "Y", uint64(max(1, r)) },
		"agree on Y: ranks 1, 2 have others":   func(r int) (string, uint64) { return "Y", uint64(min(1, r)) },
		"rank 0 is at place 0, rank 1 at plac": func(r int) (string, uint64) { return "place " + string(rune('0'+r)), 0 },
	} {
		together(3, func(rank int, g *Group) {
			place, value := of(rank)
			err := g.Meet(place, value)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("rank %d: %v, expected %q", rank, err, want)
			}
		})
	}
}

func TestLongPlacesMeet(t *testing.T) {
	together(2, func(rank int, g *Group) {
		if err := g.Meet(strings.Repeat("long ", 40), 0); err != nil {
			t.Error(err)
		}
	})
}

func TestEveryRankIsHeard(t *testing.T) {
	said := []string{"", "b", "a longer text"}
	together(3, func(rank int, g *Group) {
		all, err := g.All("here", said[rank])
		if err != nil || strings.Join(all, "|") != strings.Join(said, "|") {
			t.Errorf("rank %d: %q, %v", rank, all, err)
		}
	})
}

func TestInterruptIsHeardAtOnce(t *testing.T) {
	together(3, func(rank int, g *Group) {
		stopped := false
		g.Stop = func() { stopped = true }
		if rank == 1 {
			g.Interrupt()
		}
		if err := g.Meet("here", 0); err != nil || !stopped {
			t.Errorf("rank %d: stopped %v, %v", rank, stopped, err)
		}
	})
}

// Where all fail in the same way the first tells; a rank that fails alone does, and those who
// wait for it know that it has ended.
func TestWhoTells(t *testing.T) {
	same := errors.New("no such file")
	var mutex sync.Mutex
	var given []int
	tell := func(rank int) func(error, bool) {
		return func(_ error, alone bool) {
			mutex.Lock()
			defer mutex.Unlock()
			if given = append(given, rank); alone != (rank == 2) {
				t.Errorf("rank %d tells, alone %v", rank, alone)
			}
		}
	}
	together(3, func(rank int, g *Group) {
		if err := g.End(same, tell(rank)); err != same {
			t.Error(err)
		}
	})
	together(3, func(rank int, g *Group) {
		if rank == 2 {
			g.End(same, tell(rank))
			return
		}
		var gone *Gone
		if err := g.Meet("a sweep", 0); !errors.As(err, &gone) || gone.Rank != 2 {
			t.Errorf("rank %d: %v", rank, err)
		}
	})
	if len(given) != 2 || given[0] != 0 || given[1] != 2 {
		t.Errorf("named by %v", given)
	}
}
