package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// A reader of bbolt files that trusts no offset: each is checked before
// it is followed. It serves to verify a file before bbolt, which maps files into
// memory and follows their offsets blindly, opens it. Numbers in bbolt files are
// in the machine's own byte order. The layout is that of bbolt's format version
// 2 (package go.etcd.io/bbolt/internal/common).

const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHeader  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // of a leaf: flags, offset, key, value; of a branch: offset, key, page
	metaLength  = 64
	noFreelist  = 1<<64 - 1

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10

	bucketEntry  = 0x01
	bucketHeader = 16 // root page uint64, sequence uint64
)

var ne = binary.NativeEndian

// bucketContent is the keys and values of a bucket.
type bucketContent map[string][]byte

// readPages verifies the pages of a file, and returns the top buckets.
func readPages(file []byte) (map[string]bucketContent, error) {
	meta, err := newestMeta(file)
	if err != nil {
		return nil, err
	}
	r := &pageReader{file: file, meta: meta, seen: map[uint64]bool{0: true, 1: true}}
	buckets, err := r.top(meta.root)
	if err == nil {
		err = r.checkFree()
	}
	if err != nil {
		return nil, err
	}
	return buckets, nil
}

// boltMeta is one of the two meta pages, which bbolt writes in turn.
type boltMeta struct {
	pageSize             uint64
	root, freelist, high uint64 // pages; all are below high
	transaction          uint64
}

var errNoBolt = errors.New("this is no state of calamp, or it is cut short")

// newestMeta requires both meta pages to be sound. bbolt makes do with one, but if the
// newer one is gone, that is a state of the past.
func newestMeta(file []byte) (boltMeta, error) {
	first, err := readMeta(file, 0)
	if err != nil {
		return boltMeta{}, err
	}
	if uint64(len(file)) < 2*first.pageSize {
		return boltMeta{}, errNoBolt
	}
	second, err := readMeta(file[first.pageSize:], 1)
	if err != nil {
		return boltMeta{}, err
	}
	if second.pageSize != first.pageSize {
		return boltMeta{}, errors.New("the two meta pages do not agree")
	}
	if second.transaction > first.transaction {
		first = second
	}
	if first.high > uint64(len(file))/first.pageSize {
		return boltMeta{}, fmt.Errorf("cut short: %d bytes, expected at least %d", len(file), first.high*first.pageSize)
	}
	return first, nil
}

func readMeta(page []byte, id uint64) (boltMeta, error) {
	if len(page) < pageHeader+metaLength {
		return boltMeta{}, errNoBolt
	}
	b := page[pageHeader:]
	if ne.Uint32(b) != boltMagic {
		return boltMeta{}, errNoBolt
	}
	sum := fnv.New64a()
	sum.Write(b[:metaLength-8])
	if ne.Uint64(b[metaLength-8:]) != sum.Sum64() || ne.Uint64(page) != id || ne.Uint16(page[8:]) != metaPage {
		return boltMeta{}, fmt.Errorf("meta page %d does not match its checksum", id)
	}
	if v := ne.Uint32(b[4:]); v != boltVersion {
		return boltMeta{}, fmt.Errorf("bbolt format %d, expected %d", v, boltVersion)
	}
	m := boltMeta{
		pageSize: uint64(ne.Uint32(b[8:])), root: ne.Uint64(b[16:]),
		freelist: ne.Uint64(b[32:]), high: ne.Uint64(b[40:]), transaction: ne.Uint64(b[48:]),
	}
	if m.pageSize < 1024 || m.pageSize > 1<<20 || m.high < 4 || m.high > 1<<40 {
		return boltMeta{}, fmt.Errorf("meta page %d makes no sense", id)
	}
	return m, nil
}

type pageReader struct {
	file  []byte
	meta  boltMeta
	depth int             // of the tree, at present
	seen  map[uint64]bool // pages in use
}

// claim returns a page with its overflow pages, each of which is in use once.
func (r *pageReader) claim(id uint64) ([]byte, error) {
	if id < 2 || id >= r.meta.high {
		return nil, fmt.Errorf("page %d is out of range", id)
	}
	page := r.file[id*r.meta.pageSize:]
	more := uint64(ne.Uint32(page[12:]))
	if ne.Uint64(page) != id || id+more >= r.meta.high {
		return nil, fmt.Errorf("page %d is damaged", id)
	}
	for k := range more + 1 {
		if r.seen[id+k] {
			return nil, fmt.Errorf("page %d is in use twice", id+k)
		}
		r.seen[id+k] = true
	}
	return page[:(more+1)*r.meta.pageSize], nil
}

// entry is a key with its value, or with the page where a branch goes on.
type entry struct {
	bucket     bool
	key, value []byte
	page       uint64
}

// entries takes a branch or leaf page apart, and returns where its data end. The
// data follow the table of elements without a gap, so that an element more or
// less in the count is noticed.
func entries(page []byte) (list []entry, leaf bool, end uint64, err error) {
	flags, count := ne.Uint16(page[8:]), int(ne.Uint16(page[10:]))
	if flags != leafPage && flags != branchPage {
		return nil, false, 0, fmt.Errorf("page %d is of an unexpected kind, %#x", ne.Uint64(page), flags)
	}
	leaf = flags == leafPage
	end = uint64(pageHeader + count*elementSize)
	if end > uint64(len(page)) {
		return nil, leaf, 0, fmt.Errorf("page %d has more entries than it can hold", ne.Uint64(page))
	}
	list = make([]entry, 0, count)
	for k := range count {
		e, ok := elementAt(page, pageHeader+k*elementSize, leaf, &end)
		if !ok {
			return nil, leaf, 0, fmt.Errorf("entry %d of page %d is damaged", k, ne.Uint64(page))
		}
		list = append(list, e)
	}
	return list, leaf, end, nil
}

// elementAt reads the element at a place, whose data begin at end, and moves end
// behind them.
func elementAt(page []byte, at int, leaf bool, end *uint64) (e entry, ok bool) {
	b := page[at:]
	var offset, keyLength, valueLength uint64
	if leaf {
		e.bucket = ne.Uint32(b) == bucketEntry
		offset, keyLength, valueLength = uint64(ne.Uint32(b[4:])), uint64(ne.Uint32(b[8:])), uint64(ne.Uint32(b[12:]))
		if !e.bucket && ne.Uint32(b) != 0 {
			return e, false
		}
	} else {
		offset, keyLength, e.page = uint64(ne.Uint32(b)), uint64(ne.Uint32(b[4:])), ne.Uint64(b[8:])
	}
	first := uint64(at) + offset
	if first != *end || first+keyLength+valueLength > uint64(len(page)) {
		return e, false
	}
	*end = first + keyLength + valueLength
	e.key = page[first : first+keyLength]
	e.value = page[first+keyLength : *end]
	return e, true
}

// What no state has: bbolt's trees of so few keys have one level or two, and a bucket has a key for each checkpoint at most.
const (
	mostDepth = 8
	mostKeys  = MaxCheckpoints + 1
)

// walk visits all entries of the tree below a page.
func (r *pageReader) walk(id uint64, visit func(entry) error) error {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > mostDepth {
		return fmt.Errorf("page %d is more than %d levels deep", id, mostDepth)
	}
	page, err := r.claim(id)
	if err != nil {
		return err
	}
	list, leaf, _, err := entries(page)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("page %d is empty", id)
	}
	if err != nil {
		return err
	}
	for k, e := range list {
		if k > 0 && string(list[k-1].key) >= string(e.key) {
			return fmt.Errorf("page %d is out of order", id)
		}
		if leaf {
			err = visit(e)
		} else {
			err = r.walk(e.page, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// top reads the buckets of the root, none of which has buckets in it.
func (r *pageReader) top(root uint64) (map[string]bucketContent, error) {
	buckets := map[string]bucketContent{}
	err := r.walk(root, func(e entry) error {
		if !e.bucket || len(e.value) < bucketHeader {
			return fmt.Errorf("%q is no bucket", e.key)
		}
		content := bucketContent{}
		name := string(e.key)
		if buckets[name] = content; len(buckets) > mostKeys {
			return fmt.Errorf("there are more than %d buckets", mostKeys)
		}
		add := func(e entry) error {
			if e.bucket {
				return fmt.Errorf("%q is a bucket within a bucket", e.key)
			}
			content[string(e.key)] = e.value
			if len(content) > mostKeys {
				return fmt.Errorf("bucket %.20q has more than %d keys", name, mostKeys)
			}
			return nil
		}
		if page := ne.Uint64(e.value); page != 0 {
			return r.walk(page, add)
		}
		return inline(e.value[bucketHeader:], add)
	})
	return buckets, err
}

// inline reads a bucket small enough to sit in its entry.
func inline(page []byte, visit func(entry) error) error {
	if len(page) < pageHeader {
		return errors.New("a bucket is cut short")
	}
	list, leaf, end, err := entries(page)
	if err == nil && (!leaf || end != uint64(len(page))) {
		err = errors.New("a bucket in a page is damaged")
	}
	for _, e := range list {
		if err == nil {
			err = visit(e)
		}
	}
	return err
}

// checkFree requires every page to be either in use or on the list of free ones: what is
// both would be overwritten.
func (r *pageReader) checkFree() error {
	if r.meta.freelist == noFreelist {
		return errors.New("there is no list of free pages")
	}
	page, err := r.claim(r.meta.freelist)
	if err != nil {
		return err
	}
	count, ids := uint64(ne.Uint16(page[10:])), page[pageHeader:]
	if count == 0xFFFF { // the number is in the first place
		count, ids = ne.Uint64(ids), ids[8:]
	}
	if ne.Uint16(page[8:]) != freelistPage || count > uint64(len(ids))/8 {
		return errors.New("the list of free pages is damaged")
	}
	for k := range count {
		id := ne.Uint64(ids[8*k:])
		if id < 2 || id >= r.meta.high || r.seen[id] {
			return fmt.Errorf("page %d on the list of free pages is in use, or not there", id)
		}
		r.seen[id] = true
	}
	if uint64(len(r.seen)) != r.meta.high {
		return fmt.Errorf("%d of %d pages are neither in use nor free", r.meta.high-uint64(len(r.seen)), r.meta.high)
	}
	return nil
}
