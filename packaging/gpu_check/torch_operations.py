"""PyTorch's collectives on CUDA tensors: values beside PyTorch's on the CPU, gradients, streams, sets of ranks, errors.

A rank of a job: `runjob -np 2 python torch_operations.py [NAME...]`; see checks.py.
"""

import time

import torch

import runjob.torch as hvd
from checks import begin, check, device, run
from runjob.exceptions import Error
from runjob.torch import gpu_calls

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def assert_equal(what, found, expected):
    assert found.is_cuda and torch.equal(found.cpu(), expected), f"{what}: {found} and not {expected}"


@check
def every_collective_equals_the_cpus():
    rank, size = hvd.rank(), hvd.size()
    for dtype in DTYPES:
        inputs = [((torch.arange(999) * (each + 1)) % 4 * size).to(dtype) for each in range(size)]
        own, total = inputs[rank].to(device()), torch.stack(inputs).sum(0).to(dtype)
        assert_equal(f"allreduce of {dtype}", hvd.allreduce(own, op=hvd.Sum), total)
        assert_equal(f"average of {dtype}", hvd.allreduce(own), torch.div(total, size, rounding_mode="trunc").to(dtype))
        gathered = torch.cat([each[: i + 1] for i, each in enumerate(inputs)])
        assert_equal(f"allgather of {dtype}", hvd.allgather(own[: rank + 1]), gathered)
        assert_equal(f"broadcast of {dtype}", hvd.broadcast(own, size - 1), inputs[-1])
        handle = hvd.allreduce_async_(own.clone(), op=hvd.Sum)
        assert_equal(f"allreduce_async_ of {dtype}", hvd.synchronize(handle), total)
    group = [torch.full((n,), float(rank + n), device=device()) for n in (1, 3)]
    assert_equal("a group", hvd.grouped_allreduce(group, op=hvd.Sum)[1], torch.full((3,), float(sum(range(size)) + 3 * size)))
    flags = torch.tensor([False, rank == 0, True], device=device())
    assert_equal("bool", hvd.allreduce(flags, op=hvd.Sum), torch.tensor([False, True, True]))


@check
def adasum_of_parallel_and_of_orthogonal_tensors():
    """Of whole numbers, so that the factors are exact; where a rank is alone, the tensor itself."""
    rank, size = hvd.rank(), hvd.size()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        values = (torch.arange(999) % 7 + 1).to(dtype)
        own = values.to(device())
        assert_equal(f"Adasum of equal {dtype}", hvd.allreduce(own, op=hvd.Adasum), values)
        part = torch.where(torch.arange(999, device=device()) % size == rank, own, torch.zeros_like(own))
        group = hvd.grouped_allreduce([part, own], op=hvd.Adasum)
        assert_equal(f"Adasum of orthogonal {dtype}", group[0], values)
        assert_equal(f"Adasum in place of {dtype}", hvd.allreduce_(own.clone(), op=hvd.Adasum, prescale_factor=2.0), values * 2)
    model = torch.nn.Linear(3, 2).to(device())
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), op=hvd.Adasum)
    model(torch.ones(4, 3, device=device()) * (rank + 1)).sum().backward()
    optimizer.step()
    hvd.assert_same(model)


@check
def objects():
    thing = {"rank": hvd.rank(), "tensor": torch.full((3,), float(hvd.rank()), device=device())}
    got = hvd.broadcast_object(thing, root_rank=hvd.size() - 1)
    assert got["rank"] == hvd.size() - 1 and got["tensor"].tolist() == [hvd.size() - 1.0] * 3
    assert [each["rank"] for each in hvd.allgather_object(thing)] == list(range(hvd.size()))


@check
def gradients_of_collectives():
    rank, size = hvd.rank(), hvd.size()
    given = torch.full((size, 3), rank + 1.0, device=device(), requires_grad=True)
    hvd.allreduce(given, op=hvd.Sum).mul(2).sum().backward()
    assert given.grad.eq(2.0 * size).all()
    given.grad = None
    hvd.allgather(given).mul(3).sum().backward()
    assert given.grad.eq(3.0).all(), given.grad  # Horovod's gradient is the average
    given.grad = None
    hvd.broadcast(given, 0).sum().backward()
    assert given.grad.eq(1.0 if rank == 0 else 0.0).all(), given.grad
    given.grad = None
    outputs = hvd.alltoall(given, torch.ones(size, dtype=torch.int32))[0]
    outputs.sum().backward()
    assert given.grad.eq(1.0).all()
    given.grad = None
    hvd.reducescatter(given, op=hvd.Sum).sum().backward()
    assert given.grad.device == given.device


@check
def shapes_and_layouts():
    rank, size = hvd.rank(), hvd.size()
    ranks = float(sum(range(size)))
    assert hvd.allreduce(torch.tensor(float(rank), device=device()), op=hvd.Sum).item() == ranks
    assert hvd.allreduce(torch.empty(0, device=device()), op=hvd.Sum).shape == (0,)
    assert hvd.allgather(torch.empty(0, 4, device=device())).shape == (0, 4)
    given = torch.arange(6.0, device=device()).view(2, 3).t()
    assert hvd.allreduce(given, op=hvd.Sum).equal(given * size)
    assert hvd.allreduce(torch.arange(20.0, device=device())[::2], op=hvd.Sum).equal(torch.arange(20.0, device=device())[::2] * size)
    wide = torch.arange(48.0, device=device()).view(2, 3, 4, 2).contiguous(memory_format=torch.channels_last)
    assert hvd.allreduce(wide, op=hvd.Sum).equal(wide * size)
    big = torch.randn(1 << 26, generator=torch.Generator(device()).manual_seed(rank), device=device())
    total = sum(torch.randn(1 << 26, generator=torch.Generator(device()).manual_seed(each), device=device()) for each in range(size))
    assert torch.allclose(hvd.allreduce(big, op=hvd.Sum), total, atol=1e-5)


@check
def every_dtype_and_scale():
    size = hvd.size()
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64):
        given = torch.arange(1, 6).to(device(), dtype)
        expected = (torch.arange(1, 6).double() * size * 3 * 0.5).to(dtype)
        found = hvd.allreduce(given, op=hvd.Sum, prescale_factor=3.0, postscale_factor=0.5)
        assert found.cpu().double().sub(expected.double()).abs().max() <= (1 if "int" in str(dtype) else 0.1), (dtype, found, expected)


@check
def many_in_flight():
    size = hvd.size()
    handles = [hvd.allreduce_async(torch.full((1 + i,), float(i), device=device()), op=hvd.Sum, name=f"f{i}") for i in range(200)]
    for i, handle in reversed(list(enumerate(handles))):
        assert hvd.synchronize(handle).eq(i * size).all()
    for i in range(50):  # nobody waits for these
        hvd.allreduce_async(torch.full((100000,), 1.0, device=device()), op=hvd.Sum, name=f"g{i}")
    hvd.barrier()
    torch.cuda.synchronize()
    deadline = time.monotonic() + 10
    while gpu_calls.kept() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gpu_calls.kept() == 0, gpu_calls.kept()


@check
def streams():
    size = hvd.size()
    side, other = torch.cuda.Stream(), torch.cuda.Stream()
    for turn in range(20):
        with torch.cuda.stream(side):
            tensor = torch.zeros(1 << 22, device=device())
            for _ in range(20):
                tensor += 1  # the collective must wait for these
            handle = hvd.allreduce_async(tensor, op=hvd.Sum, name="side")
        with torch.cuda.stream(other):
            result = hvd.synchronize(handle)  # and this stream for the collective
            assert result.eq(20.0 * size).all().item(), turn


@check
def process_sets():
    rank, size = hvd.rank(), hvd.size()
    if size == 1:
        return
    sets = [hvd.add_process_set([each]) for each in range(size)]
    mine = torch.full((100003,), rank + 1.0, device=device())
    for _ in range(3):
        assert hvd.allreduce(mine, op=hvd.Average, prescale_factor=0.5, process_set=sets[rank]).eq((rank + 1) / 2).all()
        assert hvd.allreduce(mine, op=hvd.Sum).eq(size * (size + 1) / 2).all()
    for each in reversed(sets):
        hvd.remove_process_set(each)


@check
def tensors_of_both_places():
    size = hvd.size()
    on_cpu, on_gpu = torch.ones(5), torch.ones(5, device=device())
    first = hvd.allreduce_async(on_cpu, op=hvd.Sum, name="cpu")
    second = hvd.allreduce_async(on_gpu, op=hvd.Sum, name="gpu")
    assert hvd.synchronize(second).eq(size).all() and hvd.synchronize(first).eq(size).all()
    try:
        hvd.grouped_allreduce([on_cpu, on_gpu], op=hvd.Sum)
    except ValueError:
        pass
    else:
        raise AssertionError("a group of tensors on two devices")


@check
def ranks_that_disagree_on_the_place():
    if hvd.size() == 1:
        return
    try:
        hvd.allreduce(torch.ones(3, device=device() if hvd.rank() == 0 else "cpu"), name="place")
    except (ValueError, RuntimeError, Error) as error:
        print(f"rank {hvd.rank()}: {type(error).__name__}: {error}", flush=True)
    else:
        raise AssertionError("no error")
    assert hvd.allreduce(torch.ones(3, device=device()), op=hvd.Sum).eq(hvd.size()).all()


@check
def a_captured_stream():
    tensor = torch.ones(3, device=device())
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            hvd.allreduce_(tensor, op=hvd.Sum, name="captured")
    except Error as error:
        assert "is being captured into a CUDA graph" in str(error), error
    else:
        raise AssertionError("no error")
    assert hvd.allreduce(tensor, op=hvd.Sum).eq(hvd.size()).all()


@check
def graphs_between_operations():
    static = torch.zeros(1000, device=device())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static.mul_(2).add_(1)
    for _ in range(3):
        static.fill_(hvd.rank())
        graph.replay()
        total = hvd.allreduce(static, op=hvd.Sum)
        assert total.eq(sum(2 * each + 1 for each in range(hvd.size()))).all()


@check
def no_memory_for_a_result():
    if hvd.size() == 1:
        return
    free, _ = torch.cuda.mem_get_info()
    hvd.barrier()
    tensor = torch.empty(free // 2 if hvd.rank() == 0 else 1, dtype=torch.uint8, device=device())
    hvd.barrier()
    try:
        hvd.allgather(tensor)
    except hvd.HorovodInternalError as error:
        assert "is out of memory: " in str(error), error
    else:
        raise AssertionError("no error")
    del tensor
    torch.cuda.empty_cache()
    hvd.shutdown()  # the other ranks may have launched it, so the job has failed
    begin()
    assert hvd.allreduce(torch.ones(3, device=device()), op=hvd.Sum).eq(hvd.size()).all()


if __name__ == "__main__":
    run()
