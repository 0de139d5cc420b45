package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Offsets in the state file, as docs/format/state.md has them.
const (
	sumBytes       = 32 // of SHA-256, at the end of the header and of every record
	headerTime     = 16 // 8 bytes
	recordTime     = 24 // 8 bytes, and 8 of the file's size, which the container decides
	recordState    = 40
	stateSensors   = 8
	stateNumbers   = 24
	stateCheckSize = 4 // CRC, after a byte a sensor
)

// states compares what two state files hold, but for dates and sizes.
func (c *comparison) states(before, after string) {
	b, errBefore := readState(before)
	a, errAfter := readState(after)
	if err := errors.Join(errBefore, errAfter); err != nil {
		c.differ("state: %v", err)
		return
	}
	for _, key := range sortedKeys(b) {
		if a[key] == nil {
			c.differ("state: %s is gone", key)
		} else if !bytes.Equal(b[key], a[key]) {
			c.unlike = true
			c.stateNumbers(key, b[key], a[key])
		}
	}
	for _, key := range sortedKeys(a) {
		if b[key] == nil {
			c.differ("state: there was no %s", key)
		}
	}
}

// readState reads the values of a state file, by bucket and key, without their
// dates and sums; a record's sum, which covers its date, says nothing more.
// There are none where the run was refused before it made the file.
func readState(path string) (map[string][]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	values := map[string][]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				name := string(bucket) + "/" + string(key)
				if len(value) < recordState+sumBytes {
					return fmt.Errorf("%s: %s has only %d bytes", path, name, len(value))
				}
				v := bytes.Clone(value[:len(value)-sumBytes])
				if string(key) == "header" {
					clear(v[headerTime : headerTime+8])
				} else {
					clear(v[recordTime : recordTime+16])
				}
				values[name] = v
				return nil
			})
		})
	})
	return values, err
}

// stateNumbers compares records that are not the same bytes.
func (c *comparison) stateNumbers(key string, before, after []byte) {
	if len(before) != len(after) || key == "calamp/header" {
		c.differ("state: %s is not the same", key)
		return
	}
	b, a := before[recordState:], after[recordState:]
	flags := len(b) - stateCheckSize - int(binary.LittleEndian.Uint64(b[stateSensors:]))
	if flags < stateNumbers || !bytes.Equal(before[:recordState+stateNumbers], after[:recordState+stateNumbers]) ||
		!bytes.Equal(b[flags:len(b)-stateCheckSize], a[flags:len(b)-stateCheckSize]) {
		c.differ("state: %s has other counts or flags", key)
		return
	}
	for i := stateNumbers; i < flags; i += 8 {
		v, w := float64At(b, i), float64At(a, i)
		if v != w && !(math.Abs(v-w) <= ofVariances*math.Abs(v)+ofZero) {
			c.differ("state: %s has %v → %v at byte %d", key, v, w, i)
			return
		}
	}
}

func float64At(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))
}
