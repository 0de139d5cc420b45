package watch

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/calamp/calamp/internal/memory"
)

// metrics are the numbers of samples for Prometheus.
type metrics struct {
	sync.Mutex
	samples, committed, duplicates int
	missing                        int64          // messages that never came
	rejected                       map[string]int // by reason
	iterations, solving, saving    histogram
	scaleStep                      float64
	last                           time.Time
}

func newMetrics() *metrics {
	return &metrics{
		rejected:   make(map[string]int),
		iterations: doubling(4, 9),
		solving:    doubling(1e-4, 18),
		saving:     doubling(1e-5, 18),
	}
}

func (m *metrics) sample(x Sample) {
	m.Lock()
	defer m.Unlock()
	m.samples++
	if x.Committed {
		m.committed++
	} else {
		m.rejected[x.Reject]++
	}
	m.iterations.add(float64(x.Iterations))
	m.solving.add(x.Solving.Seconds())
	m.saving.add(x.Saving.Seconds())
	m.scaleStep = x.ScaleStep
	m.last = time.Now()
}

func (m *metrics) refused() {
	m.Lock()
	defer m.Unlock()
	m.rejected["refused"]++
}

func (m *metrics) duplicate() {
	m.Lock()
	defer m.Unlock()
	m.duplicates++
}

func (m *metrics) miss(messages int64) {
	m.Lock()
	defer m.Unlock()
	m.missing += messages
}

// histogram counts values up to each bound, and beyond the last.
type histogram struct {
	bounds []float64
	counts []int
	sum    float64
}

// doubling is a histogram with n bounds, of which each is twice the one before.
func doubling(first float64, n int) histogram {
	h := histogram{bounds: make([]float64, n), counts: make([]int, n+1)}
	for i := range h.bounds {
		h.bounds[i] = first
		first *= 2
	}
	return h
}

func (h *histogram) add(v float64) {
	h.counts[sort.SearchFloat64s(h.bounds, v)]++
	h.sum += v
}

// exposition is what Prometheus reads: https://prometheus.io/docs/instrumenting/exposition_formats
// (text, version 0.0.4).
type exposition struct{ bytes.Buffer }

// about says what the next lines are.
func (e *exposition) about(name, kind, help string) {
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// line is one value; labels are words of ours, with nothing in them that the format quotes differently than Go.
func (e *exposition) line(name string, v float64) {
	e.WriteString(name + " " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

func (e *exposition) counter(name, help string, v int) {
	e.about(name, "counter", help)
	e.line(name, float64(v))
}

func (e *exposition) gauge(name, help string, v float64) {
	e.about(name, "gauge", help)
	e.line(name, v)
}

func (e *exposition) histogram(name, help string, h histogram) {
	e.about(name, "histogram", help)
	n := 0
	for i, bound := range h.bounds {
		n += h.counts[i]
		e.line(fmt.Sprintf("%s_bucket{le=%q}", name, strconv.FormatFloat(bound, 'g', -1, 64)), float64(n))
	}
	n += h.counts[len(h.bounds)]
	e.line(name+`_bucket{le="+Inf"}`, float64(n))
	e.line(name+"_sum", h.sum)
	e.line(name+"_count", float64(n))
}

// serveMetrics answers in Prometheus' format.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	var e exposition
	e.samples(s.metrics)
	if v := s.view.Load(); v != nil {
		e.view(v)
	}
	e.process(s.health.started)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(e.Bytes())
}

func (e *exposition) samples(m *metrics) {
	m.Lock()
	defer m.Unlock()
	e.counter("calamp_samples_total", "Samples reconstructed.", m.samples)
	e.counter("calamp_committed_total", "Samples learned from.", m.committed)
	e.about("calamp_rejected_total", "counter", "Samples not learned from, by reason.")
	for _, reason := range slices.Sorted(maps.Keys(m.rejected)) {
		e.line(fmt.Sprintf("calamp_rejected_total{reason=%q}", reason), float64(m.rejected[reason]))
	}
	e.counter("calamp_duplicates_total", "Samples dropped because they had been taken in before.", m.duplicates)
	e.counter("calamp_missing_total", "Messages of a stream that never came.", int(m.missing))
	e.histogram("calamp_iterations", "Iterations of a sample.", m.iterations)
	e.histogram("calamp_solve_seconds", "Time to reconstruct a sample.", m.solving)
	e.histogram("calamp_commit_seconds", "Time to publish, commit and acknowledge a sample.", m.saving)
	if m.samples > 0 {
		e.gauge("calamp_scale_step", "Factor by which the last sample moved the common scale.", m.scaleStep)
		e.gauge("calamp_last_sample_timestamp_seconds", "When the last sample was taken in.", seconds(m.last))
	}
}

func (e *exposition) view(v *View) {
	e.about("calamp_s_sd", "gauge", "Posterior standard deviation of s among the sensors in use.")
	median, worst := v.spread()
	e.line(`calamp_s_sd{sensor="median"}`, median)
	e.line(`calamp_s_sd{sensor="worst"}`, worst)
	e.gauge("calamp_scale_sd", "Relative standard deviation of the scale common to all sensors.", v.Posterior.ScaleSD)
	e.gauge("calamp_drift", "Standard deviation of the gains' relative step a sample while they drift, 0 while they stay.", v.Posterior.Drift)
	e.gauge("calamp_sensors_flagged", "Sensors taken out of use.", float64(len(v.Posterior.Flagged)))
	e.gauge("calamp_learned_samples", "Samples in the posterior, of earlier runs too.", float64(v.Posterior.Samples))
	e.gauge("calamp_last_sequence", "Number of the last sample taken in.", float64(v.Sequence))
}

// process has what dashboards of Go programs ask for, under the names that they know.
func (e *exposition) process(started time.Time) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	e.gauge("go_goroutines", "Goroutines that there are.", float64(runtime.NumGoroutine()))
	e.gauge("go_memstats_heap_alloc_bytes", "Bytes of objects, garbage that was not yet collected among them.", float64(m.HeapAlloc))
	e.gauge("go_memstats_sys_bytes", "Bytes taken from the system.", float64(m.Sys))
	if resident, ok := memory.Resident(); ok {
		e.gauge("process_resident_memory_bytes", "Memory that the process holds.", float64(resident))
	}
	e.gauge("process_start_time_seconds", "When the process began to serve.", seconds(started))
}

// seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
