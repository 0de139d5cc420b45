package online

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"os"
	"runtime"
	"testing"
	"time"
)

// Fuzzers of state files whose checksums are right: what somebody has made, or a version with a fault.

// resealed makes the checksum of a state right, and those of the states of its forks.
func resealed(b []byte) []byte {
	b = bytes.Clone(b)
	le := binary.LittleEndian
	var seal func(state []byte)
	seal = func(state []byte) {
		if len(state) < 8 {
			return
		}
		for at := 16; at+4 <= len(state); at++ {
			if string(state[at:at+4]) != stateMagic {
				continue
			}
			if length := le.Uint64(state[at-8:]); length >= 8 && length <= uint64(len(state)-at) {
				seal(state[at : at+int(length)])
				at += int(length) - 1
			}
		}
		le.PutUint32(state[len(state)-4:], crc32.Checksum(state[:len(state)-4], castagnoli))
	}
	seal(b)
	return b
}

// allocated is what f allocates in all, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// ofThisTest is what other goroutines and short errors may allocate meanwhile.
const ofThisTest = 1 << 18

// fuzzed is a stream, and where it stands.
type fuzzed struct {
	extremeStream
	state *State
}

// fuzzedStreams are all kinds of streams; the seeds are their states, one with forks among them.
func fuzzedStreams(f *testing.F) (all []fuzzed) {
	for _, s := range extremeStreams(f) {
		c := s.calibrator(f)
		for k := range s.samples - 2 {
			if _, err := c.Absorb(context.Background(), s.sample(k)); err != nil {
				f.Fatal(err)
			}
		}
		all = append(all, fuzzed{s, c.Snapshot()})
		if s.name == "outliers" {
			y := s.sample(0)
			for mu := range y {
				y[mu] *= 1 + 0.5*float64(mu%3)
			}
			c.Absorb(context.Background(), y)
			if len(c.state.Forks) == 0 {
				f.Fatal("no forks")
			}
			all = append(all, fuzzed{s, c.Snapshot()})
		}
	}
	return all
}

// FuzzState: a state with a sound checksum is refused, or one that a stream goes on from.
func FuzzState(f *testing.F) {
	streams := fuzzedStreams(f)
	for _, s := range streams {
		b, err := s.state.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = resealed(b)
		var state State
		var err error
		start := time.Now()
		if used := allocated(func() { err = state.UnmarshalBinary(b) }); used > 4*uint64(len(b))+ofThisTest {
			t.Fatalf("%d bytes allocated for a state of %d", used, len(b))
		}
		if err != nil {
			return
		}
		again, err := state.MarshalBinary()
		if err != nil || new(State).UnmarshalBinary(again) != nil {
			t.Fatal("what was read cannot be read again: ", err)
		}
		for _, s := range streams {
			if s.state.Sensors() != state.Sensors() || s.state.Width() != state.Width() || s.state.Complex != state.Complex {
				continue
			}
			c := s.calibrator(t)
			if c.Restore(&state) != nil {
				continue
			}
			c.Posterior()
			if c.offsets() != nil {
				break
			}
			ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
			e, err := c.Absorb(ctx, s.sample(s.samples-1))
			done()
			if err == nil {
				e.ScaleSD()
				c.Posterior()
			}
			break
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatal("it took ", took)
		}
	})
}

// FuzzRecord: so does a whole record, in a file with sound pages.
func FuzzRecord(f *testing.F) {
	for k := range 2 {
		record, err := Saved{State: stateAt(k), Sequence: int64(k)}.append(nil, currentKey)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record[:len(record)-32])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > recordLength {
			copy(body[recordLength:], resealed(body[recordLength:]))
		}
		record := sealed(bytes.Clone(body), 0, currentKey)
		if used := allocated(func() { new(Saved).decode(record, currentKey) }); used > 4*uint64(len(record))+ofThisTest {
			t.Fatalf("%d bytes allocated for a record of %d", used, len(record))
		}
	})
}

// FuzzPages: whatever the pages, with sound meta pages or not, no panic, and no more memory than they take.
func FuzzPages(f *testing.F) {
	if content, err := os.ReadFile(formatFile); err == nil {
		f.Add(content, true)
	}
	f.Add(make([]byte, 1<<14), false)
	f.Fuzz(func(t *testing.T, content []byte, sound bool) {
		if sound {
			content = bytes.Clone(content)
			for _, page := range []int{0, 4096} {
				if at := page + pageHeader; at+metaLength <= len(content) {
					sum := fnv.New64a()
					sum.Write(content[at : at+metaLength-8])
					ne.PutUint64(content[at+metaLength-8:], sum.Sum64())
				}
			}
		}
		if used := allocated(func() { new(Store).verify(content, true) }); used > 4*uint64(len(content))+ofThisTest {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(content))
		}
	})
}
