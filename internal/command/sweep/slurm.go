package sweep

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/sweep"
)

//go:embed slurm.sh
var slurmScript string

// sweepSlurm is one call of calamp sweep slurm.
type sweepSlurm struct {
	grid
	tasks, most, cpus int
	limit, before     time.Duration
}

// defaultMaxArraySize is Slurm's own default of MaxArraySize.
const defaultMaxArraySize = 1001

func sweepSlurmCommand(a *console.Console) *cobra.Command {
	s := &sweepSlurm{grid: grid{Console: a}, cpus: 1}
	cmd := &cobra.Command{
		Use:   "slurm SPEC.toml",
		Short: "Print a batch script that runs the sweep as a Slurm array",
		Long: `Print a batch script that runs the sweep as a Slurm array: sbatch it. Each task
of the array takes its share of the points, however many there are, so that one
array is enough for any sweep; it has no more tasks than MaxArraySize allows.

Some time before its limit a task gets USR1, finishes the points under way, and
puts itself back into the queue. Submitting the script again, or one task of it
(sbatch --array=2 FILE), runs what is missing.`,
		Example: `  calamp sweep slurm phase.toml --tasks 40 --time 4h > phase.sh && sbatch phase.sh`,
		Args:    oneSpec,
		RunE:    func(_ *cobra.Command, args []string) error { return s.run(args[0]) },
	}
	flags := cmd.Flags()
	s.register(flags)
	flags.Var(option.Count(&s.tasks, 0), "tasks", "tasks of the array, 0 for as many as are useful")
	flags.Var(option.Count(&s.cpus, 1), "cpus", "cores of a task")
	flags.DurationVar(&s.limit, "time", time.Hour, "time limit of a task")
	flags.DurationVar(&s.before, "before", 2*time.Minute, "how long before it USR1 is sent: longer than a point takes")
	flags.Var(option.Count(&s.most, 0), "max-array-size", "the cluster's MaxArraySize, 0 to ask scontrol (else 1001)")
	return cmd
}

func (s *sweepSlurm) run(path string) error {
	if err := s.load(path); err != nil {
		return err
	}
	if s.before >= s.limit {
		return console.Usage("--before %v leaves nothing of --time %v", s.before, s.limit)
	}
	most := s.most
	if most == 0 {
		most = maxArraySize()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	spec, errSpec := filepath.Abs(path)
	data, errData := filepath.Abs(s.data)
	if errSpec != nil || errData != nil {
		return console.Usage("%s: the folder has no name", path)
	}
	memory := sweep.Size(0)
	for _, p := range s.points {
		memory = max(memory, p.Memory())
	}
	if s.spec.Run.Memory > 0 {
		memory = min(memory, s.spec.Run.Memory)
	}
	tasks := s.tasks
	if tasks == 0 {
		tasks = len(s.points)
	}
	tasks = min(tasks, len(s.points), most)
	return template.Must(template.New("sbatch").Funcs(template.FuncMap{"quote": quoted}).Parse(slurmScript)).Execute(s.Stdout, map[string]any{
		"Name": s.spec.Name, "Points": len(s.points), "Tasks": tasks, "Last": tasks - 1, "CPUs": s.cpus,
		"Minutes": max(1, int(s.limit.Minutes())), "Before": int(s.before.Seconds()),
		"MB": int64(memory)*int64(s.cpus)/1e6 + 200, "Self": self, "Spec": spec, "Data": data, "Quick": s.quick,
	})
}

// quoted is a word of the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

var arraySize = regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d+)`)

// maxArraySize asks Slurm, where it is installed. The largest index is one less.
func maxArraySize() int {
	out, err := exec.Command("scontrol", "show", "config").Output()
	if err == nil {
		if m := arraySize.FindSubmatch(out); m != nil {
			if n, err := strconv.Atoi(string(m[1])); err == nil && n > 0 {
				return n
			}
		}
	}
	return defaultMaxArraySize
}
