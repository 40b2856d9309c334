#!/usr/bin/env bash
# Builds Horovod 0.28.1, without GPU, as a peer for the benchmarks: into an environment of its own, whose interpreter it prints.
# Its last release does not build beside today's frameworks; what is changed for that is below. Takes about ten minutes on two cores.
#
#   benchmarks/horovod.sh [torch | tensorflow] [VERSION]
#
# VERSION: the framework's; without it PyTorch's newest that installs beside the setuptools that Horovod needs, or TensorFlow 2.13.1.
# Needs a C++ compiler, Open MPI with its headers (Debian: openmpi-bin, libopenmpi-dev) and pip's package index.
set -euo pipefail
framework=${1:-torch} version=${2:-}
case $framework in
  torch) with=PYTORCH without=TENSORFLOW standard=20 ;;  # the C++ that its headers want
  tensorflow) with=TENSORFLOW without=PYTORCH standard=17 version=${version:-2.13.1} ;;
  *) echo "$0: error: $framework is not torch or tensorflow" >&2; exit 2 ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/runjob/benchmarks/horovod-$framework
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$folder"
export PATH=$folder/bin:$PATH
pip install --quiet "setuptools<70" wheel "cmake<3.27" packaging pyyaml psutil cloudpickle numpy scikit-learn "$framework${version:+==$version}"
pip download --quiet --no-binary :all: --no-deps --no-build-isolation horovod==0.28.1 -d "$work"
tar -xf "$work/horovod-0.28.1.tar.gz" -C "$work"
cd "$work/horovod-0.28.1"

sed -i "s/CMAKE_CXX_STANDARD 1[47]/CMAKE_CXX_STANDARD $standard/" CMakeLists.txt horovod/*/CMakeLists.txt
# A CUDA compiler is not looked for, and PyTorch counts as one without.
sed -i -e 's/^check_language(CUDA)$//' -e 's/^if(NOT CMAKE_CUDA_COMPILER)$/if(FALSE)/' CMakeLists.txt
sed -i 's/print(True if ((torch.version.cuda[^)]*) and (CUDA_HOME[^)]*)) else False)/print(False)/' cmake/Modules/FindPytorch.cmake

export "HOROVOD_WITH_$with=1" "HOROVOD_WITHOUT_$without=1" HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1 MAKEFLAGS=-j2
pip install --no-build-isolation .
cd /
python -c "import horovod.$framework"
echo "$folder/bin/python"
