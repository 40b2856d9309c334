#!/usr/bin/env bash
# The tests of the backend of torch.distributed with older versions of PyTorch, each in an environment of its own, which is made once and
# kept in the user's cache folder (5 GB each). They use the release build of this tree. There is no lock for them: packaging/packages.sh has
# the versions of PyTorch, and PyTorch those of its libraries for GPUs.
#
#   packaging/torch_versions.sh [VERSION...] [-- PYTEST OPTIONS]
#
#   VERSION   2.4, the last that finds no backend of a package, or 2.8, which calls a package when it is imported; without any, both
# PYTHON names the interpreter that the environments are made with. 2.4 exists up to Python 3.12, 2.8 up to 3.13: with a newer one
# they are left out, and it says so.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh

interpreter=${PYTHON:-python3}
versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    2.4 | 2.8) versions+=("$1") ;;
    *) fail "unknown version $1; there are 2.4 and 2.8" ;;
  esac
  shift
done
[ $# = 0 ] || shift
[ ${#versions[@]} -gt 0 ] || versions=(2.4 2.8)

# environment_of VERSION: its folder, which depends on what is in it and on the Python.
environment_of() {
  local key
  key=$({ torch_requirements "$1"; "$interpreter" -c 'import sys; print(sys.version, sys.base_prefix)'; } | cksum | cut -d ' ' -f 1)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/runjob/torch/$1-$key"
}

# `complete` comes last, so that one that was interrupted is made anew.
make_environment() {
  local folder=$1 version=$2
  rm -rf "$folder"
  "$interpreter" -m venv "$folder"
  # shellcheck disable=SC2046
  "$folder/bin/python" -m pip install $(torch_requirements "$version")
  touch "$folder/complete"
}

# exists VERSION: whether there is one for this Python.
exists() {
  local newest_minor=12
  [ "$1" = 2.4 ] || newest_minor=13
  "$interpreter" -c "import sys; sys.exit(sys.version_info[1] > $newest_minor)"
}

failed=()
for version in "${versions[@]}"; do
  if ! exists "$version"; then
    say "left out: PyTorch $version, which does not exist for $("$interpreter" --version)"
    continue
  fi
  folder=$(environment_of "$version")
  [ -e "$folder/complete" ] || step "making an environment with PyTorch $version" make_environment "$folder" "$version"
  say "PyTorch $("$folder/bin/python" -c 'import torch; print(torch.__version__)')"
  "$folder/bin/python" -m pytest -q tests/python/torch/distributed/test_older_torch.py "$@" || failed+=("$version")
done
[ ${#failed[@]} = 0 ] || fail "failed with PyTorch: ${failed[*]}"
