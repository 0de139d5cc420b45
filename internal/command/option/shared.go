package option

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/internal/web"
	"github.com/calamp/calamp/teacher"
)

// What follows are the flags that several commands have, each defined once. A
// command says what the flag is about in its own words.

// JSON adds --json; inPlaceOf says what is not printed then.
func JSON(flags *pflag.FlagSet, asked *bool, inPlaceOf string) {
	const printJSON = "print one JSON object in place of "
	flags.BoolVar(asked, "json", false, printJSON+inPlaceOf)
}

// Output adds -o and --output, for one file; a path given before is the default.
func Output(flags *pflag.FlagSet, path *string, usage string) {
	flags.StringVarP(path, "output", "o", *path, usage)
}

// Report adds --report, for an HTML page.
func Report(flags *pflag.FlagSet, path *string, usage string) {
	flags.StringVar(path, "report", *path, usage)
}

// Plot adds --plot; CheckPlot checks it.
func Plot(flags *pflag.FlagSet, path *string, what string) {
	flags.StringVar(path, "plot", "", what+" to this .svg, .png or .pdf")
}

// CheckPlot refuses a path whose extension is no format of a picture.
func CheckPlot(flag, path string) error {
	if path != "" && !slices.Contains(figure.Formats, PlotFormat(path)) {
		return console.Usage("%s %s: expected a name that ends in .%s", flag, path, strings.Join(figure.Formats, ", ."))
	}
	return nil
}

// PlotFormat is the format that a file's name asks for: its extension.
func PlotFormat(path string) string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
}

// Entries adds --n.
func Entries(flags *pflag.FlagSet, n *int) {
	flags.Var(Count(n, 1), "n", "entries of a signal, N")
}

// Sensors adds --m.
func Sensors(flags *pflag.FlagSet, m *int) {
	flags.Var(Count(m, 1), "m", "sensors, M, in place of --alpha")
}

// Alpha adds --alpha.
func Alpha(flags *pflag.FlagSet, alpha *float64, within Range, usage string) {
	flags.Var(Number(alpha, within), "alpha", usage)
}

// AlphaUsage is what --alpha says where signals have entries.
const AlphaUsage = "sensors for each entry, α = M/N"

// Signals adds --p.
func Signals(flags *pflag.FlagSet, p *int, usage string) { flags.Var(Count(p, 1), "p", usage) }

// RowsPerSensor adds --rows-per-sensor.
func RowsPerSensor(flags *pflag.FlagSet, rows *int, usage string) {
	*rows = 1
	flags.Var(Count(rows, 1), "rows-per-sensor", "rows of W that are read with one gain"+usage)
}

// Seed adds --seed; the value before is the default.
func Seed(flags *pflag.FlagSet, seed *uint64, usage string) {
	flags.Uint64Var(seed, "seed", *seed, usage)
}

// Workers adds --workers.
func Workers(flags *pflag.FlagSet, workers *int, usage string) {
	flags.Var(Count(workers, 0), "workers", usage+", 0 for one a core")
}

// MatrixKind adds --matrix-kind.
func MatrixKind(flags *pflag.FlagSet, kind *teacher.Ensemble, usage string) {
	flags.Var(Text(kind, Wording[teacher.Ensemble]{Kind: "kind", Words: matrixKinds()}), "matrix-kind", usage)
}

// matrixKinds are the names of the kinds; those with a parameter end in a colon.
func matrixKinds() []string {
	words := strings.Split(teacher.Ensembles(), ", ")
	for k, word := range words {
		words[k] = strings.TrimSuffix(word, "v")
	}
	return words
}

// NATS says which server to use.
type NATS struct {
	Address     string // a URL, Embedded, or empty for none
	Credentials string // a file
	Token       string // as such, or @FILE with it
	Listen      string // where an embedded server listens
}

// Embedded is the address of a server that runs in this process.
const Embedded = "embedded"

// Register adds --nats, --nats-creds and --nats-token.
func (n *NATS) Register(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&n.Address, "nats", "", usage+", or by one run here: "+Embedded)
	flags.StringVar(&n.Credentials, "nats-creds", "", "credentials file for the NATS server")
	flags.StringVar(&n.Token, "nats-token", "", "token for the NATS server, or @FILE with it;\nwithout it "+Embedded+" makes one, and says in which file")
}

// Access is what --nats-creds and --nats-token say.
func (n *NATS) Access() (intake.Access, error) {
	token, err := web.Token(n.Token)
	if err != nil {
		return intake.Access{}, console.Usage("--nats-token: %w", err)
	}
	return intake.Access{Credentials: n.Credentials, Token: token}, nil
}

// Connect connects to a server that is not run here.
func (n *NATS) Connect() (*intake.Broker, error) {
	access, err := n.Access()
	if err != nil {
		return nil, err
	}
	return intake.Connect(n.Address, access)
}

// Embed runs a server here. The address and the token of o are those of the flags.
func (n *NATS) Embed(o intake.EmbeddedOptions) (*intake.Embedded, error) {
	access, err := n.Access()
	if err != nil {
		return nil, err
	}
	o.Address, o.Token = n.Listen, access.Token
	e, err := intake.StartEmbedded(o)
	if errors.Is(err, intake.ErrToken) {
		return nil, console.Usage("%w", err)
	}
	return e, err
}

// RegisterListen adds --nats-listen, for commands that can run a server.
func (n *NATS) RegisterListen(flags *pflag.FlagSet) {
	flags.StringVar(&n.Listen, "nats-listen", "127.0.0.1:4222", "address of the embedded server")
}

// CompleteFiles offers files of these kinds to completion in a shell, for the
// only argument.
func CompleteFiles(kinds ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kinds, cobra.ShellCompDirectiveFilterFileExt
	}
}
