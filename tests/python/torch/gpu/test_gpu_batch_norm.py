"""python/runjob/torch/gpu_batch_norm.py: all that SyncBatchNorm promises, with tensors of the CPU in the part of a GPU's and stand-ins of
CUDA, of NCCL and of PyTorch's kernels. On a GPU packaging/gpu_check/torch_training.py checks it.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import stand_in_gpu

FOLDER = pathlib.Path(__file__).parent
SUITE = FOLDER.parent / "test_sync_batch_norm.py"


@pytest.mark.skipif(not stand_in_gpu.is_built(), reason="the stand-ins of CUDA and NCCL are not built")
def test_the_suite_of_sync_batch_norm_over_stand_ins():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE)], capture_output=True, text=True,
        env={**os.environ, stand_in_gpu.VARIABLE: str(FOLDER)}, timeout=540, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"\d+ passed", done.stdout)
