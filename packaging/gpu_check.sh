#!/usr/bin/env bash
# All that a real GPU is needed for, in eight minutes at most and without a network: every collective against NumPy with one
# rank and with two on one GPU, a killed rank, PyTorch's tensors, and figures.
#
#   packaging/gpu_check.sh [--stand-ins] [--no-figures] [--seconds N] [FOLDER]
#
#   --stand-ins    over the libraries of tests/gpu_stand_in instead, on a machine without a GPU; outside of the source tree,
#                  LD_LIBRARY_PATH names their folder
#   --no-figures   leaves out what is only measured
#   --seconds N    the limit of the whole; 480
#   FOLDER         gets check.log, steps.tsv, figures.tsv and tables.md; ./gpu_check.out
#
# It runs in a source tree that is built, or beside the files that packaging/gpu_bundle.sh has put into a folder. Each step has
# a time limit of its own, and the next one runs whatever happens. The last line is `N passed`, with the steps that failed or
# were skipped; the status is 0 if none failed. PYTHON names the interpreter; it needs NumPy.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/gpu_check

stand_ins=no figures=yes seconds=480 folder=
while [ $# -gt 0 ]; do
  case "$1" in
    --stand-ins) stand_ins=yes ;;
    --no-figures) figures=no ;;
    --seconds) seconds=$2 && shift ;;
    -*) echo "$0: error: unknown option $1; there are --stand-ins, --no-figures and --seconds" >&2 && exit 2 ;;
    *) folder=$1 ;;
  esac
  shift
done
folder=${folder:-gpu_check.out}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
log=$folder/check.log
scratch=$(mktemp -d)
trap 'stop_mps; rm -rf "$scratch"' EXIT
tee "$log" "$folder/steps.tsv" "$folder/figures.tsv" </dev/null
exec 3>&1

passed=0 failed=() skipped=()

note() {
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4-}" >>"$folder/steps.tsv"
  printf '%-8s %4s s  %s%s\n' "$2" "$3" "$1" "${4:+: $4}" >&3
}

skip() {
  skipped+=("$1")
  note "$1" skipped 0 "$2"
}

# step NAME LIMIT [--with TEXT] [--without TEXT] COMMAND...: fails when the command does, when its limit ends it, or when its
# output lacks a text or has one that it must not have.
step() {
  local name=$1 limit=$2 with='' without='' started=$SECONDS left=$((seconds - SECONDS)) status=0 out=$scratch/out why=''
  shift 2
  [ "$1" != --with ] || { with=$2 && shift 2; }
  [ "$1" != --without ] || { without=$2 && shift 2; }
  if [ "$left" -lt 5 ]; then
    failed+=("$name")
    note "$name" FAILED 0 "no time is left of $seconds s"
    return 1
  fi
  [ "$limit" -lt "$left" ] || limit=$left
  printf '\n=== %s: %s\n' "$name" "$*" >>"$log"
  # shellcheck disable=SC2016
  timeout --kill-after=5 "$limit" bash -c '"$@"' step "$@" >"$out" 2>&1 </dev/null || status=$?  # functions are exported
  cat "$out" >>"$log"
  sed -n 's/^\(\[[0-9]*\]<stdout>:\)\{0,1\}FIGURE\t/'"$name"'\t/p' "$out" >>"$folder/figures.tsv"
  if [ $status = 124 ] || [ $status = 137 ]; then
    why="not done after $limit s"
  elif [ $status != 0 ]; then
    why="status $status: $(grep -v '^$' "$out" | tail -n 1 | cut -c -200)"
  elif [ -n "$with" ] && ! grep -qF -- "$with" "$out"; then
    why="its output has no '$with'"
  elif [ -n "$without" ] && grep -qF -- "$without" "$out"; then
    why=$(grep -F -- "$without" "$out" | head -n 1 | cut -c -200)
  fi
  echo "=== $name: ${why:-passed}" >>"$log"
  if [ -n "$why" ]; then
    failed+=("$name")
    note "$name" FAILED $((SECONDS - started)) "$why"
    return 1
  fi
  passed=$((passed + 1))
  note "$name" passed $((SECONDS - started))
}

# figure NAME LIMIT COMMAND...: a step that only measures.
figure() {
  [ $figures = yes ] || return 0
  step "$@"
}

# --- What is there ---------------------------------------------------------------------------------------------------------

facts() {
  date -u
  uname -a
  nproc
  grep -E '^(MemTotal|PRETTY_NAME|model name)' /proc/meminfo /etc/os-release /proc/cpuinfo | sort -u | head -n 4
  ldd --version | head -n 1
  df -h /dev/shm | tail -n 1
  command -v nvidia-smi >/dev/null && nvidia-smi && nvidia-smi -L
  cat /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information 2>/dev/null
  for each in /sys/bus/pci/devices/*; do
    case "$(cat "$each/vendor" 2>/dev/null) $(cat "$each/class" 2>/dev/null)" in
      '0x10de 0x03'*) echo "$each: NUMA node $(cat "$each/numa_node")" ;;
    esac
  done
  command -v nvidia-cuda-mps-control || echo "no nvidia-cuda-mps-control"
  "$python" -VV
  "$python" - <<'PYTHON'
import importlib.metadata
import importlib.util

for name in ("torch", "numpy", "jax", "cupy-cuda13x", "nvidia-nccl-cu13", "nvidia-nccl-cu12"):
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        print(name, "is not installed")
PYTHON
  true
}

# Where PyTorch's NCCL lies, if PyTorch has one.
torch_nccl() {
  "$python" - <<'PYTHON'
import importlib.util
import pathlib

for name in ("nvidia.nccl", "nvidia"):
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        continue
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in pathlib.Path(folder).rglob("libnccl.so.2"):
            print(path)
            raise SystemExit
PYTHON
}

nccl_version() {
  "$python" -c '
import ctypes, sys
version = ctypes.c_int()
assert ctypes.CDLL(sys.argv[1]).ncclGetVersion(ctypes.byref(version)) == 0
print("NCCL", version.value, sys.argv[1])' "$1"
}

unpack_nccl() { "$python" -c '
import lzma, shutil, sys
with lzma.open(sys.argv[1]) as packed, open(sys.argv[2], "wb") as out:
    shutil.copyfileobj(packed, out)' "$1" "$2"; }

# --- Jobs ------------------------------------------------------------------------------------------------------------------

# job RANKS COMMAND...
job() {
  local ranks=$1
  shift
  "$runjob" -np "$ranks" --grace-period 20 "$@"
}
# Of two ways in which ranks share a GPU: each rank names a host of its own to NCCL.
as_hosts() {
  # shellcheck disable=SC2016
  job 2 env NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo NCCL_MNNVL_ENABLE=0 \
    bash -c 'export NCCL_HOSTID=rank$RANK; exec "$@"' rank "$@"
}
# The other one: an NCCL, from 2.30.3 on, that allows it.
as_sharers() {
  job 2 env NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS="${ctas:-4}" "$@"
}
# A job of two that ends with the status of a killed rank.
killed() {
  as_hosts "$@"
  [ $? = 137 ]
}

start_mps() {
  export CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
  nvidia-cuda-mps-control -d
}
stop_mps() {
  [ -z "${CUDA_MPS_PIPE_DIRECTORY-}" ] || echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
export -f facts nccl_version unpack_nccl job as_hosts as_sharers killed

python=${PYTHON:-python3}
bare=$here/gpu_host_time
root=
sizes=(7 1001 1000003 1000067)
copies=2000
steps=$programs/training_steps.py
if [ -x "$bare" ]; then
  export PYTHONPATH=$programs
  runjob=$scratch/site/bin/runjob
else
  root=$(cd "$here/.." && pwd)
  bare=$root/build/release/bin/gpu_host_time
  steps=$root/benchmarks/gpu/training_steps.py
  runjob=$root/build/release/bin/runjob
  export PYTHONPATH=$root/python:$programs
  [ -x "$bare" ] || { echo "$0: error: $bare is not built" >&2 && exit 2; }
fi
export python runjob
if [ $stand_ins = yes ]; then
  echo "over stand-ins of CUDA and NCCL: no GPU is checked here"
  stand_in=${root:+$root/build/release/lib/gpu_stand_in}
  stand_in=${stand_in:-${LD_LIBRARY_PATH-}}
  export LD_LIBRARY_PATH=$stand_in
  sizes=(7 1001)
  copies=20
  export RUNJOB_STAND_IN_GPUS=1
  [ -f "$stand_in/libcuda.so.1" ] || { echo "$0: error: the stand-ins are not built" >&2 && exit 2; }
fi
export RUNJOB_LOG_LEVEL=info

step "facts" 20 facts
if [ "$bare" = "$here/gpu_host_time" ]; then
  step "installing the wheel" 60 "$python" -m pip install --no-index --no-deps --ignore-installed --prefix "$scratch/site" "$here"/*.whl
  PYTHONPATH=$(dirname "$(find "$scratch/site" -type d -path '*-packages/runjob')"):$programs
  # A wheel has the library under the name that Python opens; programs ask for librunjob.so.0.
  library=$(find "$scratch/site" -name librunjob.so)
  ln -s librunjob.so "$(dirname "$library")/librunjob.so.0"
  LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$library")
  export LD_LIBRARY_PATH RUNJOB_LIBRARY=$library
fi
nccl=$(torch_nccl)
if [ $stand_ins = no ] && [ -n "$nccl" ]; then export RUNJOB_NCCL_LIBRARY=$nccl; fi
step "--check-build" 30 --with "[X] NCCL" "$runjob" --check-build
step "two ranks on the CPU" 30 job 2 "$python" -c 'import runjob.numpy as hvd; hvd.init(); assert hvd.allreduce([1.0], op=hvd.Sum)[0] == 2'
figure "rates of copies" 40 "$python" "$programs/ceilings.py"

# --- One rank --------------------------------------------------------------------------------------------------------------

staged="go through the host's memory"
step "one rank, every collective" 60 --with "checked" --without "$staged" job 1 "$python" "$programs/collectives.py" "${sizes[@]}"
figure "one rank, host time" 60 job 1 "$bare"

# --- Two ranks on one GPU --------------------------------------------------------------------------------------------------

shared=''
ways() {
  local suffix=$1
  if step "two ranks as two hosts$suffix, every collective" 40 --with "checked" --without "$staged" \
    as_hosts "$python" "$programs/collectives.py" 7 1001 && [ -z "$shared" ]; then
    shared=as_hosts
  fi
  [ -n "$cut" ] || { skip "two ranks that NCCL lets share$suffix" "there is no NCCL 2.30.3 or newer here" && return; }
  if RUNJOB_NCCL_LIBRARY=$cut step "two ranks that NCCL lets share$suffix, every collective" 40 --with "checked" --without "$staged" \
    as_sharers "$python" "$programs/collectives.py" 7 1001; then
    shared=as_sharers
  fi
}

cut=''
if [ $stand_ins = yes ]; then
  cut=$stand_in/libnccl.so.2
  export RUNJOB_STAND_IN_NCCL=23007
elif [ -f "$here/libnccl.so.2.xz" ]; then
  step "unpacking NCCL" 30 unpack_nccl "$here/libnccl.so.2.xz" "$scratch/libnccl.so.2" &&
    step "the NCCL that was brought along" 10 --with "NCCL" nccl_version "$scratch/libnccl.so.2" && cut=$scratch/libnccl.so.2
fi
if [ $stand_ins = yes ]; then
  skip "two ranks with torch.distributed alone" "PyTorch needs a GPU"
else
  step "two ranks with torch.distributed alone" 60 --with "has summed" as_hosts "$python" "$programs/torch_distributed.py"
fi
ways ""
if [ $stand_ins = yes ] || ! command -v nvidia-cuda-mps-control >/dev/null; then
  skip "two ranks under MPS" "there is no nvidia-cuda-mps-control here"
elif start_mps >>"$log" 2>&1; then
  ways " under MPS"
  [ -z "$shared" ] || RUNJOB_NCCL_LIBRARY=${cut:-${RUNJOB_NCCL_LIBRARY-}} figure "two ranks under MPS, host time" 60 "$shared" "$bare" 16777216
  [ -z "$shared" ] || [ $stand_ins = yes ] || RUNJOB_NCCL_LIBRARY=${cut:-${RUNJOB_NCCL_LIBRARY-}} LD_PRELOAD=$cut \
    figure "two ranks under MPS, training" 120 "$shared" "$python" "$steps"
  stop_mps
else
  skip "two ranks under MPS" "nvidia-cuda-mps-control -d has failed"
fi

step "two ranks through the host, every collective" 40 --with "$staged" env RUNJOB_NCCL_LIBRARY=/nowhere/libnccl.so.2 \
  "$runjob" -np 2 "$python" "$programs/collectives.py" 7 1001
figure "two ranks through the host, time" 60 env RUNJOB_NCCL_LIBRARY=/nowhere/libnccl.so.2 \
  "$runjob" -np 2 "$bare" --bare=0 67108864

# --- Failures and PyTorch --------------------------------------------------------------------------------------------------

step "a killed rank" 60 --with "work again" killed "$python" "$programs/killed_rank.py" "$scratch" $copies
if [ $stand_ins = yes ]; then
  skip "PyTorch's tensors" "PyTorch needs a GPU"
  skip "PyTorch's training" "PyTorch needs a GPU"
else
  step "PyTorch's tensors, one rank" 60 --with "checks have passed" job 1 "$python" "$programs/torch_operations.py"
  step "PyTorch's tensors, two ranks" 60 --with "checks have passed" as_hosts "$python" "$programs/torch_operations.py"
  step "PyTorch's training, one rank" 60 --with "checks have passed" job 1 "$python" "$programs/torch_training.py"
  step "PyTorch's training, two ranks" 90 --with "checks have passed" as_hosts "$python" "$programs/torch_training.py"
fi

# --- Tables ----------------------------------------------------------------------------------------------------------------

{
  printf '| step | outcome | seconds | |\n|---|---|---:|---|\n'
  awk -F'\t' '{printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4}' "$folder/steps.tsv"
  if [ -s "$folder/figures.tsv" ]; then
    printf '\n| step | figure | value | unit |\n|---|---|---:|---|\n'
    awk -F'\t' '{printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4}' "$folder/figures.tsv"
  fi
} >"$folder/tables.md"
[ ! -s "$folder/figures.tsv" ] || sed -n '/figure/,$p' "$folder/tables.md"
echo "$passed passed${failed[0]:+, ${#failed[@]} failed}${skipped[0]:+, ${#skipped[@]} skipped}, in $SECONDS s; see $folder"
[ ${#failed[@]} = 0 ]
