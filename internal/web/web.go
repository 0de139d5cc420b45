// Package web lets programs show themselves in a browser to those who may look, // no others: on this machine alone, or to who has a token, never to other pages of
// the web, and with bounds on connections, headers and time. It knows nothing of what
// is shown.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Server listens on one address.
type Server struct {
	listener net.Listener
	http     http.Server
	token    string
}

// ErrAddress is the error of an address that is never served, ErrToken that of a
// token that can be guessed.
var (
	ErrAddress = errors.New("not a good address")
	ErrToken   = errors.New("not a good token")
)

const (
	// minToken is how long a token is at least, in bytes.
	minToken = 16

	// mostConnections is far more than monitors and pages need. A further one takes the place of one that waits for
	// a request or for news; where all are busy it waits.
	mostConnections = 256

	// firstTime is for the headers of a request, readTime for all of a request whose
	// handler gives it no more, idleTime between requests.
	firstTime, readTime, writeTime, idleTime = 5 * time.Second, 10 * time.Second, time.Minute, 30 * time.Second
)

// Listen opens address, host:port; nothing is served before Serve. Without a token the
// host must be this machine itself: what is shown stays on it. With one,
// of MinToken bytes or more, every request must carry it: as a bearer token, or as the
// cookie that a browser is given when it asks for a page with ?token=….
func Listen(address, token string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w, expected 127.0.0.1:PORT", address, ErrAddress)
	}
	if token != "" && len(token) < minToken {
		return nil, fmt.Errorf("%w: it has %d characters, expected %d or more", ErrToken, len(token), minToken)
	}
	if token == "" && !isLoopback(host) {
		return nil, fmt.Errorf("%s: %w: it can be reached from other machines, which needs a token", address, ErrAddress)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{listener: listener, token: token}, nil
}

// Serve answers requests by the handler, in the background.
func (s *Server) Serve(handler http.Handler) {
	s.http = http.Server{
		Handler: s.guard(handler), MaxHeaderBytes: 1 << 14,
		ReadHeaderTimeout: firstTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		ConnState: connState, ConnContext: connContext,
	}
	go s.http.Serve(limit(s.listener, mostConnections))
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server, requests under way within a second.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.listener.Close() // where nothing was served yet
	return err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// mostToken bounds a file that is none.
const mostToken = 1 << 16

// Token is a token given as such, or as @FILE with it.
func Token(text string) (string, error) {
	path, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err != nil {
		return "", err
	}
	if len(content) > mostToken {
		return "", fmt.Errorf("%s has more than %d bytes, expected a token", path, mostToken)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}
