"""PyTorch's own ways to train on several ranks, over a group of runjob's: the model equals the one that Gloo gives."""

import torch
import torch.distributed as dist
from both_backends import over
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def trained(wrap, steps=5):
    """The parameters after some steps on data that differ between the ranks."""
    wrapped = wrap(model())
    optimizer = torch.optim.SGD(wrapped.parameters(), 0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        optimizer.zero_grad()
        inputs = torch.randn(6, 8, generator=generator)
        torch.nn.functional.mse_loss(wrapped(inputs), inputs[:, :4]).backward()
        optimizer.step()
    parameters = [parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter for parameter in wrapped.parameters()]
    return [parameter.detach().clone() for parameter in parameters]


def compare(wrap):
    gloo, ours = over("gloo", trained, wrap), over("runjob", trained, wrap)
    return max(float((one - other).abs().max()) for one, other in zip(gloo, ours))


def compare_ddp():
    return compare(DistributedDataParallel)


def compare_small_buckets():
    return compare(lambda module: DistributedDataParallel(module, bucket_cap_mb=0.0001, gradient_as_bucket_view=True))


def compare_fsdp2():
    return compare(fully_shard)


def test_ddp(call_ranks):
    assert call_ranks(compare_ddp, 2) == [0.0] * 2


def test_ddp_with_many_buckets(call_ranks):
    assert call_ranks(compare_small_buckets, 2) == [0.0] * 2


def test_fsdp2(call_ranks):
    assert call_ranks(compare_fsdp2, 2) == [0.0] * 2
