//go:build small

package intake

import (
	"context"
	"errors"
)

// What follows stands for NATS in a program that is built without it, with the tag
// small: a third of the program, which a wheel for Python has no use for.

// ErrNone is what a program without NATS says.
var ErrNone = errors.New("this build of calamp has no NATS; those of the releases and of go install do")

// Broker is never connected here.
type Broker struct{}

// Embedded never runs here.
type Embedded struct{ *Broker }

// Connect says that there is no NATS.
func Connect(string, Access) (*Broker, error) { return nil, ErrNone }

// StartEmbedded says that there is no NATS.
func StartEmbedded(EmbeddedOptions) (*Embedded, error) { return nil, ErrNone }

// JetStream is none.
func (b *Broker) JetStream() any { return nil }

// Close has nothing to close.
func (b *Broker) Close() error { return nil }

// Source says that there is no NATS.
func (b *Broker) Source(context.Context, StreamOptions) (Source, error) { return nil, ErrNone }

// EnsureStream says that there is no NATS.
func (e *Embedded) EnsureStream(context.Context, string, string, StreamLimits) error { return ErrNone }

// Trim says that there is no NATS.
func (b *Broker) Trim(context.Context, string, int64, int64) error { return ErrNone }

// Publish says that there is no NATS.
func (b *Broker) Publish(context.Context, string, string, []byte) error { return ErrNone }

// URL is none.
func (e *Embedded) URL() string { return "" }

// TokenFile is none.
func (e *Embedded) TokenFile() string { return "" }
