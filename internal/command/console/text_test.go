package console

import "testing"

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"1 entry": Plural(1, "entry"), "0 entries": Plural(0, "entry"),
		"2 signals": Plural(2, "signal"), "1 sensor": Plural(1, "sensor"),
	} {
		if got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
