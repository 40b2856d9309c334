#!/usr/bin/env bash
# The API reference as HTML, made from the docstrings by pdoc (pip install pdoc): packaging/api.sh [FOLDER]. PYTHON names the
# interpreter that has pdoc, PyTorch and NumPy.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# pdoc sees what is in a module, and some names come into it when they are asked for.
with_lazy_names='
import pdoc.__main__, runjob
for name in runjob.__all__:
    getattr(runjob, name)
pdoc.__main__.cli()'
PYTHONPATH=$root/python exec "${PYTHON:-python3}" -c "$with_lazy_names" --no-show-source --template-directory "$root/packaging/api" \
  --output-directory "${1:-$root/build/api}" runjob runjob.torch runjob.numpy runjob.elastic runjob.exceptions
