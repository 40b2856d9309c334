#!/usr/bin/env bash
# Makes the files of a release from the last commit: both wheels, their checksums in SHA256SUMS, and a signature of these. Each wheel is
# built twice, in a fresh folder and without the compiler cache, and must have the same bytes both times.
#
#   packaging/release.sh [--no-packages] --key TOOL:FILE FOLDER
#
#   --key TOOL:FILE   sign with the secret key FILE of TOOL, which is minisign or signify; either asks for its password
#   --no-packages     do not install system packages; they are there
#   FOLDER            for the results; it must be empty or absent
#
# SECURITY.md tells users how to check the results. The tools that build come from packaging/locks/release.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR/..
source packaging/steps.sh
source packaging/packages.sh
source packaging/python.sh

packages=yes key='' folder=''
while [ $# -gt 0 ]; do
  case "$1" in
    --no-packages) packages=no ;;
    --key) [ $# -gt 1 ] || fail "--key needs a value, such as minisign:FILE"; key=$2; shift ;;
    -*) fail "unknown option $1; there are --key and --no-packages" ;;
    *) [ -z "$folder" ] || fail "one folder for the results, not '$folder' and '$1'"; folder=$1 ;;
  esac
  shift
done

# The program of a tool: Debian calls signify otherwise, since it has another program of that name.
program_of() {
  case "$1" in
    minisign) echo minisign ;;
    signify) command -v signify-openbsd || echo signify ;;
    *) fail "the tool of --key is minisign or signify, not '$1'" ;;
  esac
}

check_arguments() {
  [ -n "$folder" ] || fail "where do the results go? packaging/release.sh --key TOOL:FILE FOLDER"
  [ -n "$key" ] || fail "a release is signed: --key minisign:FILE or --key signify:FILE"
  signer=$(program_of "${key%%:*}")
  key_file=${key#*:}
  [ -f "$key_file" ] || fail "there is no key $key_file; '${key%%:*} -G' makes one"
  command -v "$signer" >/dev/null || fail "$signer is not installed; on Debian and Ubuntu: apt-get install minisign signify-openbsd"
  [ -z "$(ls -A "$folder" 2>/dev/null)" ] || fail "$folder is not empty"
  local changed
  changed=$(git status --porcelain | head -n 5)
  [ -z "$changed" ] || fail "a release is made of a commit, and these files differ from it:
$changed"
}

# build_once FOLDER: both wheels of the last commit. The sources always lie in the same folder, since its name is in the programs.
build_once() {
  rm -rf build/release-tree
  mkdir -p build/release-tree "$1"
  git archive HEAD | tar -x -C build/release-tree
  local tools=$PWD/build/release-tools wheels
  wheels=$(realpath "$1")
  (cd build/release-tree && CCACHE_DISABLE=1 PATH="$tools/bin:$PATH" SOURCE_DATE_EPOCH=$(git -C ../.. log -1 --format=%ct) \
    "$tools/bin/python" -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$wheels" . ./python/horovod)
}

make_tools() {
  rm -rf build/release-tools
  python3 -m venv build/release-tools
  # shellcheck disable=SC2086
  install_locked build/release-tools/bin/python release $RELEASE_REQUIREMENTS
}

# compare FOLDER FOLDER
compare() {
  local wheel
  for wheel in "$1"/*.whl; do
    cmp "$wheel" "$2/${wheel##*/}" || fail "two builds of ${wheel##*/} differ"
  done
}

# sign FOLDER: SHA256SUMS of its wheels, and the signature.
sign() {
  (cd "$1" && sha256sum -- *.whl >SHA256SUMS)
  case "${key%%:*}" in
    minisign) "$signer" -S -s "$key_file" -m "$1/SHA256SUMS" -t "runjob, commit $(git rev-parse HEAD)" ;;
    signify) "$signer" -S -s "$key_file" -m "$1/SHA256SUMS" -x "$1/SHA256SUMS.sig" ;;
  esac
}

check_arguments
[ $packages = no ] || install_packages "$BUILD_PACKAGES"
step "installing the tools that build" make_tools
step "building the wheels" build_once build/release-wheels/1
step "building them once more" build_once build/release-wheels/2
compare build/release-wheels/1 build/release-wheels/2
mkdir -p "$folder"
cp build/release-wheels/1/*.whl "$folder"
sign "$folder"
rm -rf build/release-tree build/release-wheels
say "the release is in $folder:"
(cd "$folder" && ls)
