#!/usr/bin/env bash
# All tests, from a fresh clone: installs what they need, builds, runs them, and ends with the runners' own summaries.
# Status 0 only if every suite ran and passed.
#
#   packaging/test.sh [--quick] [--no-packages]
#
#   --quick         without sanitizers and fuzzing
#   --no-packages   do not install system packages; they are there
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh
source packaging/python.sh

quick=no packages=yes
for option in "$@"; do
  case "$option" in
    --quick) quick=yes ;;
    --no-packages) packages=no ;;
    *) fail "unknown option $option; there are --quick and --no-packages" ;;
  esac
done

# suite NAME COMMAND...: runs it with its output shown, and goes on to the next one when it fails.
failed=()
suite() {
  local name=$1 started=$SECONDS
  shift
  say "$name"
  "$@" </dev/null || failed+=("$name")
  echo "   took $((SECONDS - started)) s"
}

# C++ suites, each in its own program; ctest runs their cases one by one.
run_ctest() { ctest --preset "$1" --no-tests=error -j "$(nproc)" "${@:2}"; }

# The tests of a file one after the other, and the files beside each other: one more than there are cores, since many tests wait.
run_pytest() { "$python" -m pytest -q -n $(($(nproc) + 1)) --dist loadfile --durations=15 "$@"; }

# Each fuzz target for a few seconds, beginning with the folder `corpus` beside its source; having no target is a failure
# too.
run_fuzzers() {
  local target name source status=0
  for target in build/fuzz/bin/*_fuzz; do
    name=$(basename "$target" _fuzz)
    source=$(find tests -name "${name}_fuzz.cc")
    echo "   $name"
    mkdir -p "build/fuzz/corpus/$name"
    "$target" -max_total_time=5 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 -artifact_prefix="$PWD/build/fuzz/" \
      "build/fuzz/corpus/$name" "${source%/*}/corpus" || status=1
  done
  return $status
}

[ $packages = no ] || install_packages "$BUILD_PACKAGES $TEST_PACKAGES"
use_own_environment "$TEST_MODULES"
use_compiler_cache

suite "structure: dependencies, tests, headers, formatting" "$python" -m pytest -q tests/structure
build release
suite "C++ tests" run_ctest release
if [ $quick = no ]; then
  build asan
  suite "C++ tests under the address and undefined behaviour sanitizers" run_ctest asan
  build tsan mpi_start_test rendezvous_test runtime_test shm_test runjob_gloo  # the launcher and the agent have one thread each
  suite "C++ tests under the thread sanitizer" run_ctest tsan -R '^(mpi_start|rendezvous|runtime|shm)'
  build fuzz frames_fuzz hostfile_fuzz interface_filter_fuzz pmi_message_fuzz rendezvous_fuzz ssh_files_fuzz
  suite "fuzzing the parsers" run_fuzzers
fi
install_runjob
suite "Python and end-to-end tests" run_pytest --ignore=tests/structure --ignore=tests/python/tensorflow tests
suite "TensorFlow and Keras" env PYTHON="$python" packaging/tensorflow.sh newest
# All cases that one job runs, among them the operations and models that train, and a whole example.
suite "older TensorFlow" env PYTHON="$python" packaging/tensorflow.sh 2.16 2.13 -- -k "test_every_case or keras_digits"

say "all suites ended after $((SECONDS / 60)) min $((SECONDS % 60)) s"
[ ${#failed[@]} = 0 ] || fail "failed: $(IFS=';'; echo "${failed[*]}")"
say "all passed"
