#!/usr/bin/env bash
# The tests of runjob.tensorflow and runjob.keras with several versions of TensorFlow, each in an environment of its own, which is made once
# and kept in the user's cache folder (0.9 GB each). They use the release build of this tree. packaging/locks has the versions of what is
# in them; packaging/lock.sh renews these, the newest TensorFlow too.
#
#   packaging/tensorflow.sh [VERSION...] [-- PYTEST OPTIONS]
#
#   VERSION   newest, 2.16 (the first with Keras 3) or 2.13 (the first that can); without any, all three
# PYTHON names the interpreter that the environments are made with. 2.13 and 2.16 exist up to Python 3.11 and 3.12: with a newer one
# they are left out, and it says so.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh
source packaging/python.sh

interpreter=${PYTHON:-python3}
versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    newest | 2.13 | 2.16) versions+=("$1") ;;
    *) fail "unknown version $1; there are newest, 2.16 and 2.13" ;;
  esac
  shift
done
[ $# = 0 ] || shift
[ ${#versions[@]} -gt 0 ] || versions=(newest 2.16 2.13)

# environment_of VERSION: its folder, which depends on what is in it and on the Python.
environment_of() {
  local key
  key=$({ cat "packaging/locks/tensorflow-$1.txt"; "$interpreter" -c 'import sys; print(sys.version, sys.base_prefix)'; } | cksum | cut -d ' ' -f 1)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/runjob/tensorflow/$1-$key"
}

# `complete` comes last, so that one that was interrupted is made anew.
make_environment() {
  local folder=$1 version=$2
  rm -rf "$folder"
  "$interpreter" -m venv "$folder"
  # shellcheck disable=SC2046
  install_locked "$folder/bin/python" "tensorflow-$version" $(tensorflow_requirements "$version")
  touch "$folder/complete"
}

# exists VERSION: whether there is one for this Python.
exists() {
  local newest_minor=99
  case "$1" in
    2.13) newest_minor=11 ;;
    2.16) newest_minor=12 ;;
  esac
  "$interpreter" -c "import sys; sys.exit(sys.version_info[1] > $newest_minor)"
}

failed=()
for version in "${versions[@]}"; do
  if ! exists "$version"; then
    say "left out: TensorFlow $version, which does not exist for $("$interpreter" --version)"
    continue
  fi
  folder=$(environment_of "$version")
  [ -e "$folder/complete" ] || step "making an environment with TensorFlow $version" make_environment "$folder" "$version"
  found=$("$folder/bin/python" -c 'import importlib.metadata as m; print(m.version("tensorflow-cpu"), "and Keras", m.version("keras"))')
  say "TensorFlow $found"
  TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-2} "$folder/bin/python" -m pytest -q tests/python/{tensorflow,remote/test_adasum_between_hosts.py} "$@" || failed+=("$version")
done
[ ${#failed[@]} = 0 ] || fail "failed with TensorFlow: ${failed[*]}"
