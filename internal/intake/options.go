package intake

import (
	"errors"
	"net/url"
	"strings"
	"time"
)

// StreamOptions say which messages of which JetStream to take, and how to read
// them.
type StreamOptions struct {
	Stream  string
	Durable string // name of the consumer
	Filter  string // subject; empty for all of the stream's

	// SequenceHeader names a header with the sample's number. Where it is empty
	// the stream's own sequence is the number.
	SequenceHeader string

	Form

	// Numbering has the last number that was taken in. Its MaxGap is for
	// numbers from a header: a stream's own are the broker's.
	Numbering

	// Drain ends the source when the stream has no more messages, in place of
	// waiting for new ones.
	Drain bool

	// Frozen leaves the consumer where it is, whatever After says.
	Frozen bool

	// Origin is when the stream was made whose messages After counts, and Committed when After was last set: zero
	// where not known. A stream of the same name that was made anew is another one.
	Origin, Committed time.Time

	// Owner is the state that the consumer's messages go into. A consumer that is another state's is refused.
	Owner Owner
}

// Owner is a state that a consumer's messages go into. The zero value is none, and checks nothing.
type Owner struct {
	State string // which no other state has
	Place string // where it is, for messages
}

// Access is how to get into a NATS server: a .creds file, a token, or neither.
type Access struct{ Credentials, Token string }

// EmbeddedOptions say how an embedded server is run.
type EmbeddedOptions struct {
	// Folder keeps the streams, and the token where none is given.
	Folder string

	// Address is host:port, where port 0 is any free one. The host must be this
	// machine itself.
	Address string

	// Token is what clients must show, of MinToken characters or more. Where it
	// is empty it is that of the file TokenFile in the folder, which is made
	// where it is not there.
	Token string

	// Disk is how many bytes all streams together may take, default DefaultDisk.
	Disk int64

	// Shared lets clients change and empty streams, too, as those do that share
	// a queue. Without it they publish and read.
	Shared bool
}

const (
	// MostPayload is the largest message an embedded server takes: a million
	// sensors.
	MostPayload = 8 << 20

	// DefaultDisk is 10 GiB.
	DefaultDisk = 10 << 30

	// TokenFile is the name of the file with an embedded server's token.
	TokenFile = "token"

	// minToken is how long a token is at least, in bytes.
	minToken = 16
)

// ErrToken is the error of a token that can be guessed.
var ErrToken = errors.New("not a good token")

// StreamLimits bound a stream. Zero is no bound.
type StreamLimits struct {
	// Messages is how many it keeps, the newest: for results, which are printed
	// as well. Without it nothing is dropped to make room, and a stream that is
	// full refuses what is published to it.
	Messages int64

	// Bytes is how much of the disk it takes.
	Bytes int64
}

// Redact takes what is secret out of addresses, before they are shown: a
// password, or a token in place of a user and a password. An address of which
// no more can be said than that it holds an @ loses all before the last one.
func Redact(addresses string) string {
	all := strings.Split(addresses, ",")
	for i, a := range all {
		u, err := url.Parse(strings.TrimSpace(a))
		switch {
		case err != nil, u.Host == "" && strings.Contains(a, "@"):
			return redactUnparsed(addresses)
		case u.User == nil:
			continue
		}
		if _, secret := u.User.Password(); !secret {
			u.User = url.User("xxxxx")
		}
		all[i] = u.Redacted()
	}
	return strings.Join(all, ",")
}

func redactUnparsed(address string) string {
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return address
	}
	scheme, _, ok := strings.Cut(address[:at], "://")
	if !ok {
		return "xxxxx" + address[at:]
	}
	return scheme + "://xxxxx" + address[at:]
}
