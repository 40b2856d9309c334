"""python/runjob/torch/tensors.py: what is handed to the library."""

from runjob.dtypes import NUMBERS
from runjob.torch import tensors


def test_every_dtype_of_the_library_is_one_of_pytorch():
    assert {str(dtype).removeprefix("torch."): number for dtype, number in tensors.DTYPES.items()} == NUMBERS
