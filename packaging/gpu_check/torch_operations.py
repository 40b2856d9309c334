"""PyTorch's collectives on CUDA tensors, against PyTorch on the CPU, and a model that trains. A rank of a job."""

import os

import torch

import runjob.torch as hvd

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]

checked = 0


def check(what, found, expected):
    global checked
    if not found.is_cuda or not torch.equal(found.cpu(), expected):
        raise AssertionError(f"rank {hvd.rank()}: {what}: {found} and not {expected}")
    checked += 1


def operations(device, rank, size):
    for dtype in DTYPES:
        inputs = [((torch.arange(999) * (each + 1)) % 4 * size).to(dtype) for each in range(size)]
        own, total = inputs[rank].to(device), torch.stack(inputs).sum(0).to(dtype)
        check(f"allreduce of {dtype}", hvd.allreduce(own, op=hvd.Sum), total)
        check(f"average of {dtype}", hvd.allreduce(own), torch.div(total, size, rounding_mode="trunc").to(dtype))
        check(f"allgather of {dtype}", hvd.allgather(own[: rank + 1]), torch.cat([each[: i + 1] for i, each in enumerate(inputs)]))
        check(f"broadcast of {dtype}", hvd.broadcast(own, size - 1), inputs[-1])
        handle = hvd.allreduce_async_(own.clone(), op=hvd.Sum)
        check(f"allreduce_async_ of {dtype}", hvd.synchronize(handle), total)
    group = [torch.full((n,), float(rank + n), device=device) for n in (1, 3)]
    check("a group", hvd.grouped_allreduce(group, op=hvd.Sum)[1], torch.full((3,), float(sum(range(size)) + 3 * size)))
    flags = torch.tensor([False, rank == 0, True], device=device)
    check("bool", hvd.allreduce(flags, op=hvd.Sum), torch.tensor([False, True, True]))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # another stream than the one that made the tensor
        side.wait_stream(torch.cuda.default_stream())
        check("on another stream", hvd.allreduce(group[0], op=hvd.Sum), torch.full((1,), float(sum(range(size)) + size)))


def training(device, rank, size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).to(device)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())
    data = torch.linspace(-1, 1, 64 * 32 * size, device=device).view(-1, 64)[rank::size]
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(data).sub(1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    parameters = hvd.allgather(torch.cat([each.detach().flatten() for each in model.parameters()])[None])
    assert parameters.eq(parameters[0]).all(), "the ranks' models differ"


def main():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    operations(device, rank, size)
    training(device, rank, size)
    print(f"rank {rank} on {torch.cuda.get_device_name(device)} has checked {checked} results of PyTorch", flush=True)
    hvd.shutdown()
    torch.cuda.synchronize()
    os._exit(0)


if __name__ == "__main__":
    main()
