"""What PyTorch attaches to groups, and groups with a backend for each device: these use the class RunjobBackend."""

import os
import pickle

import pytest
import torch
import torch.distributed as dist
from both_backends import caught, over

PROPERTIES = (
    "supports_splitting", "supports_coalescing", "supports_shrinking", "supports_reconfigure", "supports_window",
    "_supports_time_estimate",
)  # fmt: skip


def every_operation():
    """Each operation once: the sums of what arrived."""
    rank, size = dist.get_rank(), dist.get_world_size()
    seen = []
    one = torch.full((4,), rank + 1.0)
    dist.all_reduce(one)
    dist.broadcast(one, 1)
    dist.reduce(one, 0)
    seen.append(one if rank == 0 else torch.zeros(4))
    parts = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    seen += parts
    whole = torch.zeros(2 * size)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    seen.append(whole)
    out = torch.zeros(2)
    dist.reduce_scatter_tensor(out, torch.arange(2.0 * size))
    dist.reduce_scatter(out, [out.clone() for _ in range(size)])
    seen.append(out.clone())
    dist.scatter(out, [torch.full((2,), 1.0 + each) for each in range(size)] if rank == 0 else None)
    seen.append(out.clone())
    gathered = [torch.zeros(2) for _ in range(size)]
    dist.gather(out, gathered if rank == 0 else None)
    seen += gathered
    out = torch.zeros(2 * size)
    dist.all_to_all_single(out, torch.arange(2.0 * size) + rank)
    outs = list(torch.zeros(size, 2).unbind())
    dist.all_to_all(outs, list(out.reshape(size, 2).unbind()))
    seen += [out, *outs]
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    dist.barrier()
    work = dist.all_reduce(out, async_op=True)
    work.wait()
    (done,) = [torch.ones(3)]
    future = dist.all_reduce(done, async_op=True).get_future()
    seen.append(future.then(lambda each: each.value()[0] + 1).wait())
    assert objects == list(range(size))
    return [tensor.tolist() for tensor in seen]


def by_one_backend():
    return over("runjob", every_operation)


def by_a_backend_for_each_device():
    def run():
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        properties = [getattr(backend, name) for name in PROPERTIES]
        assert type(dist.group.WORLD).__name__ == "ProcessGroup" and type(backend).__name__ == "RunjobBackend"
        assert dist.get_backend(dist.group.WORLD) and dist.get_backend_config() == "cpu:runjob,cuda:gloo"
        return properties, every_operation()

    return over("cpu:runjob,cuda:gloo", run)


def test_a_backend_for_each_device_has_every_operation_and_property(call_ranks):
    """Without an answer of the class, reading one of the properties would recurse without end."""
    expected = call_ranks(by_one_backend, 2)
    for rank, (properties, seen) in enumerate(call_ranks(by_a_backend_for_each_device, 2)):
        assert properties == [False, True, False, False, False, False]
        assert seen == expected[rank]


def only_for_gpus():
    def run():
        kinds = [type(dist.group.WORLD._get_backend(torch.device(device))).__name__ for device in ("cpu", "cuda")]
        return kinds, every_operation()

    return over("cpu:gloo,cuda:runjob", run)


def test_gloo_for_cpus_and_runjob_for_gpus(call_ranks):
    expected = call_ranks(by_one_backend, 2)
    for rank, (kinds, seen) in enumerate(call_ranks(only_for_gpus, 2)):
        assert kinds == ["ProcessGroupGloo", "RunjobBackend"]
        assert seen == expected[rank]


def with_nccl():
    if not torch.cuda.is_available():
        return caught(lambda: dist.init_process_group("cpu:runjob,cuda:nccl"))
    torch.cuda.set_device(0)
    return over("cpu:runjob,cuda:nccl", lambda: type(dist.group.WORLD._get_backend(torch.device("cpu"))).__name__)


@pytest.mark.skipif(not dist.is_nccl_available(), reason="this PyTorch is without NCCL")
def test_runjob_for_cpus_and_nccl_for_gpus(run_ranks):
    """The part for CPUs is made first. Without a GPU PyTorch then refuses to make NCCL's."""
    (result,) = run_ranks(with_nccl, 1).results
    assert result == "RunjobBackend" if torch.cuda.is_available() else "at least one CUDA device" in result


def in_detail(run):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    try:
        return over("runjob", run)
    finally:
        os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"
        dist.set_debug_level_from_env()


def every_operation_in_detail():
    return in_detail(every_operation)


def different_shapes_in_detail():
    return in_detail(lambda: caught(lambda: dist.all_reduce(torch.ones(2 + dist.get_rank()))))


def test_debugging_in_detail_checks_every_operation(call_ranks):
    assert call_ranks(every_operation_in_detail, 2) == call_ranks(by_one_backend, 2)


def test_debugging_in_detail_names_what_differs(call_ranks):
    for text in call_ranks(different_shapes_in_detail, 2):
        assert "Detected mismatch between collectives on ranks" in text


def checked_for_nan():
    os.environ["TORCH_DIST_NAN_CHECK"] = "1"

    def run():
        good = every_operation()
        bad = torch.tensor([1.0, float("nan")])
        return good, caught(lambda: dist.all_reduce(bad))

    try:
        return over("runjob", run)
    finally:
        del os.environ["TORCH_DIST_NAN_CHECK"]


def test_tensors_are_checked_for_nan(call_ranks):
    expected = call_ranks(by_one_backend, 2)
    for rank, (good, text) in enumerate(call_ranks(checked_for_nan, 2)):
        assert good == expected[rank]
        assert "NaN" in text


def recorded():
    os.environ["TORCH_FR_BUFFER_SIZE"] = "100"

    def run():
        torch._C._distributed_c10d._reset_fr_trace(backend="runjob")
        for _ in range(3):
            dist.all_reduce(torch.ones(4))
        dist.broadcast(torch.ones(2), 0)
        trace = pickle.loads(torch._C._distributed_c10d._dump_fr_trace(backend="runjob"))
        return [(entry["profiling_name"], entry["input_sizes"]) for entry in trace["entries"]]

    try:
        return over("runjob", run)
    finally:
        del os.environ["TORCH_FR_BUFFER_SIZE"]


@pytest.mark.skipif(not hasattr(torch._C._distributed_c10d, "_dump_fr_trace"), reason="this PyTorch records NCCL's calls only")
def test_the_flight_recorder_has_the_calls(call_ranks):
    for entries in call_ranks(recorded, 2):
        assert entries == [("runjob:all_reduce", [[4]])] * 3 + [("runjob:broadcast", [[2]])]


def batch_of_messages():
    def run():
        rank = dist.get_rank()
        received = torch.zeros(3)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.full((3,), 1.0 + rank), 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)
        ])  # fmt: skip
        for work in works:
            work.wait()
        return received.tolist()

    return over("cpu:runjob,cuda:gloo", run)


def test_a_batch_of_messages(call_ranks):
    assert call_ranks(batch_of_messages, 2) == [[2.0] * 3, [1.0] * 3]
