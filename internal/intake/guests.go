//go:build !small

package intake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// guests are the clients of an embedded server, in an account of their own: what they publish, ask for and
// answer stays there, but for what they are shown of the streams. Rules about subjects in the account of the streams
// would not do. There the server itself publishes to any subject that a guest names as the reply to a sample, or as the
// place where a consumer delivers to, an acknowledgement or the request of a purge among them.
type guests struct {
	account, owner *server.Account
	nc             *nats.Conn // of the owner
	shown          []string   // subjects of the owner
}

func newGuests(s *server.Server, nc *nats.Conn) (*guests, error) {
	account, err := s.RegisterAccount("guests")
	if err != nil {
		return nil, err
	}
	g := &guests{account: account, owner: s.GlobalAccount(), nc: nc}
	return g, g.serve(server.Singleton, server.JSApiAccountInfo, server.JSApiStreams, server.JSApiStreamList)
}

// show lets guests look at a stream and its messages. To one of samples they can publish. One of results, which drops its
// oldest by itself, they can follow with consumers that they pull from: its acknowledgements remove nothing.
func (g *guests) show(c jetstream.StreamConfig) error {
	err := g.serve(server.Singleton, "$JS.API.STREAM.INFO."+c.Name, "$JS.API.STREAM.MSG.GET."+c.Name,
		"$JS.API.CONSUMER.NAMES."+c.Name, "$JS.API.CONSUMER.LIST."+c.Name, "$JS.API.CONSUMER.INFO."+c.Name+".*")
	if err == nil {
		err = g.serve(server.Streamed, "$JS.API.DIRECT.GET."+c.Name, "$JS.API.DIRECT.GET."+c.Name+".>")
	}
	switch {
	case err != nil:
		return err
	case c.DenyPurge: // see EnsureStream
		return g.showResults(c)
	}
	return g.serve(server.Singleton, c.Subjects...)
}

func (g *guests) showResults(c jetstream.StreamConfig) error {
	for _, subject := range g.unseen(c.Subjects) {
		err := g.owner.AddStreamExport(subject, []*server.Account{g.account})
		if err == nil {
			err = g.account.AddStreamImport(g.owner, subject, "")
		}
		if err != nil {
			return fmt.Errorf("subject %s for guests: %w", subject, err)
		}
	}
	create, checked := "$JS.API.CONSUMER.CREATE."+c.Name+".>", "calamp.guests."+c.Name+".>"
	if len(g.unseen([]string{checked})) > 0 {
		if _, err := g.nc.Subscribe(checked, g.createConsumer); err != nil {
			return err
		}
		if err := g.serveAs(server.Singleton, create, checked); err != nil {
			return err
		}
	}
	err := g.serve(server.Singleton, "$JS.API.CONSUMER.DELETE."+c.Name+".*", "$JS.ACK."+c.Name+".>")
	if err != nil {
		return err
	}
	return g.serve(server.Streamed, "$JS.API.CONSUMER.MSG.NEXT."+c.Name+".*")
}

// unseen are those of the subjects that were not shown yet, and are now.
func (g *guests) unseen(subjects []string) []string {
	left := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return slices.Contains(g.shown, s) })
	g.shown = append(g.shown, left...)
	return left
}

// serve passes on what guests publish to the subjects, and the answers.
func (g *guests) serve(answers server.ServiceRespType, subjects ...string) error {
	for _, subject := range g.unseen(subjects) {
		if err := g.serveAs(answers, subject, subject); err != nil {
			return err
		}
	}
	return nil
}

func (g *guests) serveAs(answers server.ServiceRespType, from, to string) error {
	err := g.owner.AddServiceExportWithResponse(to, answers, []*server.Account{g.account})
	if err == nil {
		err = g.account.AddServiceImport(g.owner, from, to)
	}
	if err != nil {
		return fmt.Errorf("subject %s for guests: %w", from, err)
	}
	return nil
}

// createConsumer makes a consumer for a guest, unless it delivers to a subject by itself: that one would be in the
// account of the streams.
func (g *guests) createConsumer(m *nats.Msg) {
	answer := func(problem string) {
		fault := server.ApiResponse{Type: server.JSApiConsumerCreateResponseType, Error: &server.ApiError{Code: 403, Description: problem}}
		if raw, err := json.Marshal(fault); err == nil {
			m.Respond(raw)
		}
	}
	var request server.CreateConsumerRequest
	if err := json.Unmarshal(m.Data, &request); err != nil {
		answer(err.Error())
		return
	}
	if request.Config.DeliverSubject != "" {
		answer("guests have consumers to pull from, without deliver_subject")
		return
	}
	// What was checked is what is asked for, however a name was spelt.
	raw, err := json.Marshal(request)
	if err != nil {
		answer(err.Error())
		return
	}
	_, subject, _ := strings.Cut(m.Subject, "calamp.guests.")
	made, err := g.nc.Request("$JS.API.CONSUMER.CREATE."+subject, raw, 5*time.Second)
	if err != nil {
		answer(err.Error())
		return
	}
	m.Respond(made.Data)
}
