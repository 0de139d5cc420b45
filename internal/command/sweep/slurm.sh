#!/bin/bash
#SBATCH --job-name=calamp-{{.Name}}
#SBATCH --array=0-{{.Last}}
#SBATCH --cpus-per-task={{.CPUs}}
#SBATCH --mem={{.MB}}M
#SBATCH --time={{.Minutes}}
#SBATCH --signal=B:USR1@{{.Before}}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=calamp-{{.Name}}-%a.log
# {{.Points}} points in {{.Tasks}} tasks. Made by calamp sweep slurm; sbatch this file, or
# sbatch --array=I for the tasks that are to run again. Rows that are there are kept.
set -u
{{quote .Self}} sweep run {{quote .Spec}} --data {{quote .Data}}{{if .Quick}} --quick{{end}} \
  --shard "$((SLURM_ARRAY_TASK_ID + 1))/{{.Tasks}}" --workers {{.CPUs}} &
calamp=$!
# Slurm signals this shell, not its children.
trap 'kill -USR1 "$calamp" 2>/dev/null' USR1 TERM
# A signal ends the wait as well as calamp does.
wait "$calamp"
code=$?
while kill -0 "$calamp" 2>/dev/null; do
  wait "$calamp"
  code=$?
done
wait "$calamp" 2>/dev/null # its code, if the signal and its end came together
last=$?
[ "$last" = 127 ] || code=$last
if [ "$code" = 130 ]; then # time was up: go on later
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
