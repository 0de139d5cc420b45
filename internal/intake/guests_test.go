package intake

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// asGuest is a client with the token.
func asGuest(t *testing.T, e *Embedded) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(e.URL(), nats.Token(e.Token()), nats.NoEcho(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// withResults is a server with twenty samples, results, and the durable consumer of them.
func withResults(t *testing.T, folder string) *Embedded {
	t.Helper()
	e := startServer(t, folder)
	if err := e.EnsureStream(t.Context(), "R", "r", StreamLimits{Messages: 100}); err != nil {
		t.Fatal(err)
	}
	return e
}

// changes are all requests of JetStream that change something, for stream S and its consumer d, or the results.
func changes() map[string][]string {
	until := `{"pause_until":"2030-01-01T00:00:00Z"}`
	durable := `{"stream_name":"S","config":{"durable_name":"d","ack_policy":"explicit","deliver_policy":"all","pause_until":"2030-01-01T00:00:00Z"}}`
	all := map[string][]string{
		"$JS.API.META.LEADER.STEPDOWN": {"", "{}"}, server.JSApiMetaRescue: {"", "{}"}, server.JSApiRemoveServer: {`{"peer":"calamp"}`},
		"$JS.API.ACCOUNT.PURGE.$G": {""}, "$JS.API.ACCOUNT.STREAM.MOVE.$G.S": {"{}"}, "$JS.API.CONSUMER.CREATE.S": {durable},
		"$JS.API.CONSUMER.CREATE.S.d": {durable}, "$JS.API.CONSUMER.CREATE.S.d.s.y": {durable}, "$JS.API.CONSUMER.DURABLE.CREATE.S.d": {durable},
		"calamp.guests.S.d": {durable}, "$JS.FC.S.d.1": {""}, "$JS.API.STREAM.SNAPSHOT.S": {`{"deliver_subject":"$JS.ACK.S.d.1.1.1.1.0"}`},
	}
	for _, verb := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "RESTORE", "MSG.DELETE", "LEADER.STEPDOWN", "PEER.REMOVE", "PEER.EVACUATE", "CANCEL_MOVE"} {
		for _, name := range []string{"S", "R", "T"} {
			all["$JS.API.STREAM."+verb+"."+name] = []string{
				"", "{}", `{"seq":2,"no_erase":true}`, `{"name":"` + name + `","subjects":["s.y"],"max_msgs":1}`, `{"config":{"name":"` + name + `"}}`,
			}
		}
	}
	for _, verb := range []string{"DELETE", "PAUSE", "RESET", "UNPIN", "MSG.NEXT", "LEADER.STEPDOWN", "PEER.REMOVE"} {
		all["$JS.API.CONSUMER."+verb+".S.d"] = []string{"", "{}", until, `{"batch":20,"no_wait":true}`, `{"seq":9}`, `{"group":"g"}`}
	}
	for k := 1; k <= 20; k++ {
		all[fmt.Sprintf("$JS.ACK.S.d.1.%d.%[1]d.1.0", k)] = []string{"", "+ACK", "+TERM", "+NXT 10"}
	}
	return all
}

// expectAll wants every sample in order, and the results that there were.
func expectAll(t *testing.T, e *Embedded, samples int64, results uint64) {
	t.Helper()
	expectSequences(t, takeAll(openStream(t, e.Broker, 0, nil)), 1, samples)
	for name, want := range map[string]uint64{"S": uint64(samples), "R": results} {
		s, err := e.js.Stream(t.Context(), name)
		if err != nil {
			t.Error(err)
		} else if state := s.CachedInfo().State; state.Msgs != want {
			t.Errorf("stream %s has %d messages, expected %d", name, state.Msgs, want)
		}
	}
}

// TestGuestsTakeNothing: whatever a guest asks of JetStream, every sample is delivered to the owner, in order, while the
// guest tries and after two restarts.
func TestGuestsTakeNothing(t *testing.T) {
	folder := t.TempDir()
	e := withResults(t, folder)
	publish(t, e.Broker, 1, 20)
	for k := range 3 {
		if err := e.Publish(t.Context(), "r", fmt.Sprint(k), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		owner := openStream(t, e.Broker, 0, nil)
		guest := asGuest(t, e)
		inbox, err := guest.SubscribeSync(guest.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		for subject, bodies := range changes() {
			for _, body := range bodies {
				if err := guest.PublishRequest(subject, inbox.Subject, []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
		}
		guest.Flush()
		for {
			answer, err := inbox.NextMsg(50 * time.Millisecond)
			if err != nil {
				break
			}
			if len(answer.Data) > 0 {
				t.Errorf("a guest was answered on %s: %s", answer.Subject, answer.Data)
			}
		}
		expectSequences(t, takeAll(owner), 1, 20)
		expectAll(t, e, 20, 3)
		e.Close()
		e = withResults(t, folder)
	}
}

// TestAnswersOfTheServer: the server answers to any subject that a guest names, with the rights of the server. None of
// these answers may be a request, or an acknowledgement.
func TestAnswersOfTheServer(t *testing.T) {
	e := withResults(t, t.TempDir())
	publish(t, e.Broker, 1, 5)
	if err := e.Publish(t.Context(), "r", "1", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	targets := []string{
		"$JS.API.STREAM.PURGE.S", "$JS.API.STREAM.DELETE.S", "$JS.API.STREAM.PURGE.R", "$JS.API.STREAM.UPDATE.S", "$JS.API.CONSUMER.PAUSE.S.d",
		"$JS.API.CONSUMER.DELETE.S.d", "$JS.API.CONSUMER.MSG.NEXT.S.d", "$JS.ACK.S.d.1.1.1.1.0",
	}
	for _, target := range targets {
		guest := asGuest(t, e) // one that breaks a rule may be sent away
		for subject, body := range map[string]string{
			"$JS.API.INFO": "", "$JS.API.STREAM.INFO.S": "", "$JS.API.STREAM.MSG.GET.S": `{"seq":1}`, "$JS.API.STREAM.NAMES": "",
			"$JS.API.CONSUMER.MSG.NEXT.R.own": `{"batch":1,"no_wait":true}`,
		} {
			guest.PublishRequest(subject, target, []byte(body))
		}
		guest.Flush()
		headersOnly := fmt.Sprintf(`{"stream_name":"R","config":{"name":"own","Deliver_Subject":%q,"headers_only":true,"ack_policy":"none","deliver_policy":"all"}}`, target)
		answer, err := guest.Request("$JS.API.CONSUMER.CREATE.R.own", []byte(headersOnly), time.Second)
		if err == nil && !strings.Contains(string(answer.Data), `"error"`) {
			t.Errorf("a consumer delivers to %s: %s", target, answer.Data)
		}
		guest.Close()
	}
	expectAll(t, e, 5, 1)
	// What a guest publishes is a sample, wherever the answer is to go.
	guest := asGuest(t, e)
	for _, target := range targets {
		guest.PublishRequest("s.y", target, []byte(`{"y":[9,9]}`))
	}
	guest.Flush()
	time.Sleep(50 * time.Millisecond)
	stream, err := e.js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if state := stream.CachedInfo().State; state.FirstSeq != 1 || state.Msgs != state.LastSeq || state.Msgs < 5 {
		t.Errorf("after answers to guests the stream holds %+v", state)
	}
}

// TestGuestsSeeNoInbox: a guest that hears where the owner's messages come could answer in the place of the server.
func TestGuestsSeeNoInbox(t *testing.T) {
	e := withResults(t, t.TempDir())
	guest := asGuest(t, e)
	heard, err := guest.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	guest.Flush()
	publish(t, e.Broker, 1, 3)
	takeAll(openStream(t, e.Broker, -1, nil))
	if err := e.Publish(t.Context(), "r", "1", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := heard.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if m.Subject != "r" {
			t.Errorf("a guest hears %s", m.Subject)
		}
		// What it answers goes nowhere.
		guest.Publish(m.Reply, []byte("{}"))
	}
}

// TestGuestsWork: guests publish, ask for messages by number, hear results as they come, and follow them with a consumer of
// their own; at once after a restart, too.
func TestGuestsWork(t *testing.T) {
	folder := t.TempDir()
	withResults(t, folder).Close()
	e, err := StartEmbedded(EmbeddedOptions{Folder: folder, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	guest := asGuest(t, e)
	js, err := jetstream.New(guest)
	if err != nil {
		t.Fatal(err)
	}
	live, err := guest.SubscribeSync("r")
	if err != nil {
		t.Fatal(err)
	}
	guest.Flush()
	for k := range 3 {
		ack, err := js.Publish(t.Context(), "s.y", fmt.Appendf(nil, `{"y":[%d,1]}`, k), jetstream.WithMsgID(fmt.Sprint(k)))
		if err != nil || ack.Stream != "S" || ack.Sequence != uint64(k+1) {
			t.Fatal(ack, err)
		}
		future, err := js.PublishAsync("s.y", []byte("x"), jetstream.WithMsgID(fmt.Sprint(k))) // once more
		if err != nil {
			t.Fatal(err)
		}
		select {
		case ack := <-future.Ok():
			if !ack.Duplicate {
				t.Errorf("%+v", ack)
			}
		case err := <-future.Err():
			t.Error(err)
		}
		if err := e.Publish(t.Context(), "r", fmt.Sprint(k), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if _, err := live.NextMsg(time.Second); err != nil {
			t.Error(err)
		}
	}
	samples, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := samples.GetMsg(t.Context(), 2); err != nil || string(m.Data) != `{"y":[1,1]}` {
		t.Error(m, err)
	}
	if m, err := samples.GetLastMsgForSubject(t.Context(), "s.y"); err != nil || m.Sequence != 3 {
		t.Error(m, err)
	}
	results, err := js.Stream(t.Context(), "R")
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []jetstream.ConsumerConfig{{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy}, {FilterSubject: "r"}} {
		consumer, err := results.CreateOrUpdateConsumer(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := consumer.Fetch(3, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for m := range batch.Messages() {
			if err := m.DoubleAck(t.Context()); err != nil {
				t.Error(err)
			}
			seen++
		}
		if seen != 3 {
			t.Errorf("%+v: %d results", config, seen)
		}
		if info, err := consumer.Info(t.Context()); err != nil || info.NumAckPending != 0 {
			t.Error(info, err)
		}
	}
	ordered, err := results.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := ordered.Next(jetstream.FetchMaxWait(time.Second)); err != nil || string(m.Data()) != "{}" {
		t.Error(err)
	}
}
