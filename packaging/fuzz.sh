#!/usr/bin/env bash
# Fuzzes everything that a stranger or another host can send: each target for so many minutes, which may be a fraction.
#
#   packaging/fuzz.sh MINUTES [TARGET...]     as `sealed`, for tests/sealed/sealed_fuzz.cc; all without one
#
# What a target finds out is kept in build/fuzz/corpus/TARGET and used by the next run; the first one begins with the folder
# `corpus` beside its source. An input that fails is left in build/fuzz, named for the target. A target's whole output is in
# build/log/fuzz-TARGET.log; the last lines are a summary of all. The status is 0 only if no target has failed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh

[ $# -ge 1 ] || fail "how many minutes for each target? packaging/fuzz.sh MINUTES [TARGET...]"
seconds=$(awk -v minutes="$1" 'BEGIN {print int(60 * minutes)}')
[ "$seconds" -ge 1 ] || fail "'$1' is no number of minutes"
shift

use_compiler_cache
build fuzz fuzzers
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(find tests -name '*_fuzz.cc' -printf '%f\n' | sed 's/_fuzz\.cc$//' | sort)

# The beginning of the sanitizer's report in a log, and the input if it is short; without a report, the log's end.
report_in() {
  local report
  report=$(grep --text --max-count=1 --after-context=14 -E 'ERROR: |runtime error: ' "$1" || tail -n 15 "$1")
  printf '%s\n' "$report"
  grep --text --max-count=1 '^Base64: ' "$1" || true
}

# fuzz NAME: runs one target and adds its lines to `summary`.
status=0 summary=""
fuzz() {
  local name=$1 source log=$LOG_FOLDER/fuzz-$1.log started=$SECONDS failed=0 executions artifact
  source=$(find tests -name "${name}_fuzz.cc")
  [ -n "$source" ] || fail "there is no ${name}_fuzz.cc in tests"
  local corpora=("build/fuzz/corpus/$name" "${source%/*}/corpus")
  [ -d "${corpora[1]}" ] || unset 'corpora[1]'
  mkdir -p "${corpora[0]}" "$LOG_FOLDER"
  say "fuzzing $name"
  "build/fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -max_len=262144 -rss_limit_mb=1024 -timeout=30 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$name-" "${corpora[@]}" >"$log" 2>&1 || failed=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  local figures="${executions:-an unknown number of} executions in $((SECONDS - started)) s"
  if [ $failed = 0 ]; then
    summary+="   $name: passed, $figures"$'\n'
  else
    status=1
    artifact=$(sed -n 's/.*Test unit written to //p' "$log")
    summary+="   $name: FAILED with status $failed, $figures; its input is ${artifact:-not known}, its output $log:"$'\n'
    summary+=$(report_in "$log" | sed 's/^/      /')$'\n'
  fi
}

for name in "${targets[@]}"; do
  fuzz "$name"
done
say "summary"
printf '%s' "$summary"
exit $status
