package main

import (
	"context"
	"testing"

	"github.com/calamp/calamp/internal/tables"
)

// TestLongSolvable: of each kind some problems without a flaw can be solved, as competitors say that are given the gains.
func TestLongSolvable(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement: -long")
	}
	for _, k := range kinds() {
		solvable := 0
		for index := 0; index < instances; index += 2 {
			p := draw(k, index)
			o, err := p.compete(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if p.solvable(o.known()) {
				solvable++
			}
		}
		if t.Logf("%s: %d of %d", k.name, solvable, instances/2); solvable == 0 {
			t.Errorf("%s: none can be solved", k.name)
		}
	}
}
