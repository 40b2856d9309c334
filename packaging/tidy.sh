#!/usr/bin/env bash
# clang-tidy with the rules of .clang-tidy, and cppcheck with those of packaging/cppcheck.txt.
#
#   packaging/tidy.sh            the sources that differ from the branch `main`
#   packaging/tidy.sh FILE...    these
#   packaging/tidy.sh --all      every source; clang-tidy without those of tests and benchmarks
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh

for program in clang-tidy cppcheck; do
  command -v $program >/dev/null || fail "$program is not installed; the package has that name"
done
case "${1:-}" in
  --all) mapfile -t files < <(git ls-files '*.cc') ;;
  "") mapfile -t files < <(git diff --name-only --diff-filter=d "$(git merge-base HEAD main)" -- '*.cc') ;;
  *) files=("$@") ;;
esac
[ ${#files[@]} -gt 0 ] || { say "no changed sources"; exit; }

status=0
say "cppcheck on ${#files[@]} sources"
cppcheck --std=c++20 --language=c++ --enable=warning,performance,portability --inline-suppr --quiet --error-exitcode=1 -I . \
  --suppress=missingIncludeSystem --suppressions-list=packaging/cppcheck.txt --template='{file}:{line}: {id}: {message}' \
  "${files[@]}" || status=1

# Nothing is built: clang-tidy needs the compile commands, and the headers that the configuration makes.
if [ "${1:-}" = --all ]; then
  # Batches of sources, as the release build compiles them: they read the headers once, which takes most of the time. The
  # analyzer treats the sources of a batch as its own.
  step "configuring batches" cmake --preset release -B build/tidy
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' build/tidy/compile_commands.json | grep -E '\.(cc|cxx)$' |
    grep -v -E "^$PWD/(build/tidy/)?(tests|benchmarks)/" | sort -u)
  options=(-p build/tidy --checks=-bugprone-suspicious-include)
else
  step "configuring debug" cmake --preset debug
  options=(-p build/debug)
fi
say "clang-tidy on ${#files[@]} sources or batches"
# The compile commands are g++'s; clang does not know all of its warnings.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang-tidy "${options[@]}" --quiet --extra-arg=-Wno-unknown-warning-option || status=1
exit $status
