#!/usr/bin/env bash
# Renews packaging/locks: the versions, with the hashes of their files, of what the tests and a release take from the Python package
# index. Run it to get newer versions, look at the difference, run the tests, and commit it.
#
#   packaging/lock.sh [NAME...]     as `release`, for packaging/locks/release.txt; all without one
#
# A lock is for the minor version of Python that made it: pip chooses by it. PYTHON names the interpreter (python3).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh

readonly FOLDER=packaging/locks
readonly NAMES=(tests release tensorflow-newest tensorflow-2.16 tensorflow-2.13)

requirements_of() {
  case "$1" in
    tests) distributions_of "$TEST_MODULES" ;;
    release) echo "$RELEASE_REQUIREMENTS" ;;
    tensorflow-*) tensorflow_requirements "${1#tensorflow-}" ;;
    *) fail "there is no lock $1; there are ${NAMES[*]}" ;;
  esac
}

scratch=$(mktemp -d)
trap 'stop_telling; rm -rf "$scratch"' EXIT
names=("$@")
[ $# -gt 0 ] || names=("${NAMES[@]}")
for name in "${names[@]}"; do requirements_of "$name" >/dev/null; done
step "making an environment with pip-tools" bash -c "'${PYTHON:-python3}' -m venv '$scratch/tools' && '$scratch/tools/bin/pip' install pip-tools"
python=$("$scratch/tools/bin/python" -c 'import sys; print("CPython %d.%d" % sys.version_info[:2])')

for name in "${names[@]}"; do
  requirements_of "$name" | xargs -n 1 >"$scratch/$name.in"
  step "locking $name" "$scratch/tools/bin/pip-compile" --quiet --generate-hashes --no-header --no-annotate --strip-extras --allow-unsafe \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file "$scratch/$name.txt" "$scratch/$name.in"
  { echo "# $python; made by packaging/lock.sh"; cat "$scratch/$name.txt"; } >"$FOLDER/$name.txt"
done
