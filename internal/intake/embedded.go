package intake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Embedded is a NATS server within this process, whose JetStream syncs every
// message to the disk before it acknowledges it.
type Embedded struct {
	*Broker
	server *server.Server
}

// mostPayload is the largest message an embedded server takes: a million sensors.
const mostPayload = 8 << 20

// StartEmbedded starts a server that keeps its streams in the folder and listens
// on address, host:port; port 0 is any free one. The server belongs to whoever
// can connect, so the host must be this machine itself.
func StartEmbedded(folder, address string) (*Embedded, error) {
	host, port, err := loopback(address)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "calamp", Host: host, Port: port,
		JetStream: true, StoreDir: folder, SyncAlways: true,
		MaxPayload: mostPayload, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	if err := free(address); err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("embedded NATS server: not ready after 10 s on %s, with its streams in %s", address, folder)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Name("calamp"))
	if err == nil {
		var b *Broker
		if b, err = newBroker(nc); err == nil {
			return &Embedded{Broker: b, server: s}, nil
		}
	}
	s.Shutdown()
	return nil, fmt.Errorf("embedded NATS server: %w", err)
}

// loopback splits an address of this machine.
func loopback(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%s: %q is no port", address, text)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", 0, fmt.Errorf("%s: the embedded server listens on this machine only, on 127.0.0.1 or [::1]", address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// free finds out whether the address can be had: the server itself would end the
// process if not.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// URL is where others can connect.
func (e *Embedded) URL() string { return e.server.ClientURL() }

// Close ends the connection and the server.
func (e *Embedded) Close() error {
	err := e.Broker.Close()
	e.server.Shutdown()
	e.server.WaitForShutdown()
	return err
}

// EnsureStream creates a stream for a subject, kept on the disk, if there is
// none of that name. With most above 0 it keeps so many messages, the newest.
func (b *Broker) EnsureStream(ctx context.Context, name, subject string, most int64) error {
	stream, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = b.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage, MaxMsgs: max(most, -1),
		})
	}
	if err == nil && !slices.Contains(stream.CachedInfo().Config.Subjects, subject) {
		err = fmt.Errorf("the stream is there, but takes %q", stream.CachedInfo().Config.Subjects)
	}
	if err != nil {
		return fmt.Errorf("stream %s for %s: %w", name, subject, err)
	}
	return nil
}

// Trim removes the messages of a stream below a number.
func (b *Broker) Trim(ctx context.Context, name string, below int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := b.js.Stream(ctx, name)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSequence(uint64(below)))
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	return nil
}

// Publish puts a result out and waits until it is stored. The same id within the
// stream's window for duplicates, two minutes by default, is stored once.
func (b *Broker) Publish(ctx context.Context, subject, id string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := b.js.Publish(ctx, subject, data, jetstream.WithMsgID(id))
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fmt.Errorf("results to %s: no stream of the server takes this subject", subject)
	}
	if err != nil {
		return fmt.Errorf("results to %s: %w", subject, err)
	}
	return nil
}
