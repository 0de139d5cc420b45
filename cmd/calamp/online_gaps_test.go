package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/stream"
)

// TestStreamsOfOthers: messages of somebody else's stream that never came are reported in the lines, in /healthz and by the exit code;
// another state on the same durable consumer is refused, and so is another stream of the same name.
func TestStreamsOfOthers(t *testing.T) {
	folder := t.TempDir()
	problem, y := smallStream(t, folder, 9)
	e, err := intake.StartEmbedded(intake.EmbeddedOptions{Folder: filepath.Join(folder, "server"), Address: "127.0.0.1:0", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fill := func() jetstream.Stream {
		t.Helper()
		s, err := e.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"y"}})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 8 {
			if err := e.Publish(t.Context(), "y", fmt.Sprint(k), encodeSample(0, mat.Col(nil, k, y), "f8")); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	remove := func(s jetstream.Stream, first, last uint64) {
		t.Helper()
		for k := first; k <= last; k++ {
			if err := s.DeleteMsg(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := func(state string, more ...string) []string {
		return append([]string{
			problem, "--density", "0.1", "--noise-var", "1e-6", "--input", "f8", "--nats", e.URL(), "--nats-token", e.Token(), "--stream", "S",
			"--state", filepath.Join(folder, state),
		}, more...)
	}
	run := func(state string) (code int, lines []stream.Line, stderr string) {
		t.Helper()
		code, stdout, stderr := calampRun(t, append([]string{"online"}, args(state, "--drain")...)...)
		for line := range strings.Lines(stdout) {
			var l stream.Line
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		return code, lines, stderr
	}
	s := fill()
	remove(s, 3, 5)
	code, lines, stderr := run("S.calamp")
	if code != 2 || len(lines) != 6 || !strings.Contains(stderr, "3 messages of stream S never came") {
		t.Fatalf("exit %d, %d lines: %s", code, len(lines), stderr)
	}
	if l := lines[2]; l.Status != "notice" || l.Missing != 3 || l.Place != "messages 3 to 5" || l.Seq != nil {
		t.Errorf("%+v", l)
	}
	if code, _, stderr := run("T.calamp"); code != 1 || !strings.Contains(stderr, "that of another state, "+filepath.Join(folder, "S.calamp")) {
		t.Errorf("another state: exit %d, %s", code, stderr)
	}
	if code, lines, stderr := run("S.calamp"); code != 0 || len(lines) != 0 {
		t.Errorf("the same state: exit %d, %d lines, %s", code, len(lines), stderr)
	}
	c := startChild(t, "/metrics", args("S.calamp", "--http", "127.0.0.1:0")...)
	for k := range 2 {
		if err := e.Publish(t.Context(), "y", fmt.Sprint("more", k), encodeSample(0, mat.Col(nil, 8, y), "f8")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "ten messages", func() bool { return strings.Contains(c.get(t, "/healthz"), `"last_seq":10`) })
	if text := c.get(t, "/healthz"); !strings.Contains(text, `"missing":0`) {
		t.Error(text)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if err := e.JetStream().DeleteStream(t.Context(), "S"); err != nil {
		t.Fatal(err)
	}
	fill()
	for range 4 {
		if err := e.Publish(t.Context(), "y", "", encodeSample(0, mat.Col(nil, 8, y), "f8")); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := run("S.calamp"); code != 1 || !strings.Contains(stderr, "deleted and made anew") {
		t.Errorf("another stream: exit %d, %s", code, stderr)
	}
	if code, _, stderr := calampRun(t, "online", "--state", filepath.Join(folder, "S.calamp"), "--restart-at", "1"); code != 0 {
		t.Error(stderr)
	}
	if code, lines, stderr := run("S.calamp"); code != 0 || len(lines) != 12 {
		t.Errorf("from the first message on: exit %d, %d lines, %s", code, len(lines), stderr)
	}
}
