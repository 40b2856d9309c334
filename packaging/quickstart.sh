#!/usr/bin/env bash
# From a fresh clone to two processes that train a model together. A second run does only what is missing.
#
#   packaging/quickstart.sh [--no-packages]
#
#   --no-packages   do not install system packages; they are there
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh
source packaging/python.sh

case "${1:-}" in
  "") install_packages "$BUILD_PACKAGES" ;;
  --no-packages) ;;
  *) fail "unknown option $1; there is only --no-packages" ;;
esac

use_compiler_cache
use_environment_of_user "$EXAMPLE_MODULES" || use_own_environment --with-runjob "$EXAMPLE_MODULES"
install_runjob

say "training on two processes: runjob -np 2 python examples/pytorch_digits.py"
started=$SECONDS
PATH="$(scripts_folder):$PATH" runjob -np 2 "$python" examples/pytorch_digits.py 2>&1 | tee build/log/training.log
accuracy=$(sed -n 's/.*accuracy[^0-9]*\([0-9.]*[0-9]\).*/\1/p' build/log/training.log | tail -n 1)
[ -n "$accuracy" ] || fail "the example printed no accuracy"
say "trained in $((SECONDS - started)) s; test accuracy $accuracy"
case "$(scripts_folder)" in
  "$PWD/.venv/bin") say "to use runjob yourself: . .venv/bin/activate" ;;
esac
