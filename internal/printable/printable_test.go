package printable

import (
	"encoding/json"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ρ = 0.2\n\tα":     "plain, ρ = 0.2\n\tα",
		"\x1b[31mred\x07":         `\x1b[31mred\x07`,
		"over\rwritten\b\x7f":     `over\x0dwritten\x08\x7f`,
		"C1 \u009b31m":            `C1 \u009b31m`,
		"no UTF-8 \x9b31m \xff":   `no UTF-8 \x9b31m \xff`,
		"back\u202ewards\u2069 �": `back\u202ewards\u2069 �`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	const text = "a\x1bb\u009bc\x7fd\u202ee ρ\n"
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	safe := JSON(encoded)
	var back string
	if err := json.Unmarshal(safe, &back); err != nil || back != text {
		t.Errorf("%s is %q, %v", safe, back, err)
	}
	if Text(string(safe)) != string(safe) {
		t.Errorf("%q", safe)
	}
}
