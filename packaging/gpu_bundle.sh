#!/usr/bin/env bash
# Makes the folder to bring to a machine that has a GPU and no network: packaging/gpu_check.sh with all that it needs, in
# 48 MiB at most. There, `FOLDER/gpu_check.sh` runs the checks.
#
#   packaging/gpu_bundle.sh [--architecture N] [--wheel FILE] FOLDER
#
#   --architecture N   the kind of GPU, as CUDA numbers it, for which NCCL is brought along; 90 (H100, H200)
#   --wheel FILE       this wheel of runjob, instead of a new one
#
# NCCL is the one that PyTorch has installed in .venv; nothing is downloaded for it. Without one, the folder has none, and the
# check uses the one of the other machine alone.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh

architecture=90 wheel='' folder=''
while [ $# -gt 0 ]; do
  case "$1" in
    --architecture) architecture=$2 && shift ;;
    --wheel) wheel=$2 && shift ;;
    -*) fail "unknown option $1; there are --architecture and --wheel" ;;
    *) folder=$1 ;;
  esac
  shift
done
[ -n "$folder" ] || fail "which folder is to be made?"
[ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || fail "$folder is not empty"
python=$PWD/.venv/bin/python
[ -x "$python" ] || python=python3

use_compiler_cache
build release gpu_host_time
mkdir -p "$folder/gpu_check"
if [ -n "$wheel" ]; then
  cp "$wheel" "$folder"
else
  step "building the wheel" "$python" -m pip wheel --no-deps -w "$folder" .
fi
cp packaging/gpu_check.sh "$folder"
cp packaging/gpu_check/*.py benchmarks/gpu/training_steps.py "$folder/gpu_check"
strip -o "$folder/gpu_host_time" build/release/bin/gpu_host_time

# Wherever .venv finds packages: it may name other folders in a file of paths.
nccl=$("$python" -c '
import pathlib, sys
print(next((str(each) for path in sys.path for each in pathlib.Path(path, "nvidia").glob("*/lib/libnccl.so.2")), ""))')
if [ -n "$nccl" ]; then
  step "cutting $nccl down to architecture $architecture" python3 packaging/cut_nccl.py "$nccl" "$architecture" "$folder/libnccl.so.2.xz"
  tail -n 1 "$LOG_FOLDER"/cutting-*.log
else
  say "no NCCL is brought along: .venv has no PyTorch with one"
fi

size=$(du -sk "$folder" | cut -f 1)
[ "$size" -le $((48 * 1024)) ] || fail "$folder has $((size / 1024)) MiB, and may have 48"
say "$folder: $((size / 1024)) MiB; on the other machine, run $(basename "$folder")/gpu_check.sh"
