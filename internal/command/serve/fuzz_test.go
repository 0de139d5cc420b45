package serve

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/page"
	"github.com/calamp/calamp/internal/sweep"
)

// fuzzTime, of a processor, and fuzzMemory bound one request; who waits for longer than fuzzWait waits for ever.
const (
	fuzzTime, fuzzWait = 10 * time.Second, 2 * time.Minute
	fuzzMemory         = 256 << 20
)

// FuzzHandlers asks the page for anything: no panic, no request that takes more than 10 s of a processor or 256 MB. Events and planes, which go on until
// the visitor goes, have one who goes after some lines. Problems are prepared, and not solved.
func FuzzHandlers(f *testing.F) {
	p := newPage(f.TempDir(), 1<<16, fuzzSweep(f), "test")
	p.entries = 1e5
	defer func(all int64) { theoryWork = all }(theoryWork)
	theoryWork >>= 4 // Go's fuzzer gives an input ten seconds of the clock, on a machine that may be busy
	p.jobs.solve = func(_ context.Context, _ *console.Console, args []string, board *page.Board) error {
		board.Head(page.Head{Name: "fuzz"})
		if out := args[len(args)-3]; len(args)%2 == 1 {
			return os.WriteFile(out, []byte("result"), 0o600)
		}
		return fmt.Errorf("nothing was made of %s", args[0])
	}
	f.Cleanup(p.close)
	handler := p.handler()
	problem := problemFile(f)
	for _, target := range []string{
		"/", "/api/about", "/api/sweep", "/assets/page.js", "/api/events", "/api/events?job=1", "/api/jobs/1/result.npz", "/api/jobs/1/report.html",
		"/api/theory/trajectory?density=0.2&alpha=0.6&p=5&noise_var=1e-6&lo=0.9&hi=1.1", "/api/theory/thresholds?density=0.2&p=5&noise_var=0&lo=0.1&hi=1.9",
		"/api/theory/trajectory?density=1&alpha=10&p=1000&noise_var=1e-6&lo=0.001&hi=1000", "/api/theory/trajectory?density=0.2&alpha=0.6&p=1&noise_var=0&lo=1&hi=1.0000000000000002",
		"/api/theory/thresholds?density=0.001&p=1000&noise_var=0&lo=0.001&hi=0.1", "/api/theory/plane?p=3&noise_var=0&lo=1&hi=1", "/api/theory/plane?p=1000&noise_var=1e-300&lo=0.001&hi=1000",
	} {
		f.Add("GET", target, []byte(nil))
	}
	for _, target := range []string{
		"/api/demo", "/api/jobs/1/cancel", "/api/jobs/2/again?flags={%22density%22:%220.2%22}", "/api/problem?name=result.npz", "/api/problem?name=P.mat&flags={}",
		"/api/simulate?density=0.2&alpha=0.8&p=5&noise_var=1e-4&lo=0.9&hi=1.1&n=20&seed=1", "/api/simulate?density=1&alpha=10&p=1000&noise_var=1&lo=0.001&hi=1000&n=10&seed=2147483647",
	} {
		f.Add("POST", target, problem)
	}
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1/", io.NopCloser(bytes.NewReader(body)))
		if err != nil {
			return
		}
		r.URL, r.RequestURI = u, target
		r.ContentLength = int64(len(body))
		w := &lines{ResponseRecorder: httptest.NewRecorder(), after: 1 << 30, done: leave}
		if strings.Contains(u.Path, "events") || strings.Contains(u.Path, "plane") {
			w.after = 4
			defer time.AfterFunc(200*time.Millisecond, leave).Stop() // where there are not so many
		}
		defer watchdog(method + " " + target)()
		handler.ServeHTTP(w, r)
		if strings.Contains(w.Body.String(), "internal error") {
			t.Errorf("%s %s: %s", method, target, w.Body)
		}
	})
}

// watchdog ends the program where a request takes too much time or memory.
func watchdog(what string) (stop func()) {
	over := make(chan struct{})
	before, begun, start := heap(), used(), time.Now()
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			if took := heap() - before; took > fuzzMemory {
				panic(fmt.Sprintf("%s: %d MB", what, took>>20))
			}
			if took := used() - begun; took > limit() || time.Since(start) > fuzzWait {
				panic(fmt.Sprintf("%s: no answer within %v, of a processor %v", what, time.Since(start), took))
			}
		}
	}()
	return func() { close(over) }
}

// limit is fuzzTime where requests are tried; a test, which the race detector makes slow, only finds what hangs.
func limit() time.Duration {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if set := flag.Lookup(name); set != nil && set.Value.String() != set.DefValue {
			return fuzzTime
		}
	}
	return fuzzWait
}

// heap is what objects take, garbage included.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// fuzzSweep is a sweep of some points of which none is done.
func fuzzSweep(f *testing.F) *watched {
	path := filepath.Join(f.TempDir(), "phase.toml")
	text := "name = \"phase\"\n[[grid]]\nalgorithm = \"offline\"\nn = 40\np = 3\ndensity = {from = 0.1, to = 0.9, count = 3}\nalpha = 0.6\nnoise_var = 1e-6\ns_range = [0.9, 1.1]\nseeds = 1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	spec, err := sweep.Load(path)
	if err != nil {
		f.Fatal(err)
	}
	return &watched{name: "phase.toml", store: sweep.Store{Dir: f.TempDir()}, points: spec.Points()}
}
