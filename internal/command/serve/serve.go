// Package serve is calamp serve: the commands solve, se, threshold and sweep status as a
// web page.
package serve

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/internal/web"
)

// serve is one call of calamp serve.
type serve struct {
	*console.Console
	address string
	token   string
	open    bool
	upload  memory.Size
	model   string
	sweep   string
	data    string
}

// defaultUpload is a W of 4000×8000 in double precision: what a page can draw with ease.
const defaultUpload = 256 << 20

// Command is calamp serve.
func Command(a *console.Console) *cobra.Command {
	s := &serve{Console: a, address: "127.0.0.1:0", upload: defaultUpload}
	cmd := &cobra.Command{
		Use:   "serve [P.npz]",
		Short: "Show solving, theory and sweeps on a web page",
		Long: `Serve a web page, from this program alone, until Ctrl-C:

  solve    a problem while it is solved: convergence, signals, sensors, the report at
           the end. It begins with P.npz; others are dropped on the page
  theory   what state evolution says, with sliders, and real runs laid over it
  sweep    with --sweep SPEC.toml, how far a sweep is, and its table so far as a map

Problems are solved as by calamp solve, one at a time; others wait. The page is for this
machine alone. On other addresses it needs a --token, and is not encrypted: put it
behind something that is. A stream has the same page, calamp online --http.`,
		Example: `  calamp serve --open
  calamp serve P.npz --addr 127.0.0.1:8080
  calamp serve --sweep phase.toml`,
		Args:              console.Arguments(0, 1, "one problem file"),
		ValidArgsFunction: option.CompleteFiles("npz", "mat"),
		RunE:              func(_ *cobra.Command, args []string) error { return s.run(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.address, "addr", s.address, "address to serve on; port 0 is any that is free")
	flags.StringVar(&s.model, "model", "", "what is known of the problems, a .toml (see calamp model); what a visitor says on the page goes before it")
	flags.BoolVar(&s.open, "open", false, "open the page in the browser")
	flags.StringVar(&s.token, "token", "", "token that every visitor must bring, of 16 characters or more, or @FILE with it;\nneeded on addresses other than this machine's own")
	flags.Var(option.Text(&s.upload, option.Wording[memory.Size]{Kind: "size"}), "max-upload", "largest problem that can be dropped on the page")
	s.registerSweep(flags)
	return cmd
}

func (s *serve) registerSweep(flags *pflag.FlagSet) {
	flags.StringVar(&s.sweep, "sweep", "", "show this sweep, a SPEC.toml")
	flags.StringVar(&s.data, "data", "", "folder of the sweep's rows (default SPEC without .toml)")
}

func (s *serve) run(args []string) error {
	token, err := web.Token(s.token)
	if err != nil {
		return console.Usage("--token: %w", err)
	}
	for _, path := range args {
		if stat, err := os.Stat(path); err != nil || stat.IsDir() {
			return console.Usage("%s: there is no such file", path).WithHint("calamp simulate makes problems")
		}
	}
	if s.model != "" {
		if _, err := option.LoadModel(s.model); err != nil {
			return err
		}
	}
	watched, err := s.openSweep()
	if err != nil {
		return err
	}
	ctx, stop := console.Interruptible()
	defer stop()
	server, err := web.Listen(s.address, token)
	switch {
	case errors.Is(err, web.ErrAddress):
		return console.Usage("--addr %w", err)
	case errors.Is(err, web.ErrToken):
		return console.Usage("--token: %w", err)
	case err != nil:
		return fmt.Errorf("--addr: %w", err)
	}
	defer server.Close()
	folder, err := os.MkdirTemp("", "calamp-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	p := newPage(folder, int64(s.upload), watched, facts.BuildVersion().Version)
	defer p.close()
	p.jobs.model = s.model
	if len(args) == 1 {
		p.jobs.add(fileJob(args[0]))
	}
	server.Serve(p.handler())
	address := "http://" + server.Address() + "/"
	if token != "" {
		s.Note("visitors bring their token: %s?token=…", address)
	}
	if err := s.Print(address + "\n"); err != nil {
		return err
	}
	if s.open {
		s.show(address, token)
	}
	<-ctx.Done()
	return nil
}

// show opens the browser. That there is none is no reason to end.
func (s *serve) show(address, token string) {
	if token != "" {
		address += "?token=" + token
	}
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	if err := exec.Command(name, args...).Start(); err != nil {
		s.Warn("no browser could be opened (%v): the page is at the address above", console.Cause(err))
	}
}
