package online

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// What a state file holds; docs/format/state.md is the reference.

var (
	mainBucket       = []byte("calamp")
	checkpointBucket = []byte("checkpoints")
	headerKey        = []byte("header")
	currentKey       = []byte("current")
)

const (
	formatVersion = 1
	originVersion = 2 // of a record that has the origin of its number

	headerMagic  = "calamp-h"
	recordMagic  = "calamp-r"
	headerLength = 8 + 4 + 4 + 8 + sha256.Size // before the model
	recordLength = 8 + 4 + 4 + 8 + 8 + 8       // before the state, and before the origin where there is one
	originLength = 8
	versionAt    = 8 // in a record
	sequenceAt   = 8 + 4 + 4
	timeAt       = sequenceAt + 8
)

// header is what never changes in a file.
type header struct {
	id      Identity
	created time.Time
}

func (h *header) encode() []byte {
	le := binary.LittleEndian
	b := []byte(headerMagic)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint32(b, uint32(len(h.id.Model)))
	b = le.AppendUint64(b, uint64(h.created.UnixNano()))
	b = append(b, h.id.Fingerprint[:]...)
	b = append(b, h.id.Model...)
	return sealed(b, 0, headerKey)
}

func (h *header) decode(b []byte) error {
	if len(b) < headerLength || string(b[:8]) != headerMagic {
		return fmt.Errorf("%w: it has no header", ErrStateDamaged)
	}
	le := binary.LittleEndian
	if v := le.Uint32(b[8:]); v != formatVersion {
		return versionFault(b, v)
	}
	body, err := unsealed(b, headerKey)
	if err != nil {
		return fmt.Errorf("%w in its header", err)
	}
	if n := int(le.Uint32(b[12:])); len(body) != headerLength+n {
		return fmt.Errorf("%w: a header of %d bytes with a model of %d", ErrStateDamaged, len(body), n)
	}
	h.created = time.Unix(0, int64(le.Uint64(b[16:])))
	copy(h.id.Fingerprint[:], b[24:])
	h.id.Model = string(body[headerLength:])
	return nil
}

// versionFault distinguishes a newer format, whose checksum is where this one's is, from
// a damaged version number.
func versionFault(b []byte, version uint32) error {
	if _, err := unsealed(b, headerKey); err != nil {
		return fmt.Errorf("%w in its header", err)
	}
	return fmt.Errorf("%w: version %d, this program reads version %d", ErrStateVersion, version, formatVersion)
}

// matches refuses a file made for something else, naming both.
func (h *header) matches(id *Identity) error {
	if h.id.Fingerprint == id.Fingerprint {
		return nil
	}
	return fmt.Errorf("%w: its fingerprint is %v, that of this run is %v; %s",
		ErrStateMismatch, h.id.Fingerprint, id.Fingerprint, difference(h.id.Model, id.Model))
}

// append appends the record of s, to be stored under the key.
func (s Saved) append(b, key []byte) ([]byte, error) {
	le := binary.LittleEndian
	start := len(b)
	b = append(b, recordMagic...)
	if b = le.AppendUint32(b, formatVersion); !s.Origin.IsZero() {
		le.PutUint32(b[start+versionAt:], originVersion)
	}
	b = le.AppendUint32(b, 0) // the state's length, below
	b = le.AppendUint64(b, uint64(s.Sequence))
	b = le.AppendUint64(b, uint64(s.Time.UnixNano()))
	b = le.AppendUint64(b, uint64(s.size))
	if !s.Origin.IsZero() {
		b = le.AppendUint64(b, uint64(s.Origin.UnixNano()))
	}
	begin := len(b)
	b, err := s.State.AppendBinary(b)
	if err != nil {
		return nil, err
	}
	le.PutUint32(b[start+12:], uint32(len(b)-begin))
	return sealed(b, start, key), nil
}

func (s *Saved) decode(b, key []byte) error {
	if len(b) < recordLength || string(b[:8]) != recordMagic {
		return fmt.Errorf("%w: a record without its beginning", ErrStateDamaged)
	}
	body, err := unsealed(b, key)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	begin, v := recordLength, le.Uint32(b[versionAt:])
	if v == originVersion {
		begin += originLength
	}
	if v != formatVersion && v != originVersion {
		return fmt.Errorf("%w: a record of version %d, this program reads versions %d and %d", ErrStateVersion, v, formatVersion, originVersion)
	}
	if n := int(le.Uint32(b[12:])); len(body) != begin+n {
		return fmt.Errorf("%w: a record of %d bytes with a state of %d", ErrStateDamaged, len(body), n)
	}
	state := new(State)
	if err := state.UnmarshalBinary(body[begin:]); err != nil {
		return fmt.Errorf("%w: %w", ErrStateDamaged, err)
	}
	s.State = state
	s.Sequence = int64(le.Uint64(b[sequenceAt:]))
	s.Time = time.Unix(0, int64(le.Uint64(b[timeAt:])))
	s.size = int64(le.Uint64(b[timeAt+8:]))
	if v == originVersion {
		s.Origin = time.Unix(0, int64(le.Uint64(b[recordLength:])))
	}
	if s.Sequence < 0 {
		return fmt.Errorf("%w: sequence number %d", ErrStateDamaged, s.Sequence)
	}
	return nil
}

// moved is a record copied from one key to another.
func moved(record, from, to []byte) ([]byte, error) {
	body, err := unsealed(record, from)
	if err != nil {
		return nil, err
	}
	return sealed(bytes.Clone(body), 0, to), nil
}

// renumbered is the present record with another sequence number, of no origin, set now.
func renumbered(current []byte, sequence int64, now time.Time) ([]byte, error) {
	body, err := unsealed(current, currentKey)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if body = bytes.Clone(body); le.Uint32(body[versionAt:]) == originVersion {
		body = slices.Delete(body, recordLength, recordLength+originLength)
		le.PutUint32(body[versionAt:], formatVersion)
	}
	le.PutUint64(body[sequenceAt:], uint64(sequence))
	le.PutUint64(body[timeAt:], uint64(now.UnixNano()))
	return sealed(body, 0, currentKey), nil
}

// sealed appends the SHA-256 of the key and of what follows start.
func sealed(b []byte, start int, key []byte) []byte {
	return append(b, seal(b[start:], key)...)
}

func seal(body, key []byte) []byte {
	h := sha256.New()
	h.Write(key)
	h.Write(body)
	return h.Sum(nil)
}

// unsealed takes the checksum off, if it is right.
func unsealed(b, key []byte) ([]byte, error) {
	if len(b) >= sha256.Size {
		body := b[:len(b)-sha256.Size]
		if bytes.Equal(seal(body, key), b[len(body):]) {
			return body, nil
		}
	}
	return nil, fmt.Errorf("%w: a checksum does not match", ErrStateDamaged)
}
