#!/usr/bin/env bash
# Fuzzes everything that a stranger or another host can send: each target for so many minutes, which may be a fraction.
#
#   packaging/fuzz.sh MINUTES [TARGET...]     as `sealed`, for tests/sealed/sealed_fuzz.cc; all without one
#
# What a target finds out is kept in build/fuzz/corpus/TARGET and used by the next run; the first one begins with the folder
# `corpus` beside its source. An input that fails is left in build/fuzz, named for the target. The status is 0 only if no
# target has failed.
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

status=0
for name in "${targets[@]}"; do
  source=$(find tests -name "${name}_fuzz.cc")
  [ -n "$source" ] || fail "there is no ${name}_fuzz.cc in tests"
  corpora=("build/fuzz/corpus/$name" "${source%/*}/corpus")
  [ -d "${corpora[1]}" ] || unset 'corpora[1]'
  mkdir -p "${corpora[0]}"
  say "$name"
  "build/fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=30 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$PWD/build/fuzz/$name-" "${corpora[@]}" || status=1
done
exit $status
