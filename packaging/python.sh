# shellcheck shell=bash
# Chooses the Python environment, completes it, and installs runjob into it. Sourced after steps.sh and packages.sh; use_compiler_cache comes
# first. Result: `python`, the interpreter's path.

python=

# missing_modules PYTHON MODULES: what pip would have to install so that all of them import. Keras imports its backend, which is PyTorch here.
missing_modules() {
  KERAS_BACKEND=torch "$1" - "$2" <<'PYTHON'
import importlib, sys

for module in sys.argv[1].split():
    name, distribution = module.split("=")
    try:
        importlib.import_module(name)
    except Exception:
        print(distribution)
PYTHON
}

has_modules() {
  local missing
  command -v "$1" >/dev/null && missing=$(missing_modules "$1" "$2") && [ -z "$missing" ]
}

# Whether pip may install there: not where the system's package manager rules (PEP 668), nor without the right.
may_install_into() {
  "$1" - <<'PYTHON'
import os, sys, sysconfig

in_virtual_environment = sys.prefix != sys.base_prefix
managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
writable = os.access(sysconfig.get_path("purelib"), os.W_OK)
sys.exit(not (writable and (in_virtual_environment or not managed)))
PYTHON
}

# use_environment_of_user MODULES: an active environment, or python3, when all is there already. Else status 1.
use_environment_of_user() {
  local candidate
  for candidate in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python"} ${CONDA_PREFIX:+"$CONDA_PREFIX/bin/python"} python3; do
    if has_modules "$candidate" "$1" && may_install_into "$candidate"; then
      python=$("$candidate" -c 'import sys; print(sys.executable)')
      say "Python: $python has PyTorch and scikit-learn already; using it"
      return
    fi
  done
  return 1
}

# install_locked PYTHON LOCK REQUIREMENT...: installs what packaging/locks/LOCK.txt lists into PYTHON's environment, and takes no file with
# another hash. PYTHON may be of another version than the one that the lock is for: then it installs the newest of the requirements.
install_locked() {
  local into=$1 lock=packaging/locks/$2.txt
  shift 2
  if [ "$(sed -n '1s/^# CPython \([0-9.]*\);.*/\1/p' "$lock")" = "$("$into" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]; then
    "$into" -m pip install --require-hashes -r "$lock"
  else
    echo "$lock is for another Python than $("$into" --version): installing the newest versions, without hashes"
    "$into" -m pip install "$@"
  fi
}

# use_own_environment [--with-runjob] [--lock LOCK] MODULES: .venv, made and completed as far as that is needed. With the first option runjob
# is built meanwhile, with the second one the versions are those of install_locked().
use_own_environment() {
  local missing with_runjob=no lock=
  [ "$1" != --with-runjob ] || { with_runjob=yes && shift; }
  [ "$1" != --lock ] || { lock=$2 && shift 2; }
  python=$PWD/.venv/bin/python
  if ! [ -x "$python" ]; then
    local options=()
    [ -z "$lock" ] && has_modules python3 "$EXAMPLE_MODULES" && options=(--system-site-packages)  # they need no second download
    step "making the Python environment .venv" python3 -m venv --clear "${options[@]}" .venv
  fi
  missing=$(missing_modules "$python" "$1" | xargs)
  if [ -z "$missing" ]; then
    say "Python: .venv has all it needs"
    return
  fi
  [ $with_runjob = no ] || begin_building_runjob
  local install=("$python" -m pip install)
  [ -z "$lock" ] || install=(install_locked "$python" "$lock")
  # shellcheck disable=SC2086
  step "installing into .venv: $missing (PyTorch comes with its GPU libraries, 3 GB: this can take minutes)" "${install[@]}" $missing
}

scripts_folder() { "$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'; }

# is_runjob_installed SOURCES: whether both distributions are installed in `python`'s environment from these.
is_runjob_installed() {
  [ "$(cat "$(stamp_of_python)" 2>/dev/null)" = "$1" ] && "$python" -c 'import runjob, horovod' 2>/dev/null
}

stamp_of_python() { echo "build/installed.$(echo "$python" | cksum | cut -d ' ' -f 1)"; }

building=       # the process that builds both distributions
built_sources=  # what it builds them from

# Begins to build both distributions, unless they are installed or are being built: the compilers work while pip waits for the network.
begin_building_runjob() {
  [ -z "$building" ] || return 0
  built_sources=$(sources_fingerprint)
  ! is_runjob_installed "$built_sources" || return 0
  mkdir -p "$LOG_FOLDER"
  rm -rf build/wheels
  set -m  # a process group of its own, for stop_building()
  "$python" -m pip wheel --no-deps -w build/wheels . ./python/horovod >"$LOG_FOLDER/wheels.log" 2>&1 </dev/null &
  building=$!
  set +m
}

finish_building_runjob() {
  local status=0
  wait "$building" || status=$?
  building=
  cat "$LOG_FOLDER/wheels.log"
  return $status
}

# Ends the compilers with the script. Not with a process of it, which may run the trap when it is killed as it begins.
stop_building() {
  [ -z "$building" ] || [ "$BASHPID" != $$ ] || { kill -- "-$building" && wait "$building"; } 2>/dev/null || true
}
trap 'stop_telling; stop_building' EXIT

# Builds both distributions and installs them into `python`'s environment, unless that was done with these sources.
install_runjob() {
  begin_building_runjob
  if [ -z "$building" ]; then
    say "runjob: installed from these sources already"
    return
  fi
  step "building runjob" finish_building_runjob
  step "installing runjob with pip" install_wheels
  echo "$built_sources" >"$(stamp_of_python)"
}

# Also over the same version, as it is not the same build; and what they need, if it is not there.
install_wheels() {
  "$python" -m pip install --no-deps --force-reinstall build/wheels/*.whl && "$python" -m pip install build/wheels/*.whl
}

# Changes whenever a file that goes into the distributions does.
sources_fingerprint() {
  find pyproject.toml CMakeLists.txt packaging/wheel_backend.py packaging/carry_gloo.py cmake base hostfile rendezvous sealed launcher runtime bindings cli python \
    -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 cksum | cksum
}
