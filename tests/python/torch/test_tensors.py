"""python/runjob/torch/tensors.py: what is handed to the library."""

import re

import torch
from ranks import ROOT

from runjob.torch import tensors


def test_dtypes_are_numbered_as_in_the_header():
    header = (ROOT / "runtime" / "include" / "runjob" / "runjob.h").read_text()
    block = header[header.index("typedef enum runjob_dtype") : header.index("} runjob_dtype")]
    numbers = {name.lower(): int(value) for name, value in re.findall(r"RUNJOB_(\w+) = (\d+)", block)}
    assert {str(dtype).removeprefix("torch."): number for dtype, number in tensors.DTYPES.items()} == numbers
