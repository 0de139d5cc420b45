package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// limited is a listener with so many connections at a time. A further one takes the place of the one that is idle for longest; where
// none is, it waits until one is closed.
type limited struct {
	net.Listener
	most   int
	closed chan struct{}
	close  func() error

	mu    sync.Mutex
	conns map[*limitedConn]bool
	freed chan struct{} // a place may have become free
}

// use says how much would be lost with a connection, from the least on.
type use int

const (
	idle      use = iota // waits for a request, the first or the next
	listening            // hears news as they come; who is cut off asks again
	busy                 // everything else
)

func limit(l net.Listener, most int) *limited {
	closed := make(chan struct{})
	return &limited{
		Listener: l, most: most, closed: closed, conns: make(map[*limitedConn]bool), freed: make(chan struct{}, 1),
		close: sync.OnceValue(func() error {
			close(closed)
			return l.Close()
		}),
	}
}

// Accept takes a connection, and then waits for a place for it.
func (l *limited) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: inner, of: l, use: busy}
	for !l.place(c) {
		select {
		case <-l.freed:
		case <-l.closed:
			inner.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// place takes a place for a connection, if need be that of another one.
func (l *limited) place(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.most {
		var out *limitedConn
		for o := range l.conns {
			if o.use != busy && (out == nil || o.use < out.use || o.use == out.use && o.since.Before(out.since)) {
				out = o
			}
		}
		if out == nil {
			return false
		}
		delete(l.conns, out)
		out.Conn.Close() // its server finds it closed, and ends what goes on there
	}
	l.conns[c] = true
	return true
}

// Close also ends an Accept that waits for a place.
func (l *limited) Close() error { return l.close() }

// limitedConn is a connection that has a place.
type limitedConn struct {
	net.Conn
	of    *limited
	use   use
	since time.Time // of that use
}

// Close frees the place.
func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	c.of.wake()
	return c.Conn.Close()
}

func (l *limited) wake() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

func (c *limitedConn) used(as use) {
	c.of.mu.Lock()
	c.use, c.since = as, time.Now()
	c.of.mu.Unlock()
	if as != busy {
		c.of.wake()
	}
}

// connState follows what connections do, for http.Server.
func connState(c net.Conn, state http.ConnState) {
	if c, ok := c.(*limitedConn); ok {
		switch state {
		case http.StateNew, http.StateIdle:
			c.used(idle)
		case http.StateActive:
			c.used(busy)
		}
	}
}

type connKey struct{}

// connContext lets handlers know the connection of their request, for http.Server.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Listening says that a request's visitor has heard what there is, and waits for news as long as no other visitor needs the connection.
func Listening(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.used(listening)
	}
}
