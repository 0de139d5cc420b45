package solver

import (
	"encoding"
	"encoding/json"
	"strings"
	"testing"
)

// Every name that can be written can be read, and others are refused with the names that there are.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		value interface {
			encoding.TextMarshaler
			encoding.TextUnmarshaler
		}
		names []string
	}{
		{new(Covariance), []string{"diagonal", "full"}},
		{new(Variance), []string{"exact", "scalar"}},
		{new(Precision), []string{"auto", "f64", "f32"}},
		{new(Damping), []string{"auto", "0", "0.25"}},
	} {
		for _, name := range c.names {
			if err := c.value.UnmarshalText([]byte(name)); err != nil {
				t.Error(err)
			}
			if text, _ := c.value.MarshalText(); string(text) != name {
				t.Errorf("%q is written as %q", name, text)
			}
		}
		if err := c.value.UnmarshalText([]byte("some")); err == nil || !strings.Contains(err.Error(), c.names[0]) {
			t.Errorf("%T: %v", c.value, err)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	bad := Settings{MaxIter: -1, Tol: 2, Damping: FixedDamping(1), Covariance: 9, Variance: 9, Precision: 9, Threads: -1, RAM: -1}
	err := bad.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 7 {
		t.Errorf("eight faults: %v", err)
	}
	if err := (&Settings{}).Validate(); err != nil {
		t.Error(err)
	}
}

// The keys of sweeps are hashes of this: what is not said is not in it.
func TestSettingsInJSON(t *testing.T) {
	for want, s := range map[string]Settings{
		`{}`: {Threads: 3, RAM: 1, Covariance: Full},
		`{"max_iter":5,"tol":-1,"damping":"0","no_scale_step":true,"variance":"scalar"}`: {
			MaxIter: 5, Tol: -1, Damping: FixedDamping(0), NoScaleStep: true, Variance: Scalar,
		},
	} {
		if got, err := json.Marshal(s); err != nil || string(got) != want {
			t.Errorf("%s, %v, expected %s", got, err, want)
		}
	}
}
