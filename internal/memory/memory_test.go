package memory

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"2GiB": 2 << 30, "500 MB": 500e6, "1.5KB": 1500, "77": 77, "4TiB": 4 << 40} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q is %d, %v, expected %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1MB", "nan", "2 gigs", "0", "1e30"} {
		if err := new(Size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if s := Size(2_147_483_648).String(); s != "2.15 GB" {
		t.Error(s)
	}
}

func TestTotal(t *testing.T) {
	if total, free := Total(), Available(); !(free > 0 && free <= total) {
		t.Errorf("%v of %v are free", free, total)
	}
}

func TestResident(t *testing.T) {
	if size, ok := Resident(); ok && !(size > 1<<20 && size < Total()) {
		t.Errorf("this process holds %v", size)
	}
}

// An array is all zeros and can be written to its ends, whether pages are large or not.
func TestLarge(t *testing.T) {
	for _, n := range []int{0, 1, leastLarge/8 - 1, leastLarge/8 + 7, leastLarge} {
		v := Large[float64](n)
		if len(v) != n {
			t.Fatalf("%d values, expected %d", len(v), n)
		}
		for i := range v {
			if v[i] != 0 {
				t.Fatalf("value %d of %d is %g", i, n, v[i])
			}
			v[i] = 1
		}
	}
}
