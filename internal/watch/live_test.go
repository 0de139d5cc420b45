package watch

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/calamp/calamp/online"
)

// TestLive: the page hears of every sample, and of the sensors after it.
func TestLive(t *testing.T) {
	s := listen(t, "")
	s.Show(view())
	for k := range 3 {
		s.Sample(Sample{Sequence: int64(5 + k), X: []float64{0, 1}, Worst: []online.Residual{{Sensor: 1, Chi: -3}}, ChiSquare: 1.5, Committed: true, Iterations: 20, ScaleStep: 1})
	}
	answer, err := http.Get("http://" + s.Address() + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	var heard []string
	for len(heard) < 3 && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			heard = append(heard, text)
		}
	}
	for k, want := range []string{`"m":3,"n":2,"p":0`, `[7,20,1.5,1,0.002,0.002,0.001,1,0,1,0]`, `"flagged":[{"sensor":2,"reason":"` + online.Zero.String() + `"}]`} {
		if len(heard) <= k || !strings.Contains(heard[k], want) {
			t.Errorf("no %s in %v", want, heard)
		}
	}
	// Who listens does not keep the stream from ending.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
