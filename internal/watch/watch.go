// Package watch shows a running calibration to the outside over HTTP: whether it
// is healthy, what it counts (for Prometheus), and what it has learned.
package watch

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/calamp/calamp/online"
)

// View is what there is to see after a sample.
type View struct {
	Sequence  int64 // of the last sample taken in, -1 for none
	Posterior *online.Posterior
}

// Sample is what there is to say of one sample.
type Sample struct {
	Committed       bool
	Reject          string // why not
	Iterations      int
	ScaleStep       float64 // factor by which it moved the common scale
	Solving, Saving time.Duration
}

// Server serves
//
//	/healthz    200 or 503, and JSON
//	/metrics    in Prometheus' format
//	/posterior  JSON, or .npz with ?format=npz or Accept: application/x-npz
//
// All its methods can be called on nil, where they do nothing.
type Server struct {
	token    string
	listener net.Listener
	http     http.Server
	view     atomic.Pointer[View]
	health   health
	metrics  *metrics
}

// ErrAddress is the error of an address that is never served, ErrToken that of a
// token that can be guessed.
var (
	ErrAddress = errors.New("not a good address")
	ErrToken   = errors.New("not a good token")
)

const (
	// MinToken is how long a token is at least, in bytes.
	MinToken = 16

	// mostConnections is far more than monitors need; others wait.
	mostConnections = 64

	readTime, idleTime = 10 * time.Second, 30 * time.Second
)

// Listen serves on address, host:port. Without a token the host must be this
// machine itself: the posterior is nobody else's business. With one, of MinToken
// bytes or more, every request must carry it as a bearer token.
func Listen(address, token string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w, expected 127.0.0.1:PORT", address, ErrAddress)
	}
	if token != "" && len(token) < MinToken {
		return nil, fmt.Errorf("%w: it has %d characters, expected %d or more", ErrToken, len(token), MinToken)
	}
	if token == "" && !isLoopback(host) {
		return nil, fmt.Errorf("%s: %w: it can be reached from other machines, which needs a token", address, ErrAddress)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{token: token, listener: listener}
	s.health.started = time.Now()
	s.metrics = newMetrics(s)
	s.http = http.Server{
		Handler: s.handler(), MaxHeaderBytes: 1 << 14,
		ReadHeaderTimeout: readTime / 2, ReadTimeout: readTime, WriteTimeout: time.Minute, IdleTimeout: idleTime,
	}
	go s.http.Serve(limit(listener, mostConnections))
	return s, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Token is a token given as such, or as @FILE with it.
func Token(text string) (string, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server, requests under way within a second.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return s.http.Close()
	}
	return err
}

// Show replaces what there is to see; the view must not change afterwards.
func (s *Server) Show(v View) {
	if s != nil {
		s.view.Store(&v)
	}
}

// Sample counts a sample.
func (s *Server) Sample(x Sample) {
	if s != nil {
		s.health.sample(x.Committed || x.Reject == online.Frozen.String(), x.Reject)
		s.metrics.sample(x)
	}
}

// Refused counts an input that was no sample.
func (s *Server) Refused() {
	if s != nil {
		s.health.sample(false, "refused")
		s.metrics.rejected.WithLabelValues("refused").Inc()
	}
}

// Duplicate counts a sample that came again.
func (s *Server) Duplicate() {
	if s != nil {
		s.health.duplicate()
		s.metrics.duplicates.Inc()
	}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /posterior", s.servePosterior)
	return s.guard(mux)
}

// guard lets in who may come in. A page of the web that this machine's browser
// shows could make it ask 127.0.0.1 under another name (DNS rebinding): where
// there is no token, the name must be this machine's.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case s.token != "" && !s.authorised(r):
			w.Header().Set("WWW-Authenticate", `Bearer realm="calamp"`)
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		case s.token == "" && !isLoopback(hostOf(r.Host)):
			http.Error(w, "ask for 127.0.0.1 or localhost", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func hostOf(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

// authorised compares in a time that tells nothing of the token, not even its
// length. The name of the scheme is the same in any case of letters (RFC 9110,
// section 11.1).
func (s *Server) authorised(r *http.Request) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given = strings.TrimLeft(given, " ")
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
