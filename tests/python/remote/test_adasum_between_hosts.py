"""op=Adasum of two ranks on each of two hosts: beside a tree in float64, in all frameworks, with the same bits on all ranks, whether a
tensor is reduced alone or in a group."""

import sys

import pytest
from remote_jobs import ROOT, run
from testbed import Testbed

VARIABLES = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/python'}", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}

RANK = """
import hashlib, sys
import numpy
from adasum_tree import KINDS, error, inputs, tree

framework = sys.argv[1]
if framework == "numpy":
    import runjob.numpy as hvd
    made, read = numpy.asarray, numpy.asarray
elif framework == "torch":
    import torch, runjob.torch as hvd
    made, read = torch.from_numpy, lambda tensor: tensor.numpy()
else:
    import tensorflow as tf, runjob.tensorflow as hvd
    made, read = tf.constant, lambda tensor: tensor.numpy()

hvd.init()
digest = hashlib.sha256()
for dtype in (numpy.float16, numpy.float32, numpy.float64):
    limits = numpy.finfo(dtype)
    for kind in KINDS:
        for count in (3, 1003, 60001):
            arrays = [array.astype(dtype) for array in inputs(kind, hvd.size(), float(limits.tiny), float(limits.max), count)]
            own = made(arrays[hvd.rank()])
            alone = read(hvd.allreduce(own, op=hvd.Adasum))
            found = error(alone, tree(arrays)) / float(limits.eps)
            assert found < 100, (dtype, kind, count, found)
            others = [made(numpy.ones(n, dtype)) for n in (5, 30011)]
            group = hvd.grouped_allreduce([others[0], own, others[1]], op=hvd.Adasum)
            assert read(group[1]).tobytes() == alone.tobytes(), (dtype, kind, count)
            digest.update(alone.tobytes())
many = hvd.grouped_allreduce([made(numpy.full(3, 1.0 + hvd.rank() * each)) for each in range(1000)], op=hvd.Adasum)
last = hvd.allreduce(made(numpy.full(3, 1.0 + hvd.rank() * 999)), op=hvd.Adasum)
assert read(many[999]).tobytes() == read(last).tobytes()
bad = numpy.ones(9)
bad[hvd.rank()] = numpy.nan if hvd.rank() == 2 else 1
assert numpy.isnan(read(hvd.allreduce(made(bad), op=hvd.Adasum))).all()
print("digest", digest.hexdigest(), flush=True)
"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


@pytest.mark.parametrize("framework", ["numpy", "torch", "tensorflow"])
def test_it_is_the_tree_with_the_same_bits_alone_and_in_a_group(bed, framework):
    # tests/python/tensorflow and tests/python/torch are packages of these names for Python, but have no such parts.
    if framework != "numpy":
        pytest.importorskip({"torch": "torch.nn", "tensorflow": "tensorflow.python"}[framework])
    done = run(bed, "-H", "s1:2,s2:2", sys.executable, "-c", RANK, framework, variables=VARIABLES)
    assert done.returncode == 0, done.stderr
    digests = [line.split()[-1] for line in done.stdout.splitlines() if "digest" in line]
    assert len(digests) == 4 and len(set(digests)) == 1
