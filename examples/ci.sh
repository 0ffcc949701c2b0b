#!/bin/sh
# Any CI: one prompt, by a policy of which the digest is written down here, with log, head and result kept.
#
#   examples/ci.sh PROMPT POLICY SHA256 FOLDER [ARGUMENT of harness run ...]
#
# SHA256 is that of the policy file (sha256sum): changed in the same change as the policy, by the same reviewer. FOLDER is new, and lies
# outside of the workspace. The exit code is that of the run; 2 where it could not begin. Run no git in the workspace afterwards: what
# the model's commands wrote into .git/config would be run. What was changed is to be had as a patch by `harness run --task`.
set -eu
if [ "$#" -lt 4 ]; then
    echo "usage: $0 PROMPT POLICY SHA256 FOLDER [ARGUMENT ...]" >&2
    exit 2
fi
prompt=$1 policy=$2 digest=$3 folder=$4
shift 4
mkdir -- "$folder" || exit 2
printf '%s' "$prompt" > "$folder/prompt.txt" || exit 2

code=0
"${HARNESS:-harness}" run - "--policy=$policy" "--policy-sha256=$digest" "--log=$folder/log.jsonl" --output=json \
    "--report=md:$folder/report.md" "--report=junit:$folder/report.xml" "$@" \
    < "$folder/prompt.txt" > "$folder/result.json" || code=$?

# The head pins the log: keep it where the job cannot reach it later (the job's output will do), and compare it with
#   harness audit verify log.jsonl --head HEAD
head=$(sed -n 's/^  "head": "\([0-9a-f]*\)",\{0,1\}$/\1/p' < "$folder/result.json")
printf '%s\n' "$head" > "$folder/head.txt"
if [ -z "$head" ] && [ -s "$folder/log.jsonl" ]; then
    echo "result.json names no head (another --output?): the log is not pinned; the head stands on stderr" >&2
fi
echo "harness ended with $code; head: $head"
exit "$code"
