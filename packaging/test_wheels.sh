#!/usr/bin/env bash
# The wheels where a user installs them: on two releases of Debian that hold Python and no compiler, beside an old PyTorch and the newest
# one, in environments made for it. Builds the wheels, and ends with a job of two ranks that trains, through shared memory and through TCP.
#
#   sudo packaging/test_wheels.sh [--no-packages]
#
# The releases come from the mirror that this system's apt uses, and PyTorch from pip's index (6 GB to download the first time); both are kept in
# ${XDG_CACHE_HOME:-$HOME/.cache}/runjob/roots, 15 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh

# Release, then what pip installs. PyTorch 2.1 was built for NumPy 1.
readonly CASES=("bookworm torch==2.1.2 numpy<2" "trixie torch numpy")
readonly ROOTS=${XDG_CACHE_HOME:-$HOME/.cache}/runjob/roots
readonly WHEELS=$PWD/build/wheels

# in_root ROOT COMMAND...: there, with the network's names and certificates of this system, and processes and mounts of its own.
in_root() {
  local root=$1
  shift
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 && shift
    mount --make-rprivate /
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/tmp"
    mkdir -p "$root/etc/ssl/certs" "$root/wheels"
    touch "$root/etc/resolv.conf"
    mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
    mount --bind /etc/resolv.conf "$root/etc/resolv.conf"
    mount --bind "$0" "$root/wheels"
    exec chroot "$root" env PATH=/opt/fresh/bin:/usr/bin:/bin "$@"' "$WHEELS" "$root" "$@"
}

# The mirror of Debian's archive that apt uses.
# shellcheck disable=SC2016  # apt-get fills $(SITE) in
mirror() { apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -n 1; }

# make_root RELEASE: a system of what it cannot do without, and Python. Complete, or not there.
make_root() {
  local root=$ROOTS/debian-$1
  [ ! -d "$root" ] || return 0
  [ -n "$(mirror)" ] || fail "apt on this system knows no mirror of Debian, where $1 would come from"
  rm -rf "$root.part"
  mkdir -p "$ROOTS"
  step "making a Debian $1 with Python" debootstrap --variant=minbase --include=python3,python3-venv "$1" "$root.part" "$(mirror)"
  mv "$root.part" "$root"
}

# install_torch ROOT REQUIREMENTS...: into an environment of its own, which is kept; its path is in `environment`.
install_torch() {
  local root=$1
  shift
  environment=/opt/$(echo "$@" | tr -cs 'a-z0-9.\n' -)
  [ ! -e "$root$environment/complete" ] || return 0
  in_root "$root" /usr/bin/python3 -m venv --clear "$environment"
  step "installing $* there" in_root "$root" "$environment/bin/pip" install --no-cache-dir "$@"
  touch "$root$environment/complete"
}

# What is run in the root: a fresh environment that sees PyTorch, and the wheels in it.
# shellcheck disable=SC2016
readonly INSTALL='
set -eu
for compiler in cc c++ gcc g++ clang clang++; do
  ! command -v $compiler || { echo "there is a compiler: $compiler"; exit 1; }
done
/usr/bin/python3 -m venv --clear /opt/fresh
echo "$1"/lib/python3.*/site-packages >"$(echo /opt/fresh/lib/python3.*/site-packages)/torch.pth"
/opt/fresh/bin/pip install --no-index --no-deps /wheels/*.whl'

# job NAME ROOT VARIABLE: two ranks train; each must say so.
job() {
  local log
  log="$LOG_FOLDER/$(file_name "$1").log"
  say "$1"
  in_root "$2" env "$3" OMP_NUM_THREADS=1 runjob -np 2 python /wheels/train_step.py 2>&1 | tee "$log"
  [ "$(grep -c 'as in one process' "$log")" = 2 ] || fail "$1: a rank did not train"
}

case "${1:-}" in
  "") install_packages "$BUILD_PACKAGES debootstrap" ;;
  --no-packages) ;;
  *) fail "unknown option $1; there is only --no-packages" ;;
esac
[ "$(id -u)" = 0 ] || fail "chroot and debootstrap need root"
use_compiler_cache
rm -rf "$WHEELS"
step "building the wheels" python3 -m pip wheel --no-deps -w "$WHEELS" . ./python/horovod
(cd "$WHEELS" && printf '   %s\n' *.whl)
cp tests/python/wheel/train_step.py "$WHEELS"

for each in "${CASES[@]}"; do
  read -ra words <<<"$each"
  root=$ROOTS/debian-${words[0]}
  make_root "${words[0]}"
  install_torch "$root" "${words[@]:1}"
  step "installing the wheels on Debian ${words[0]} beside ${words[1]}" in_root "$root" sh -c "$INSTALL" sh "$environment"
  in_root "$root" runjob --check-build | tee "$LOG_FOLDER/check-build.log"
  [ "$(grep -cF -e '[X] PyTorch' -e '[X] Gloo' "$LOG_FOLDER/check-build.log")" = 3 ] || fail "PyTorch or Gloo is not found there"
  job "two ranks on Debian ${words[0]} through shared memory" "$root" RUNJOB_SHARED_MEMORY=1
  job "two ranks on Debian ${words[0]} through TCP" "$root" RUNJOB_SHARED_MEMORY=0
done
say "all passed"
