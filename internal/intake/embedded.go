//go:build !small

package intake

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Embedded is a NATS server within this process, whose JetStream syncs every
// message to the disk before it acknowledges it.
type Embedded struct {
	*Broker
	server    *server.Server
	guests    *guests // nil where clients share the streams
	token     string
	tokenFile string
}

// mostConnections of clients to an embedded server.
const mostConnections = 256

// checkToken refuses a token that is too short.
func checkToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("%w: it has %d characters, expected %d or more", ErrToken, len(token), minToken)
	}
	return nil
}

// StartEmbedded starts a server.
func StartEmbedded(o EmbeddedOptions) (*Embedded, error) {
	e, err := startEmbedded(o)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	return e, nil
}

func startEmbedded(o EmbeddedOptions) (*Embedded, error) {
	host, port, err := loopback(o.Address)
	if err != nil {
		return nil, err
	}
	e := &Embedded{token: o.Token}
	if o.Token == "" {
		e.tokenFile = filepath.Join(o.Folder, TokenFile)
		e.token, err = tokenOf(e.tokenFile)
	} else {
		err = checkToken(o.Token)
	}
	if err != nil {
		return nil, err
	}
	d := &door{own: newToken(), token: e.token, open: make(chan struct{})}
	defer close(d.open)
	e.server, err = server.NewServer(&server.Options{
		ServerName: "calamp", Host: host, Port: port, MaxConn: mostConnections,
		JetStream: true, StoreDir: o.Folder, SyncAlways: true, JetStreamMaxStore: cmp.Or(o.Disk, DefaultDisk),
		MaxPayload: MostPayload, NoSigs: true, NoLog: true, CustomClientAuthentication: d,
	})
	if err != nil {
		return nil, err
	}
	if err := free(o.Address); err != nil {
		return nil, err
	}
	go e.server.Start()
	if !e.server.ReadyForConnections(10 * time.Second) {
		e.server.Shutdown()
		return nil, fmt.Errorf("not ready after 10 s on %s, with its streams in %s", o.Address, o.Folder)
	}
	nc, err := nats.Connect("", nats.InProcessServer(e.server), nats.Name("calamp"), nats.Token(d.own))
	if err == nil {
		e.Broker, err = newBroker(nc)
	}
	if err == nil {
		d.account, err = e.accountOfClients(o.Shared)
	}
	if err != nil {
		e.server.Shutdown()
		return nil, err
	}
	return e, nil
}

// accountOfClients is where clients are let in: beside the streams where they share them, else in [guests].
func (e *Embedded) accountOfClients(shared bool) (*server.Account, error) {
	own := e.server.GlobalAccount()
	if shared {
		return own, nil
	}
	var err error
	if e.guests, err = newGuests(e.server, e.nc); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	there := e.js.ListStreams(ctx)
	for info := range there.Info() { // those of the last time, before a guest asks for them
		if err := e.guests.show(info.Config); err != nil {
			return nil, err
		}
	}
	return e.guests.account, there.Err()
}

// tokenOf reads the token of a file, which only its owner can read, and makes one
// where there is none.
func tokenOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		token := newToken()
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return "", err
		}
		return token, os.WriteFile(path, []byte(token+"\n"), 0o600)
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("%s: %w; without the file a new one is made", path, err)
	}
	return token, nil
}

// newToken is 26 random letters and digits.
func newToken() string { return rand.Text() }

// door lets in who shows a token: this process's own, or that of the clients.
type door struct {
	own, token string

	open    chan struct{}   // closed when account is set
	account *server.Account // of clients; nil where the server did not start
}

// Check implements server.Authentication.
func (d *door) Check(c server.ClientAuthentication) bool {
	given := c.GetOpts().Token
	user := &server.User{Username: "calamp"}
	if !same(given, d.own) {
		if !same(given, d.token) {
			return false
		}
		<-d.open
		if d.account == nil {
			return false
		}
		user = &server.User{Username: "guest", Account: d.account}
	}
	c.RegisterUser(user)
	return true
}

// same compares in a time that tells nothing of the token, not even its length.
func same(given, token string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
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

// URL is where others can connect, with the token.
func (e *Embedded) URL() string { return e.server.ClientURL() }

// Token is what others must show.
func (e *Embedded) Token() string { return e.token }

// TokenFile is the file that the token is in; empty where it was given.
func (e *Embedded) TokenFile() string { return e.tokenFile }

// Close ends the connection and the server.
func (e *Embedded) Close() error {
	err := e.Broker.Close()
	e.server.Shutdown()
	e.server.WaitForShutdown()
	return err
}

// EnsureStream creates a stream for a subject, kept on the disk, if there is
// none of that name, and gives one that is there its limits. Single messages
// cannot be deleted from it, nor can one be purged that drops its oldest messages by
// itself. What comes in is trimmed by a purge (see [Broker.Trim]), which guests have no way to
// ask for.
func (e *Embedded) EnsureStream(ctx context.Context, name, subject string, limits StreamLimits) error {
	stream, err := e.js.Stream(ctx, name)
	missing := errors.Is(err, jetstream.ErrStreamNotFound)
	config := jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage}
	if err == nil {
		config = stream.CachedInfo().Config
		if !slices.Contains(config.Subjects, subject) {
			err = fmt.Errorf("the stream is there, but takes %q", config.Subjects)
		}
	}
	config.DenyDelete, config.Discard = true, jetstream.DiscardNew
	config.MaxBytes, config.MaxMsgs = cmp.Or(limits.Bytes, -1), cmp.Or(limits.Messages, -1)
	if limits.Messages > 0 {
		config.Discard, config.DenyPurge = jetstream.DiscardOld, true
	}
	switch {
	case missing:
		config.MaxConsumers = mostConnections
		_, err = e.js.CreateStream(ctx, config)
	case err == nil:
		_, err = e.js.UpdateStream(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("stream %s for %s: %w", name, subject, err)
	}
	if e.guests != nil {
		return e.guests.show(config)
	}
	return nil
}

// Trim removes the messages of a stream up to the number taken, the last one that
// was taken in, except for the keep last ones of them, or fewer where these
// would fill more than half of what the stream may hold.
func (b *Broker) Trim(ctx context.Context, name string, taken, keep int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	info := stream.CachedInfo()
	if limit, held := info.Config.MaxBytes, info.State; limit > 0 && held.Bytes > 0 {
		keep = min(keep, int64(float64(limit)/2*float64(held.Msgs)/float64(held.Bytes)))
	}
	if below := taken - keep + 1; below > int64(info.State.FirstSeq) {
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
