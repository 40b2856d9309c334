"""The dtypes of the C interface: the numbers of runjob_dtype in runjob.h, by the name that NumPy and PyTorch use too."""

from __future__ import annotations

NUMBERS = {
    "uint8": 0,
    "int8": 1,
    "uint16": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bool": 9,
    "bfloat16": 10,
}
#: The names by number.
NAMES = {number: name for name, number in NUMBERS.items()}
