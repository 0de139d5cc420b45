package watch

import (
	"fmt"
	"net/http"
	"time"

	prometheus "github.com/VictoriaMetrics/metrics"
)

// metrics are the numbers of the samples for Prometheus, all named calamp_….
type metrics struct {
	set                            *prometheus.Set
	samples, committed, duplicates *prometheus.Counter
	iterations                     *prometheus.PrometheusHistogram
	solving, saving                *prometheus.PrometheusHistogram // seconds to reconstruct a sample; to publish, commit and acknowledge it
	scaleStep, last                *prometheus.Gauge               // factor on the common scale; when the last sample was taken in
}

func newMetrics() *metrics {
	prometheus.ExposeMetadata(true) // what is a counter, and what a gauge
	set := prometheus.NewSet()
	doubling := func(name string, first float64, n int) *prometheus.PrometheusHistogram {
		return set.NewPrometheusHistogramExt(name, prometheus.ExponentialBuckets(first, 2, n))
	}
	return &metrics{
		set:        set,
		samples:    set.NewCounter("calamp_samples_total"),
		committed:  set.NewCounter("calamp_committed_total"),
		duplicates: set.NewCounter("calamp_duplicates_total"),
		iterations: doubling("calamp_iterations", 4, 9),
		solving:    doubling("calamp_solve_seconds", 1e-4, 18),
		saving:     doubling("calamp_commit_seconds", 1e-5, 18),
		scaleStep:  set.NewGauge("calamp_scale_step", nil),
		last:       set.NewGauge("calamp_last_sample_timestamp_seconds", nil),
	}
}

func (m *metrics) sample(x Sample) {
	m.samples.Inc()
	if x.Committed {
		m.committed.Inc()
	} else {
		m.rejected(x.Reject)
	}
	m.iterations.Update(float64(x.Iterations))
	m.solving.Update(x.Solving.Seconds())
	m.saving.Update(x.Saving.Seconds())
	m.scaleStep.Set(x.ScaleStep)
	m.last.Set(float64(time.Now().UnixNano()) / 1e9)
}

// rejected counts a sample that was not learned from.
func (m *metrics) rejected(reason string) {
	m.set.GetOrCreateCounter(fmt.Sprintf("calamp_rejected_total{reason=%q}", reason)).Inc()
}

// serveMetrics answers with the numbers of the samples, of the posterior, and of the process.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.metrics.set.WritePrometheus(w)
	if v := s.view.Load(); v != nil {
		median, worst := v.spread()
		prometheus.WriteGaugeFloat64(w, `calamp_s_sd{sensor="median"}`, median)
		prometheus.WriteGaugeFloat64(w, `calamp_s_sd{sensor="worst"}`, worst)
		prometheus.WriteGaugeFloat64(w, "calamp_scale_sd", v.Posterior.ScaleSD)
		prometheus.WriteGaugeFloat64(w, "calamp_drift", v.Posterior.Drift)
		prometheus.WriteGaugeUint64(w, "calamp_sensors_flagged", uint64(len(v.Posterior.Flagged)))
		prometheus.WriteGaugeUint64(w, "calamp_learned_samples", uint64(v.Posterior.Samples))
		prometheus.WriteGaugeFloat64(w, "calamp_last_sequence", float64(v.Sequence))
	}
	prometheus.WriteProcessMetrics(w)
}
