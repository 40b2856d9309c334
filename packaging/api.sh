#!/usr/bin/env bash
# The API reference as HTML, made from the docstrings by pdoc (pip install pdoc): packaging/api.sh [FOLDER]. PYTHON names the
# interpreter that has pdoc, PyTorch and NumPy.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH=$root/python exec "${PYTHON:-python3}" -m pdoc --no-show-source --template-directory "$root/packaging/api" \
  --output-directory "${1:-$root/build/api}" runjob runjob.torch runjob.numpy runjob.exceptions
