# shellcheck shell=bash
# Progress in plain lines: what is being done, how long it took, and the log's end when it failed. Sourced; the
# caller's working directory is the root of the source tree.

readonly LOG_FOLDER=build/log

say() { echo "== $*"; }

fail() {
  echo "$0: error: $*" >&2
  exit 1
}

# file_name NAME: what NAME is called as a file, at most 100 characters long: file systems allow 255 bytes.
file_name() { echo "$1" | tr -cs 'a-zA-Z0-9.\n' - | cut -c 1-100; }

# step NAME COMMAND...: runs COMMAND with its output in a log file. Ends the script when it fails.
step() {
  local name=$1 log started=$SECONDS status=0
  shift
  log="$LOG_FOLDER/$(file_name "$name").log"
  mkdir -p "$LOG_FOLDER"
  say "$name"
  tell_time &
  ticker=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_telling
  [ $status = 0 ] || fail "'$name' failed with status $status; the end of $log:
$(tail -n 40 "$log")"
  echo "   done in $((SECONDS - started)) s"
}

# A line every half minute, so that a long step does not look stuck.
tell_time() {
  local started=$SECONDS
  while sleep 30 >/dev/null 2>&1; do echo "   $((SECONDS - started)) s so far"; done
}

ticker=
stop_telling() {
  [ -z "$ticker" ] || { kill "$ticker" && wait "$ticker"; } 2>/dev/null || true
  ticker=
}
trap stop_telling EXIT
trap 'echo "$0: interrupted" >&2; exit 130' INT  # when the program that runs has ended

# How many compilers run at once: one per core, but no more than memory allows at 2 GB each.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# Compiler results are kept outside the source tree, so that a new clone finds them. ccache reuses results with precompiled headers only
# when it may ignore macros and times that such a header hides; none of ours depends on them. It remembers a file's hash by its inode.
use_compiler_cache() {
  export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/runjob/ccache}
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-2G}
  # ccache tells g++ from c++. CMake calls the second one by itself, and pip the one with which Python was built.
  export CC=${CC:-cc} CXX=${CXX:-c++}
}

configure() { step "configuring $1" cmake --preset "$1"; }

# build PRESET [TARGET...]
build() {
  configure "$1"
  compile "$@"
}

# compile PRESET [TARGET...]: as build(), when CMake has configured the preset.
compile() {
  local preset=$1
  shift
  step "building $preset" cmake --build --preset "$preset" -j "$(build_jobs)" ${1:+--target "$@"}
}
