#!/bin/sh
# SLURM: an array does the tasks of one file, each element a part.
#
#   sbatch examples/slurm.sh FOLDER SHA256 [ARGUMENT of harness batch ...]
#   sbatch --array=0 --dependency=afterany:JOB examples/slurm.sh FOLDER SHA256 [the same ...]
#
# FOLDER lies where every node sees it, on a file system with flock(2). It holds tasks.jsonl and policy.toml; results/ and state/ come
# to lie there. SHA256 is that of policy.toml (sha256sum). Element 0 has no part: it does what is left, and writes the summary of all.
#SBATCH --job-name=harness
#SBATCH --array=1-4
#SBATCH --cpus-per-task=2
#SBATCH --time=04:00:00
#SBATCH --output=harness-%A-%a.txt
# A node that failed, or a job that was preempted: the element starts again, and does what is not done.
#SBATCH --requeue
#SBATCH --open-mode=append
# SLURM keeps the environment of a job. A key has no place there: it is read from a file, below.
#SBATCH --export=NONE
# Two minutes before the time is up the runs are asked to end, and their logs end whole.
#SBATCH --signal=B:TERM@120
set -eu
parts=4 # as many as --array names: SLURM_ARRAY_TASK_COUNT would be another after sbatch --array=3
folder=$1 digest=$2
shift 2
if [ "$SLURM_ARRAY_TASK_ID" != 0 ]; then
    set -- --shard "$SLURM_ARRAY_TASK_ID/$parts" "$@"
fi
OPENAI_API_KEY=$(cat -- "${KEY_FILE:-$HOME/.config/openai.key}")
export OPENAI_API_KEY XDG_STATE_HOME="$folder/state"
# exec: the signal of SLURM reaches the harness itself. Its exit code is the element's.
exec "${HARNESS:-harness}" batch "$folder/tasks.jsonl" --out "$folder/results" --jobs "${SLURM_CPUS_PER_TASK:-1}" \
    --policy "$folder/policy.toml" --policy-sha256 "$digest" "$@"
