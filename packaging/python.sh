# shellcheck shell=bash
# Chooses the Python environment, completes it, and installs runjob into it. Sourced after steps.sh and packages.sh.
# Result: `python`, the interpreter's path.

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

# use_own_environment MODULES: .venv, made and completed as far as that is needed.
use_own_environment() {
  local missing
  python=$PWD/.venv/bin/python
  if ! [ -x "$python" ]; then
    local options=()
    has_modules python3 "$EXAMPLE_MODULES" && options=(--system-site-packages)  # they need no second download
    step "making the Python environment .venv" python3 -m venv --clear "${options[@]}" .venv
  fi
  missing=$(missing_modules "$python" "$1" | xargs)
  if [ -z "$missing" ]; then
    say "Python: .venv has all it needs"
    return
  fi
  # shellcheck disable=SC2086
  step "installing into .venv: $missing (PyTorch comes with its GPU libraries, 3 GB: this can take minutes)" \
    "$python" -m pip install $missing
}

scripts_folder() { "$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'; }

# Builds both distributions and installs them into `python`'s environment, unless that was done with these sources.
install_runjob() {
  local stamp sources
  stamp=build/installed.$(echo "$python" | cksum | cut -d ' ' -f 1)
  sources=$(sources_fingerprint)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$sources" ] && "$python" -c 'import runjob, horovod' 2>/dev/null; then
    say "runjob: installed from these sources already"
    return
  fi
  step "building runjob and installing it with pip" "$python" -m pip install . ./python/horovod
  echo "$sources" >"$stamp"
}

# Changes whenever a file that goes into the distributions does.
sources_fingerprint() {
  find pyproject.toml CMakeLists.txt packaging/wheel_backend.py packaging/carry_gloo.py cmake base hostfile rendezvous sealed launcher runtime bindings cli python \
    -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 cksum | cksum
}
