package watch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the numbers for Prometheus, all named calamp_….
type metrics struct {
	registry        *prometheus.Registry
	samples         prometheus.Counter
	committed       prometheus.Counter
	rejected        *prometheus.CounterVec
	duplicates      prometheus.Counter
	iterations      prometheus.Histogram
	solving, saving prometheus.Histogram
	scaleStep       prometheus.Gauge
	last            prometheus.Gauge
}

func newMetrics(s *Server) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "calamp_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "calamp_" + name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "calamp_" + name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		samples:   counter("samples_total", "Samples reconstructed."),
		committed: counter("committed_total", "Samples learned from."),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "calamp_rejected_total", Help: "Samples not learned from, by reason.",
		}, []string{"reason"}),
		duplicates: counter("duplicates_total", "Samples dropped because they had been taken in before."),
		iterations: histogram("iterations", "Iterations of a sample.", prometheus.ExponentialBuckets(4, 2, 9)),
		solving:    histogram("solve_seconds", "Time to reconstruct a sample.", prometheus.ExponentialBuckets(1e-4, 2, 18)),
		saving:     histogram("commit_seconds", "Time to publish, commit and acknowledge a sample.", prometheus.ExponentialBuckets(1e-5, 2, 18)),
		scaleStep:  gauge("scale_step", "Factor by which the last sample moved the common scale."),
		last:       gauge("last_sample_timestamp_seconds", "When the last sample was taken in."),
	}
	m.registry.MustRegister(m.samples, m.committed, m.rejected, m.duplicates, m.iterations, m.solving, m.saving, m.scaleStep, m.last)
	m.registry.MustRegister(viewCollector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) sample(x Sample) {
	m.samples.Inc()
	if x.Committed {
		m.committed.Inc()
	} else {
		m.rejected.WithLabelValues(x.Reject).Inc()
	}
	m.iterations.Observe(float64(x.Iterations))
	m.solving.Observe(x.Solving.Seconds())
	m.saving.Observe(x.Saving.Seconds())
	m.scaleStep.Set(x.ScaleStep)
	m.last.Set(float64(time.Now().UnixNano()) / 1e9)
}

// viewCollector computes from the view when asked, not at every sample.
type viewCollector struct{ s *Server }

var (
	spreadDesc   = prometheus.NewDesc("calamp_s_sd", "Posterior standard deviation of s among the sensors in use.", []string{"sensor"}, nil)
	scaleSDDesc  = prometheus.NewDesc("calamp_scale_sd", "Relative standard deviation of the scale common to all sensors.", nil, nil)
	driftDesc    = prometheus.NewDesc("calamp_drift", "Standard deviation of the gains' relative step a sample while they drift, 0 while they stay.", nil, nil)
	flaggedDesc  = prometheus.NewDesc("calamp_sensors_flagged", "Sensors taken out of use.", nil, nil)
	learnedDesc  = prometheus.NewDesc("calamp_learned_samples", "Samples in the posterior, of earlier runs too.", nil, nil)
	sequenceDesc = prometheus.NewDesc("calamp_last_sequence", "Number of the last sample taken in.", nil, nil)
)

// Describe implements prometheus.Collector.
func (viewCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{spreadDesc, scaleSDDesc, driftDesc, flaggedDesc, learnedDesc, sequenceDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c viewCollector) Collect(out chan<- prometheus.Metric) {
	v := c.s.view.Load()
	if v == nil {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	median, worst := v.spread()
	gauge(spreadDesc, median, "median")
	gauge(spreadDesc, worst, "worst")
	gauge(scaleSDDesc, v.Posterior.ScaleSD)
	gauge(driftDesc, v.Posterior.Drift)
	gauge(flaggedDesc, float64(len(v.Posterior.Flagged)))
	gauge(learnedDesc, float64(v.Posterior.Samples))
	gauge(sequenceDesc, float64(v.Sequence))
}
