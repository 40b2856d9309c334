"""python/runjob/torch/gpu_calls.py over the stand-ins of CUDA and NCCL, with tensors of the CPU in the part of a GPU's. The names of the
tests say stand-in; what needs a GPU is in packaging/gpu_check/torch_operations.py.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import pytest
import torch

import runjob.torch as hvd
import stand_in_gpu
from adasum_tree import error, tree
from runjob import handles
from runjob.elastic import state
from runjob.torch import gpu_calls
from testbed import eventually

FOLDER = pathlib.Path(__file__).parent
SUITES = FOLDER.parent

pytestmark = pytest.mark.skipif(not stand_in_gpu.is_built(), reason="the stand-ins of CUDA and NCCL are not built")


def is_double(value):
    """In these tests float64 is what lies on a GPU, and the rest on the CPU."""
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


def _every_operation(waits_on_host):
    gpu = stand_in_gpu.install(is_double, waits_on_host)
    hvd.init()
    rank = hvd.rank()
    given = torch.arange(6.0, dtype=torch.float64).view(2, 3).t() + rank  # not in one piece
    in_place = torch.full((4,), float(rank), dtype=torch.float64)
    group = [torch.full((n,), float(rank + n), dtype=torch.float64) for n in (1, 3)]
    rows, received = hvd.alltoall(given, [1, 2])
    scaled = hvd.allreduce_async(given, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.25)
    results = {
        "allreduce": hvd.allreduce(given, op=hvd.Sum),
        "average": hvd.allreduce(given),
        "in place": hvd.allreduce_(in_place, op=hvd.Sum),
        "scaled": hvd.synchronize(scaled),
        "later": hvd.synchronize(hvd.allreduce_async(given, op=hvd.Max)),
        "allgather": hvd.allgather(given[: rank + 1]),
        "broadcast": hvd.broadcast(given, 1),
        "alltoall": rows,
        "reducescatter": hvd.reducescatter(given, op=hvd.Sum),
        "group": hvd.grouped_allreduce(group, op=hvd.Sum, postscale_factor=2.0)[1],
        "gathered group": hvd.grouped_allgather(group)[0],
        "scattered group": hvd.grouped_reducescatter([given, given * 2], op=hvd.Sum)[1],
    }
    gpu.synchronize()
    found = {name: result.tolist() for name, result in results.items()}
    same = results["in place"] is in_place
    hvd.shutdown()
    return found, same, received.tolist()


@pytest.mark.parametrize("waits_on_host", [False, True])
def test_every_operation_over_the_stand_ins(call_ranks, waits_on_host):
    given = [torch.arange(6.0).view(2, 3).t() + rank for rank in range(2)]
    both = given[0] + given[1]
    for rank, (found, is_same, received) in enumerate(call_ranks(_every_operation, 2, waits_on_host)):
        # Postscales are PyTorch's multiplications, which here do not wait for the GPU's stream.
        scaled = {name: found.pop(name) for name in ("scaled", "group")}
        if waits_on_host:
            assert scaled == {"scaled": (both / 2).tolist(), "group": [14.0] * 3}
        assert found == {
            "allreduce": both.tolist(), "average": (both / 2).tolist(), "in place": [1.0] * 4, "later": given[1].tolist(),
            "allgather": torch.cat([given[0][:1], given[1][:2]]).tolist(), "broadcast": given[1].tolist(),
            "alltoall": torch.cat([each[:1] if rank == 0 else each[1:] for each in given]).tolist(),
            "reducescatter": (both[:2] if rank == 0 else both[2:]).tolist(), "gathered group": [1.0, 2.0],
            "scattered group": (2 * (both[:2] if rank == 0 else both[2:])).tolist(),
        }  # fmt: skip
        assert (is_same, received) == (True, [1, 1] if rank == 0 else [2, 2])


def _adasum():
    """Of one tensor, of one in place, and of a group with an empty tensor; what is refused, and what a joined rank makes of it."""
    stand_in_gpu.install(is_double)
    hvd.init()
    rank = hvd.rank()
    of_ranks = [torch.arange(12.0, dtype=torch.float64).view(4, 3).t() ** (each + 1) for each in range(2)]  # not in one piece
    given, in_place = of_ranks[rank], of_ranks[rank].contiguous()
    handle = hvd.allreduce_async_(in_place, op=hvd.Adasum, postscale_factor=2.0)
    is_done = hvd.poll(handle)
    same = hvd.synchronize(handle) is in_place
    group = hvd.grouped_allreduce([given[:, :1], given[:0], given], op=hvd.Adasum)
    found = [hvd.allreduce(given, op=hvd.Adasum).tolist(), (in_place / 2).tolist(), group[2].tolist()]
    near = [error(each, tree([tensor.numpy() for tensor in of_ranks])) for each in found]
    near.append(error(group[0].numpy(), tree([tensor[:, :1].numpy() for tensor in of_ranks])))
    texts = []
    for wrong in (
        lambda: hvd.reducescatter(given, op=hvd.Adasum),
        lambda: hvd.join() if rank else hvd.allreduce(given, op=hvd.Adasum, name="alone"),
    ):
        try:
            wrong()
        except RuntimeError as refused:
            texts.append(str(refused))
    if rank == 0:
        hvd.join()
    hvd.shutdown()
    return is_done and same and list(group[1].shape) == [0, 4], max(near), texts


def test_adasum_over_the_stand_ins(call_ranks):
    for rank, (is_right, largest, texts) in enumerate(call_ranks(_adasum, 2)):
        assert is_right and largest < 1e-15
        assert texts[0] == "reducescatter does not take op=Adasum; use allreduce, or another op"
        assert rank == 1 or "rank 1 on" in texts[1] and "has joined, and only allreduce goes on without it" in texts[1]


def _tensors_are_kept():
    """What is kept after the last of some operations, and when the GPU is done."""
    gpu = stand_in_gpu.install(is_double, waits_on_host=False)
    hvd.init()
    tensor = torch.ones(1000, dtype=torch.float64)
    before = gpu_calls.kept()
    handles = [hvd.allreduce_async_(tensor, name=f"x{i}", op=hvd.Sum) for i in range(4)]
    for handle in handles:
        hvd.synchronize(handle)
    kept = [any(each is tensor for each in tensors) for _, _, tensors in gpu_calls._taken]
    gpu.synchronize()  # the default stream waits for all of them
    is_done = gpu_calls.kept() == 0
    value = tensor[0].item()
    hvd.shutdown()
    return before, kept, is_done, value


def test_tensors_are_kept_until_the_gpu_is_done_over_the_stand_ins(call_ranks):
    for before, kept, is_done, value in call_ranks(_tensors_are_kept, 2):
        assert before == 0 and len(kept) <= 4 and all(kept) and is_done
        assert value == 16.0, "four operations in place, one after the other"


def _tensors_beside_a_late_operation():
    gpu = stand_in_gpu.install(is_double, waits_on_host=False)
    hvd.init()
    tensor = torch.ones(10, dtype=torch.float64)
    if hvd.rank() == 0:
        hvd.allreduce_async(tensor, name="late", op=hvd.Sum)  # nobody waits for it
    for i in range(4):
        hvd.allreduce_(tensor.clone(), name=f"x{i}", op=hvd.Sum)
    gpu.synchronize()
    kept = gpu_calls.kept()
    hvd.barrier()  # rank 0 has counted
    if hvd.rank() == 1:
        hvd.synchronize(hvd.allreduce_async(tensor, name="late", op=hvd.Sum))
    hvd.barrier()
    gpu.synchronize()
    is_done = eventually(lambda: gpu_calls.kept() == 0, "no tensor is kept")
    hvd.shutdown()
    return kept, is_done


def test_an_operation_that_other_ranks_are_late_for_does_not_keep_the_others_tensors_over_the_stand_ins(call_ranks):
    assert call_ranks(_tensors_beside_a_late_operation, 2) == [(1, True), (0, True)]


DTYPES = ["uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def _reductions(is_stood_in):
    """Every operator, dtype and scale, alone and in groups, some of them not in one piece; and compression."""
    if is_stood_in:
        stand_in_gpu.install()
    hvd.init()
    rank, results, kinds = hvd.rank(), {}, set()
    start = gpu_calls.GpuCall.submit

    def noted(call, wire_name):
        kinds.add(wire_name)
        start(call, wire_name)

    gpu_calls.GpuCall.submit = noted
    inputs = {}
    for dtype in DTYPES:
        kind = getattr(torch, dtype, None)
        if kind is not None:
            # Twice 120 fits into no int8, twice 32400 into no int16.
            values = torch.tensor([[1, 7, 120], [3 + rank, 2, 5 - 2 * rank]])
            inputs[dtype] = (values * (1 if "8" in dtype else 270 if "int16" in dtype or rank == 1 else 1)).to(kind).t()
    scales = [(1.0, 1.0), (0.5, 1.0), (1.0, 3.0), (1.5, 0.1)]
    for op in (hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product):
        for pre, post in scales:
            for dtype, given in inputs.items():
                key = f"{op} {pre} {post} {dtype}"
                scale = {"op": op, "prescale_factor": pre, "postscale_factor": post}
                results[key] = hvd.allreduce(given, **scale)
                in_place = given.contiguous().clone()
                if hvd.allreduce_(in_place, **scale) is in_place:
                    results[f"{key} in place"] = in_place
                results[f"{key} scattered"] = hvd.reducescatter(given, **scale)
            group = hvd.grouped_allreduce([inputs["int32"], inputs["float32"], inputs["int16"]], **scale)
            results.update({f"{op} {pre} {post} group {index}": each for index, each in enumerate(group)})
    large = torch.tensor([60000.0, 0.5 + rank])
    for name in ("fp16", "bf16"):
        compression = getattr(hvd.Compression, name, None)
        if compression is None:
            continue
        for scale in ({"prescale_factor": 0.25}, {"prescale_factor": 0.25, "postscale_factor": 8.0}):
            results[f"{name} {scale}"] = hvd.allreduce(large, op=hvd.Sum, compression=compression, **scale)
        results[f"{name} of int32"] = hvd.allreduce(inputs["int32"], op=hvd.Sum, compression=compression)
    results["bool"] = hvd.allreduce(torch.tensor([True, rank == 1]), op=hvd.Product)
    refused = _errors_of(lambda: hvd.allreduce(torch.tensor([True]), postscale_factor=2.0, op=hvd.Sum))
    gpu_calls.GpuCall.submit = start
    hvd.shutdown()
    assert bool(kinds) == is_stood_in
    return {key: (str(each.dtype), each.to(torch.float64).tolist()) for key, each in results.items()}, refused


def test_every_reduction_has_the_values_of_the_host_over_the_stand_ins(run_ranks, call_ranks):
    """What NCCL's operators cannot express is PyTorch's part. Floats of 16 bits are rounded at other places."""
    on_host = run_ranks(_reductions, 2, False).results
    for (found, refused), (expected, as_on_host) in zip(call_ranks(_reductions, 2, True), on_host):
        assert found.keys() == expected.keys()
        assert refused == as_on_host and "cannot be scaled" in refused[0]
        for key, (dtype, values) in expected.items():
            assert found[key][0] == dtype, key
            is_half = "float16" in key or "fp16" in key or "bf16" in key
            torch.testing.assert_close(
                torch.tensor(found[key][1]), torch.tensor(values), rtol=0.02 if is_half else 1e-6, atol=0.02 if is_half else 0, msg=key
            )


def _training(is_stood_in):
    started = []
    if is_stood_in:
        stand_in_gpu.install(is_double)
    start = handles.start

    def noted(call):
        started.append((str(call.name), type(call).__name__))
        return start(call)

    handles.start = noted
    hvd.init()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).double()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    data = torch.linspace(-1, 1, 32, dtype=torch.float64).view(8, 4)[hvd.rank() :: hvd.size()]
    for _ in range(4):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    hvd.shutdown()
    handles.start = start
    return [parameter.tolist() for parameter in model.parameters()], started


def test_training_is_that_of_one_process_over_the_stand_ins(call_ranks):
    """And the words of the buckets are the host's, so that reading them does not wait for the GPU: one reduction in each step."""
    alone = call_ranks(_training, 1, False)[0][0]
    for weights, started in call_ranks(_training, 2, True):
        words = [name for name, kind in started if name.endswith(".words") and kind == "Call"]
        buckets = [name for name, kind in started if ".bucket." in name and kind == "GpuCall"]
        assert len(words) == len(buckets) == 4
        for ours, theirs in zip(weights, alone):
            torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-6, atol=1e-6)


def _other_places():
    rank = int(os.environ["RUNJOB_RANK"])
    if rank == 0:
        stand_in_gpu.install(is_double)
    hvd.init()
    model = torch.nn.Linear(4, 2).double()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    loss = model(torch.ones(1, 4, dtype=torch.float64)).sum()
    return _errors_of(loss.backward)


def test_a_model_that_is_on_a_gpu_on_some_ranks_only_is_refused_over_the_stand_ins(run_ranks):
    text = (
        "MismatchError: DistributedOptimizer: the ranks disagree about bias: its memory is GPU on rank 0 of the process set and "
        "host on rank 1"
    )
    assert run_ranks(_other_places, 2).results == [[text]] * 2


@pytest.mark.parametrize(
    "suite",
    ["test_operations.py", *(pytest.param(f"test_{name}.py", marks=pytest.mark.thorough) for name in ("grouped", "optimizer", "differentiable"))],
)
def test_the_suite_of_pytorch_over_the_stand_ins(suite):
    """With all tensors of the CPU in the GPU's part."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITES / suite)], capture_output=True, text=True,
        env={**os.environ, stand_in_gpu.VARIABLE: str(FOLDER)}, timeout=540, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"\d+ passed", done.stdout)


def _errors_of(*calls):
    texts = []
    for call in calls:
        try:
            call()
            texts.append("")
        except Exception as error:  # its class differs: here, and on the rank that learns of it
            texts.append(f"{type(error).__name__}: {error}")
    return texts


def _failure_after_synchronize():
    if os.environ["RUNJOB_RANK"] == "0":
        os.environ["RUNJOB_STAND_IN_FAIL"] = "kernel:2"
    stand_in_gpu.install(is_double, waits_on_host=False)
    hvd.init()
    first, second = torch.ones(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    hvd.synchronize(hvd.allreduce_async_(first, name="first", op=hvd.Sum))
    hvd.check()
    value = first[0].item()
    hvd.synchronize(hvd.allreduce_async_(second, name="second", op=hvd.Sum))  # it is launched; the GPU fails later
    errors = _errors_of(hvd.check)
    if hvd.rank() == 0:
        _errors_of(lambda: hvd.allreduce(torch.ones(1), name="end"))  # it ends with the job, of which rank 1 learns
    state.is_elastic = lambda: True
    errors += _errors_of(hvd.elastic.TorchState(epoch=0).commit, hvd.check)
    hvd.shutdown()
    return value, errors


def test_check_and_commits_raise_what_the_gpu_failed_with_over_the_stand_ins(run_ranks):
    for value, errors in run_ranks(_failure_after_synchronize, 2).results:
        assert value == 2.0, "check() has waited for it"
        assert len(errors) == 3 and all("a collective on the GPU: NCCL 2.28.9" in text for text in errors), errors


def _group_of_two_devices():
    stand_in_gpu.install(lambda value: isinstance(value, torch.Tensor) and value.device.type == "meta")
    hvd.init()
    group = [torch.ones(1), torch.ones(1, device="meta")]
    errors = _errors_of(
        lambda: hvd.grouped_allreduce(group), lambda: hvd.grouped_allgather(group), lambda: hvd.grouped_reducescatter(group)
    )
    hvd.shutdown()
    return errors


def test_a_group_over_two_devices_is_refused_on_all_ranks_over_the_stand_ins(run_ranks):
    for errors in run_ranks(_group_of_two_devices, 2).results:
        for name, text in zip(["grouped_allreduce", "grouped_allgather", "grouped_reducescatter"], errors):
            assert text == (
                f"ValueError: {name}(): the tensors of a group must be on one device: tensor 0 is on cpu, tensor 1 on meta"
            )


def _killed_while_it_leaves():
    """Rank 1's GPU is at work on an operation that never ends, and rank 1 is killed within shutdown()."""
    is_victim = os.environ["RUNJOB_RANK"] == "1"
    if is_victim:
        os.environ["RUNJOB_STAND_IN_HANG"] = "kernel:2"
    stand_in_gpu.install(is_double, waits_on_host=False)
    hvd.init()
    tensor = torch.ones(4, dtype=torch.float64)
    for name in ("first", "second"):
        hvd.synchronize(hvd.allreduce_async_(tensor, name=name, op=hvd.Sum))
    if not is_victim:
        hvd.check()
        return
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()  # shutdown() waits for 0.8 s
    hvd.shutdown()
    threading.Event().wait()


def test_the_launcher_ends_a_job_whose_rank_is_killed_while_it_leaves_over_the_stand_ins(run_ranks):
    """It has sent its goodbye, so the other rank does not miss it."""
    job = run_ranks(_killed_while_it_leaves, 2, status=137)
    assert re.search(r"rank 1 on localhost \(pid \d+\) was killed by signal 9 \(SIGKILL\); stopped 1 other rank", job.stderr)
