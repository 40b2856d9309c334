#!/usr/bin/env bash
# The tests, from a fresh clone: installs what they need, builds, runs them, and ends with the runners' own summaries.
# The status is 0 only if every suite ran and passed.
#
#   packaging/test.sh [--quick | --thorough] [--no-packages]
#   packaging/test.sh [--no-packages] SUBJECT...
#
#   --quick         without sanitizers, fuzzing, TensorFlow and Keras, and without the tests of the wheel, of packaging/, of the
#                   benchmarks, of the examples and of what the pages of docs/ show; all C++ tests run in the release build instead
#   --thorough      everything, and what takes long: the tests that are marked so; the thread sanitizer on the runtime, the rendezvous
#                   and the stand-ins of GPUs, with 100 random jobs; a debug build that compiles each source alone, with its tests and
#                   the part of each folder's lines that they run; a minute of fuzzing for each parser; older versions of TensorFlow and PyTorch; a rank that is stopped for a minute; 500
#                   schedules of losses in elastic jobs; jobs of a launcher with sanitizers; clang-tidy and cppcheck on all sources
#   --no-packages   do not install system packages; they are there
#   SUBJECT         only the tests of a folder, such as `hostfile`, `runtime/engine` or `torch`, and only what they need is
#                   built. An unknown one gets a list.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh
source packaging/python.sh

extent=usual packages=yes subjects=()
for option in "$@"; do
  case "$option" in
    --quick | --thorough) extent=${option#--} ;;
    --no-packages) packages=no ;;
    -*) fail "unknown option $option; there are --quick, --thorough and --no-packages" ;;
    *) subjects+=("$option") ;;
  esac
done
[ ${#subjects[@]} = 0 ] || [ "$extent" = usual ] || fail "--$extent is for all tests; leave it out with a subject"

# suite NAME COMMAND...: runs it with its output shown, and goes on to the next one when it fails. Its runner writes the results to $results.
failed=() repeated=() failures="" results=
suite() {
  local name=$1 started=$SECONDS
  results=$PWD/$LOG_FOLDER/results-$(file_name "$1").xml
  mkdir -p "$LOG_FOLDER"
  rm -f "$results"
  shift
  say "$name"
  if ! "$@" </dev/null; then
    failed+=("$name")
    failures+="== failed: $name"$'\n'
    [ ! -e "$results" ] || failures+=$(python3 packaging/failures.py "$results")$'\n'
  fi
  echo "   took $((SECONDS - started)) s"
}

# Tests that failed run once more, one at a time, if they are few: most of these met a machine that was too busy. What passes only then
# is listed at the end, since it may also be an error that comes and goes.
readonly MOST_REPEATED=5
repeat_few() {
  local names
  [ -e "$results" ] && mapfile -t names < <(python3 packaging/failures.py --names "$results")
  [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le $MOST_REPEATED ] || return 1
  say "once more, alone: ${#names[@]} that failed"
  failures+="== failed at first: ${names[*]}"$'\n'$(python3 packaging/failures.py "$results")$'\n'
  "$@" || return 1
  repeated+=("${names[@]}")
}

readonly BESIDE_EACH_OTHER=$(($(nproc) + 1))  # tests: one more than there are cores, since many wait

# C++ suites, each in its own program; ctest runs their cases one by one.
run_ctest() {
  local preset=$1
  shift
  ctest --preset "$preset" --no-tests=error -j "$BESIDE_EACH_OTHER" --output-junit "$results" "$@" ||
    repeat_few ctest --preset "$preset" --rerun-failed --output-junit "$results"
}

# The optimizer makes no difference in the launcher and the command line: their C++ tests usually run under sanitizers only.
readonly ONLY_SANITIZED=(launcher cli)

# The targets of all other folders, in the build folder that CMake has configured.
all_but_sanitized() {
  local folders
  folders=$(IFS='|'; echo "${ONLY_SANITIZED[*]}")
  ninja -C build/release -t targets all | sed -n 's|^\([^ :]*/all\): phony$|\1|p' | grep -vE "^tests/(($folders)/.*)?all\$"
}

# A regular expression for the tests of these folders, and for what CMake names in place of those of a program that is not built.
only_sanitized_tests() {
  local programs
  programs=$(python3 packaging/subjects.py "${ONLY_SANITIZED[@]}" | sed -n 's/^ctest //p' | paste -sd '|')
  echo "^($programs)(: ?|_test_NOT_BUILT)"
}

# Python tests that are marked so run with --thorough, and when their subject is asked for.
unless_thorough=()
[ "$extent" = thorough ] || [ ${#subjects[@]} -gt 0 ] || unless_thorough=(-m "not thorough")

# The tests of a file one after the other, and the files beside each other.
run_pytest() {
  "$python" -m pytest -q "${unless_thorough[@]}" -n "$BESIDE_EACH_OTHER" --dist loadfile --durations=15 --junitxml "$results" "$@" ||
    repeat_few "$python" -m pytest -q --last-failed --last-failed-no-failures none --junitxml "$results" "$@"
}

# run_subjects LINES: builds what the tests of these lines of packaging/subjects.py need, and runs them.
run_subjects() {
  local lines=$1 kind name tags targets=() folders=()
  mapfile -t targets < <(sed -n 's/^target //p' <<<"$lines")
  mapfile -t folders < <(sed -n 's/^pytest //p' <<<"$lines")
  use_compiler_cache
  [ ${#targets[@]} = 0 ] || build release "${targets[@]}"
  while read -r kind name tags; do
    case "$kind" in
      ctest) suite "C++ tests: $name" run_ctest release -R "^$name: ?" ;;
      cases) suite "C++ tests: some of $name" "build/release/bin/$name" --filenames-as-tags "$tags" ;;
    esac
  done <<<"$lines"
  if [ ${#folders[@]} -gt 0 ] || grep -q '^tensorflow$' <<<"$lines"; then
    use_own_environment --lock tests "$TEST_MODULES"
  fi
  ! grep -q '^install$' <<<"$lines" || install_runjob
  [ ${#folders[@]} = 0 ] || suite "Python tests: ${folders[*]}" run_pytest "${folders[@]}"
  ! grep -q '^tensorflow$' <<<"$lines" || suite "TensorFlow and Keras" run_tensorflow newest
}

# The launcher and its agents with sanitizers. What preloads a library or limits memory would end them.
run_sanitized_jobs() {
  RUNJOB_BIN=$PWD/build/asan/bin/runjob ASAN_OPTIONS=detect_leaks=0 run_pytest tests/python/{launcher,faults,remote/test_ssh_jobs.py} \
    -k "not few_descriptors and not large_files and not wall_clock and not memfd"
}

run_structure() { "$python" -m pytest -q --junitxml "$results" tests/structure; }

# run_tensorflow VERSION...
run_tensorflow() { PYTHON="$python" packaging/tensorflow.sh "$@" -- "${unless_thorough[@]}" --junitxml "$results"; }

run_older_torch() { PYTHON="$python" packaging/torch_versions.sh -- --junitxml "$results"; }

run_all() {
  use_compiler_cache
  use_own_environment --with-runjob --lock tests "$TEST_MODULES"
  [ "$extent" != thorough ] || export TESTS_GPU_SCHEDULES=100

  suite "structure: dependencies, tests, headers, formatting" run_structure
  if [ "$extent" = usual ]; then
    local targets
    configure release
    mapfile -t targets < <(all_but_sanitized)
    compile release "${targets[@]}"
    suite "C++ tests, without those of ${ONLY_SANITIZED[*]}" run_ctest release -E "$(only_sanitized_tests)"
  else
    build release
    suite "C++ tests" run_ctest release
  fi
  if [ "$extent" != quick ]; then
    build asan
    # Core dumps of programs with sanitizers are large; the release build checks what is in a core dump.
    suite "C++ tests under the address and undefined behaviour sanitizers" run_ctest asan -E ': ?no core dump'
    local programs=(shm tcp)  # ranks as threads, and their sockets
    [ "$extent" != thorough ] || programs+=(gpu mpi_start rendezvous runtime)  # the launcher and the agent have one thread each
    build tsan "${programs[@]/%/_test}"
    suite "C++ tests under the thread sanitizer" run_ctest tsan -R "^($(IFS='|'; echo "${programs[*]}")): ?"
    suite "fuzzing what strangers send" packaging/fuzz.sh "$([ "$extent" = thorough ] && echo 1 || echo 0.05)"
  fi
  install_runjob
  # A rank is stopped for so long while others wait for it; schedules of losses; losses and gains of one training.
  [ "$extent" != thorough ] || export TESTS_STOPPED_SECONDS=60 TESTS_SCHEDULES=500 TESTS_CHANGES=20
  local left_out=(structure python/tensorflow)
  [ "$extent" != quick ] || left_out+=(benchmarks docs packaging python/examples python/wheel 'python/*/*keras*')
  suite "Python and end-to-end tests" run_pytest "${left_out[@]/#/--ignore-glob=tests/}" tests
  [ "$extent" = quick ] || suite "TensorFlow and Keras" run_tensorflow newest
  if [ "$extent" = thorough ]; then
    suite "jobs under the address sanitizer" run_sanitized_jobs
    suite "older TensorFlow" run_tensorflow 2.16 2.13
    suite "older PyTorch" run_older_torch
    build coverage
    suite "C++ tests of the debug build, which counts the lines that run" run_ctest coverage
    suite "lines that C++ tests run" python3 packaging/coverage.py build/coverage
    suite "clang-tidy and cppcheck" packaging/tidy.sh --all
  fi
}

lines=$(python3 packaging/subjects.py "${subjects[@]}" 2>&1) || fail "$lines"
[ $packages = no ] || install_packages "$BUILD_PACKAGES $TEST_PACKAGES"
if [ ${#subjects[@]} -gt 0 ]; then
  run_subjects "$lines"
else
  run_all
fi

say "all suites ended after $((SECONDS / 60)) min $((SECONDS % 60)) s"
printf '%s' "$failures"
for name in "${repeated[@]}"; do say "passed only when it ran again, alone: $name"; done
[ ${#failed[@]} = 0 ] || fail "failed: $(IFS=';'; echo "${failed[*]}")"
say "all passed"
