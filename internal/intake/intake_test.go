package intake

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
)

// taken is what a source gave: samples, and the texts of what was refused and noticed.
type taken struct {
	sequences []int64
	y         [][]float64
	refused   []string
	notices   []string
	err       error
}

func takeAll(s Source) (t taken) {
	for {
		sample, err := s.Next(context.Background())
		if refused, ok := errors.AsType[*Refused](err); ok {
			t.refused = append(t.refused, refused.Error())
			continue
		}
		if notice, ok := errors.AsType[*Notice](err); ok {
			t.notices = append(t.notices, notice.Error())
			continue
		}
		if err != nil {
			t.err = err
			return t
		}
		t.sequences = append(t.sequences, sample.Sequence)
		t.y = append(t.y, slices.Clone(sample.Y))
		if err := sample.Done(); err != nil {
			t.err = err
			return t
		}
	}
}

func TestColumns(t *testing.T) {
	y := mat.NewDense(2, 3, []float64{1, 2, 3, 4, math.NaN(), 6})
	got := takeAll(Columns(y, Form{Sensors: 2}, 10, nil))
	if got.err != io.EOF || fmt.Sprint(got.sequences, got.y) != "[11 12 13] [[1 4] [2 NaN] [3 6]]" {
		t.Errorf("%+v", got)
	}
}

func TestLines(t *testing.T) {
	input := strings.Join([]string{
		`{"seq":3,"y":[1,2.5]}`,
		``,
		`{"y":[null,-1e-3],"seq":5,"time":"now"}`,
		`{"seq":5,"y":[1,2]}`,
		`{"seq":6,"y":[1]}`,
		`{"seq":7,"y":[1,2,3]}`,
		`{"seq":8,"y":[1,NaN]}`,
		`{"seq":9,"y":[1,1e999]}`,
		`{"seq":10,"y":[1,"2"]}`,
		`{"y":[1,2]}`,
		`{"seq":-4,"y":[1,2]}`,
		`{"seq":1.5,"y":[1,2]}`,
		`rubbish`,
		`{"seq":11,"y":[` + strings.Repeat(" ", 10000) + `1,2]}`,
		"\xff\xfe\x00",
		`{"seq":12}`,
		`{"seq":13,"y":[3,4]}` + "\r",
		`{"seq":14,"y":[3,4`,
	}, "\n")
	got := takeAll(Lines(strings.NewReader(input), Form{Sensors: 2}, Numbering{After: -1}))
	if got.err != io.EOF || fmt.Sprint(got.sequences, got.y) != "[3 5 13] [[1 2.5] [NaN -0.001] [3 4]]" {
		t.Errorf("%+v", got)
	}
	want := []string{
		"line 4: sequence number 5 after 5",
		"line 5: 1 readings, expected one for each of 2",
		"line 6: 3 readings",
		"line 7: not of the form",
		"line 8: ",
		"line 9: ",
		`line 10: no sequence number "seq"`,
		"line 11: sequence number -4",
		"line 12: not of the form",
		"line 13: not of the form",
		"line 14: longer than",
		"line 15: not of the form",
		"line 16: 0 readings",
		"line 18: not of the form",
	}
	if len(got.refused) != len(want) {
		t.Fatalf("refused %d: %q", len(got.refused), got.refused)
	}
	for i, w := range want {
		if !strings.HasPrefix(got.refused[i], w) {
			t.Errorf("%q, expected %q", got.refused[i], w)
		}
	}
	t.Log(strings.Join(got.refused, "\n"))
}

// TestLineWithoutEnd: a line that is too long is refused when that is known, and not at an end that may never come.
func TestLineWithoutEnd(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s := Lines(r, Form{Sensors: 2}, Numbering{After: -1})
	defer s.Close()
	go w.Write(bytes.Repeat([]byte{0}, 1<<18))
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	_, err := s.Next(ctx)
	if refused, ok := errors.AsType[*Refused](err); !ok || refused.Place != "line 1" {
		t.Fatalf("found %v, expected a refusal", err)
	}
	go w.Write([]byte(strings.Repeat("x", 1<<18) + "\n" + `{"seq":3,"y":[1,2]}` + "\n"))
	if sample, err := s.Next(ctx); err != nil || sample.Sequence != 3 || sample.Place != "line 2" {
		t.Errorf("the line after it: %+v, %v", sample, err)
	}
}

func frameBytes(width int, values ...float64) []byte {
	var b []byte
	for _, v := range values {
		if width == 4 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func TestFrames(t *testing.T) {
	for _, width := range []int{4, 8} {
		input := frameBytes(width, 1, 2, math.NaN(), -0.5, math.Inf(1), 3, 7, 8)
		got := takeAll(Frames(bytes.NewReader(input), Form{Sensors: 2, Width: width}, 20))
		if got.err != io.EOF || fmt.Sprint(got.sequences, got.y) != "[21 22 24] [[1 2] [NaN -0.5] [7 8]]" {
			t.Errorf("%+v", got)
		}
		if len(got.refused) != 1 || got.refused[0] != "frame 3: sensor 0 reads +Inf, expected a finite number, or a missing reading" {
			t.Errorf("refused %q", got.refused)
		}
		got = takeAll(Frames(bytes.NewReader(input[:len(input)-1]), Form{Sensors: 2, Width: width}, 0))
		if got.err == nil || !strings.HasPrefix(got.err.Error(), fmt.Sprintf("frame 4 is cut short: %d of %d bytes", 2*width-1, 2*width)) || len(got.sequences) != 2 {
			t.Errorf("cut short: %+v", got)
		}
	}
}

// TestWaitingCanBeGivenUp: a pipe without a writer.
func TestWaitingCanBeGivenUp(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	for _, s := range []Source{Lines(r, Form{Sensors: 2}, Numbering{After: -1}), Frames(r, Form{Sensors: 2, Width: 4}, 0)} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		s.Close()
	}
}

// TestCorruptNumber: one number far above the others is refused and named, and
// those after it go on as if it had not been there.
func TestCorruptNumber(t *testing.T) {
	input := `{"seq":17,"y":[1,2]}
{"seq":4000000000000,"y":[1,2]}
{"seq":18,"y":[1,2]}
{"seq":118,"y":[1,2]}
{"seq":9223372036854775807,"y":[1,2]}
`
	for _, c := range []struct {
		believed Numbering
		want     []int64
		refused  string
	}{
		{Numbering{After: 16, MaxGap: 100}, []int64{17, 18, 118}, "line 2: sequence number 4000000000000 is 3999999999983 above the last one, 17"},
		{Numbering{After: -1, MaxGap: 99}, []int64{17, 18}, "line 2: "},
		{Numbering{After: 10, MaxGap: 5}, nil, "line 1: sequence number 17 is 7 above the last one, 10"},
		{Numbering{After: -1}, []int64{17, 4000000000000}, "line 3: sequence number 18 after 4000000000000"},
	} {
		got := takeAll(Lines(strings.NewReader(input), Form{Sensors: 2}, c.believed))
		if !slices.Equal(got.sequences, c.want) || !strings.HasPrefix(got.refused[0], c.refused) {
			t.Errorf("%+v: %v, refused %q", c.believed, got.sequences, got.refused)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"seq":1,"y":[1,null]}` + "\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		got := takeAll(Lines(bytes.NewReader(input), Form{Sensors: 2}, Numbering{After: -1}))
		for i, y := range got.y {
			if len(y) != 2 || i > 0 && got.sequences[i] <= got.sequences[i-1] {
				t.Errorf("%+v", got)
			}
		}
	})
}
