// Package printable makes text from files safe for a terminal: control characters
// in it could move the cursor, change colours and titles, or make a line read
// differently from what it is. It knows nothing of where text goes.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is the text with every control character, and every byte that is no
// UTF-8, written as an escape such as \x1b. Line ends and tabs stay.
func Text(text string) string {
	if !strings.ContainsFunc(text, control) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case control(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case control(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// JSON is encoded JSON with those control characters escaped that encoding/json
// leaves as they are, above U+007E. They only occur inside of strings.
func JSON(encoded []byte) []byte {
	text := string(encoded)
	if !strings.ContainsFunc(text, control) {
		return encoded
	}
	var b strings.Builder
	for _, r := range text {
		if control(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return []byte(b.String())
}

// control is true for control characters, and for those that change the direction
// of the text after them.
func control(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return unicode.IsControl(r)
}
