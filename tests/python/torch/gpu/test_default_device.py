"""A program that has changed PyTorch's default device: the library's own tensors lie where it needs them all the same. The device is
"meta", whose tensors have no values, so that a tensor that went there is found.
"""

import pytest
import torch
from torch import nn

import runjob.torch as hvd


@pytest.fixture(autouse=True)
def _cpu_again():
    yield
    torch.set_default_device("cpu")


def _on_cpu(values):
    return torch.tensor(values, device="cpu")


def _training():
    model = nn.Linear(3, 1, device="cpu")
    nn.init.constant_(model.weight, 1.0 + hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9), model.named_parameters())

    def closure():
        optimizer.zero_grad()
        model(_on_cpu([[1.0, 2.0, 3.0 * hvd.rank()]])).sum().backward()
        return float(hvd.rank())

    loss = optimizer.step(closure)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    state = hvd.elastic.TorchState(model, optimizer, batch=0)
    state.commit()
    with torch.no_grad():
        model.weight.zero_()
    state.restore()
    return loss, model.weight.tolist()


def _gradients():
    given = torch.ones(2, 2, device="cpu", requires_grad=True)
    hvd.allgather(given).sum().backward()
    hvd.grouped_allgather([given])[0].sum().backward()
    return given.grad.tolist()


def _normalized():
    layer = hvd.SyncBatchNorm(2, device="cpu")
    batch = torch.ones(0, 2, device="cpu") if hvd.rank() == 0 else _on_cpu([[1.0, 2.0], [3.0, 6.0]])
    layer(batch)
    return layer.running_mean.tolist()


def _everything():
    hvd.init()
    torch.set_default_device("meta")
    try:
        rows, received = hvd.alltoall(_on_cpu([1.0, 2.0]), [1, 1])
        return {
            "training": _training(),
            "gradients": _gradients(),
            "normalized": _normalized(),
            "object": hvd.broadcast_object({"rank": hvd.rank()}, root_rank=1),
            "objects": hvd.allgather_object(hvd.rank()),
            "alltoall": (rows.tolist(), received.tolist()),
            "symmetric": hvd.empty_symmetric(2).fill_(3.0).tolist(),
        }
    finally:
        torch.set_default_device("cpu")


def test_the_librarys_own_tensors_have_values(call_ranks):
    for rank, found in enumerate(call_ranks(_everything, 2)):
        assert found == {
            "training": (0.5, [[0.0, -1.0, -0.5]]),
            "gradients": [[2.0, 2.0]] * 2,
            "normalized": pytest.approx([0.2, 0.4]),
            "object": {"rank": 1},
            "objects": [0, 1],
            "alltoall": ([1.0 + rank] * 2, [1, 1]),
            "symmetric": [3.0, 3.0],
        }
