package web

import (
	"net"
	"sync"
)

// limited is a listener with so many connections at a time: the next one waits
// until one is closed.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	close  func() error
}

func limit(l net.Listener, most int) net.Listener {
	closed := make(chan struct{})
	return &limited{
		Listener: l, slots: make(chan struct{}, most), closed: closed,
		close: sync.OnceValue(func() error {
			close(closed)
			return l.Close()
		}),
	}
}

// Accept waits for a slot, and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close also ends an Accept that waits for a slot.
func (l *limited) Close() error { return l.close() }

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
