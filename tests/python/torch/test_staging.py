"""python/runjob/torch/staging.py, on a GPU where there is one. Everywhere else the CPU plays the far device: what is copied, and where to, is
the same, and the collectives are real."""

import pytest
import torch

import runjob.torch as hvd
from runjob.torch import staging

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def _begin(device):
    if device == "cpu":
        staging.is_far = lambda value: isinstance(value, torch.Tensor)
    hvd.init()


def _every_operation(device):
    _begin(device)
    rank = hvd.rank()
    given = torch.arange(6.0, device=device).view(2, 3).t() + rank  # not in one piece
    before = given.clone()
    in_place = torch.full((4,), float(rank), device=device)
    leaf = torch.full((2,), 1.0 + rank, device=device, requires_grad=True)
    hvd.allreduce(leaf * 2, op=hvd.Sum).sum().backward()
    group = [torch.full((n,), float(rank + n), device=device) for n in (1, 3)]
    rows, received = hvd.alltoall(given, [1, 2])
    results = {
        "allreduce": hvd.allreduce(given, op=hvd.Sum),
        "in place": hvd.allreduce_(in_place, op=hvd.Sum),
        "half": hvd.allreduce(given, op=hvd.Sum, compression=hvd.Compression.fp16),
        "later": hvd.synchronize(hvd.allreduce_async(given, op=hvd.Max)),
        "allgather": hvd.allgather(given[: rank + 1]),
        "broadcast": hvd.broadcast(given, 1),
        "alltoall": rows,
        "reducescatter": hvd.reducescatter(given, op=hvd.Sum),
        "group": hvd.grouped_allreduce(group, op=hvd.Sum)[1],
        "gathered group": hvd.grouped_allgather(group)[0],
        "scattered group": hvd.grouped_reducescatter([given, given * 2], op=hvd.Sum)[1],
        "gradient": leaf.grad,
        "sparse": hvd.sparse_allreduce_async(torch.eye(2, device=device).to_sparse(), "s", hvd.Sum)().to_dense(),
    }
    hvd.grouped_allreduce_(group, op=hvd.Sum)
    hvd.broadcast_(in_place, 0)
    results["group in place"] = group[0]
    devices = {result.device.type for result in results.values()}
    is_unchanged = torch.equal(given, before)
    found = {name: result.tolist() for name, result in results.items()}
    hvd.shutdown()
    return found, devices, is_unchanged, results["in place"] is in_place, received.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_every_operation(call_ranks, device):
    given = [torch.arange(6.0).view(2, 3).t() + rank for rank in range(2)]
    both = given[0] + given[1]
    for rank, (found, devices, is_unchanged, is_same, received) in enumerate(call_ranks(_every_operation, 2, device)):
        assert found == {
            "allreduce": both.tolist(), "in place": [1.0] * 4, "half": both.tolist(), "later": given[1].tolist(),
            "allgather": torch.cat([given[0][:1], given[1][:2]]).tolist(), "broadcast": given[1].tolist(),
            "alltoall": torch.cat([each[:1] if rank == 0 else each[1:] for each in given]).tolist(),
            "reducescatter": (both[:2] if rank == 0 else both[2:]).tolist(), "group": [7.0] * 3, "gathered group": [1.0, 2.0],
            "scattered group": (2 * (both[:2] if rank == 0 else both[2:])).tolist(), "gradient": [4.0, 4.0],
            "sparse": [[2.0, 0.0], [0.0, 2.0]], "group in place": [3.0],
        }  # fmt: skip
        assert (devices, is_unchanged, is_same, received) == ({device}, True, True, [1, 1] if rank == 0 else [2, 2])


def _training(device, compression):
    _begin(device)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(device)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), compression=getattr(hvd.Compression, compression)
    )
    data = torch.linspace(-1, 1, 32, device=device).view(8, 4)[hvd.rank() :: hvd.size()]
    for _ in range(3):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    return [parameter.tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("compression, tolerance", [("none", 1e-6), ("fp16", 1e-3)])
@pytest.mark.parametrize("device", DEVICES)
def test_training_is_that_of_one_process(call_ranks, device, compression, tolerance):
    alone, *_ = call_ranks(_training, 1, device, "none")
    for weights in call_ranks(_training, 2, device, compression):
        for ours, theirs in zip(weights, alone):
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=tolerance, atol=tolerance)


def _refusals(device):
    _begin(device)
    tensor = torch.ones(3, device=device)
    texts = []
    for refused in (
        lambda: hvd.allreduce(torch.ones(2, device=device).to(torch.complex64)),
        lambda: hvd.allreduce(torch.eye(2, device=device).to_sparse()),
        lambda: hvd.grouped_allreduce_([tensor, tensor]),
        lambda: hvd.allgather(torch.tensor(1.0, device=device)),
    ):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            refused()
        texts.append(str(caught.value))
    return texts


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_refused_on_the_cpu_is_refused(call_ranks, device):
    for dtype, layout, twice, scalar in call_ranks(_refusals, 2, device):
        assert "does not take torch.complex64" in dtype
        assert "sparse tensor" in layout
        assert "one tensor twice" in twice
        assert "allgather" in scalar
