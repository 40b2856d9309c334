"""The names that Horovod's scripts use, with the arguments and defaults that they count on; ours may take more arguments behind them."""

import importlib
import inspect

import pytest

PS = ", process_set=global_process_set"
FACTORS = ", prescale_factor=1.0, postscale_factor=1.0"
REDUCE = f", average=None, name=None, op=None{FACTORS}{PS}"
COMPRESSED = f", average=None, name=None, compression=Compression.none, op=None{FACTORS}{PS}"
SCATTER = f", op=Average{PS}{FACTORS}"

COMMON = {
    "init": "comm=None, process_sets=None",
    **dict.fromkeys(["shutdown", "is_initialized", "size", "rank", "local_size", "local_rank", "cross_size", "cross_rank"], ""),
    "start_timeline": "file_path, mark_cycles=False",
    "stop_timeline": "",
    **dict.fromkeys(["mpi_threads_supported", "mpi_enabled", "mpi_built", "gloo_enabled", "gloo_built", "nccl_built"], ""),
    **dict.fromkeys(["ddl_built", "ccl_built", "cuda_built", "rocm_built"], ""),
    "ProcessSet": "ranks_or_comm",
    "add_process_set": "process_set",
    "remove_process_set": "process_set",
}
TORCH = {
    **COMMON,
    "allreduce": f"tensor{COMPRESSED}",
    "allreduce_async": f"tensor{REDUCE}",
    "allreduce_": f"tensor{REDUCE}",
    "allreduce_async_": f"tensor{REDUCE}",
    "grouped_allreduce": f"tensors{COMPRESSED}",
    "grouped_allreduce_async": f"tensors{REDUCE}",
    "grouped_allreduce_": f"tensors{REDUCE}",
    "grouped_allreduce_async_": f"tensors{REDUCE}",
    "sparse_allreduce_async": f"tensor, name, op{PS}",
    **dict.fromkeys(["allgather", "allgather_async"], f"tensor, name=None{PS}"),
    **dict.fromkeys(["grouped_allgather", "grouped_allgather_async"], f"tensors, name=None{PS}"),
    **dict.fromkeys(["broadcast", "broadcast_async", "broadcast_", "broadcast_async_"], f"tensor, root_rank, name=None{PS}"),
    **dict.fromkeys(["alltoall", "alltoall_async"], f"tensor, splits=None, name=None{PS}"),
    "reducescatter": f"tensor, name=None, compression=Compression.none{SCATTER}",
    "reducescatter_async": f"tensor, name=None{SCATTER}",
    "grouped_reducescatter": f"tensors, name=None, compression=Compression.none{SCATTER}",
    "grouped_reducescatter_async": f"tensors, name=None{SCATTER}",
    "join": "device=-1",
    "barrier": "process_set=global_process_set",
    "poll": "handle",
    "synchronize": "handle",
    "broadcast_parameters": "params, root_rank",
    "broadcast_optimizer_state": "optimizer, root_rank, model=None",
    "broadcast_object": f"obj, root_rank=0, name=None{PS}",
    "allgather_object": "obj, name=None",
    "DistributedOptimizer": "optimizer, named_parameters=None, compression=Compression.none, backward_passes_per_step=1, op=Average, "
    f"gradient_predivide_factor=1.0, num_groups=0, groups=None, sparse_as_dense=False{PS}",
    "SyncBatchNorm": "num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True",
    "mpi_ops.is_homogeneous": "",
    "mpi_ops.HorovodAllreduce.forward": "ctx, tensor, average, name, op, prescale_factor, postscale_factor, process_set",
    "mpi_ops.HorovodGroupedAllreduce.forward": "ctx, average, name, op, prescale_factor, postscale_factor, process_set, *tensors",
    "mpi_ops.HorovodAllgather.forward": "ctx, tensor, name, process_set",
    "mpi_ops.HorovodGroupedAllgather.forward": "ctx, name, process_set, *tensors",
    "mpi_ops.HorovodBroadcast.forward": "ctx, tensor, root_rank, name, process_set",
    "mpi_ops.HorovodAlltoall.forward": "ctx, tensor, splits, name, process_set",
    "mpi_ops.HorovodReducescatter.forward": "ctx, tensor, name, op, process_set, prescale_factor, postscale_factor",
    "mpi_ops.HorovodGroupedReducescatter.forward": "ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors",
    "mpi_ops._allreduce_async": f"tensor, output, name, op, prescale_factor, postscale_factor{PS}",
    "mpi_ops.handle_average_backwards_compatibility": "op, average",
    "mpi_ops.num_rank_is_power_2": "num_rank",
    "mpi_ops._basics._get_process_set_ids_and_ranks": "",
    "ProcessSet.size": "self",
    "ProcessSet.rank": "self",
    "ProcessSet.included": "self",
    "Compression.none.compress": "tensor",
    "Compression.fp16.decompress": "tensor, ctx",
    "elastic.run": "func",
    "elastic.TorchState": "model=None, optimizer=None, **kwargs",
    "elastic.state.TorchState.register_reset_callbacks": "self, callbacks",
    "elastic.state.TorchState.on_hosts_updated": "self, timestamp, update_res",
    **dict.fromkeys([f"elastic.TorchState.{name}" for name in ("commit", "check_host_updates", "save", "restore", "sync", "reset", "on_reset")], "self"),
    **dict.fromkeys([f"elastic.state.{name}StateHandler" for name in ("", "Model", "Optimizer", "Sampler")], "value"),
    **dict.fromkeys([f"elastic.state.StateHandler.{name}" for name in ("save", "restore", "sync")], "self"),
    "elastic.state.StateHandler.set_value": "self, value",
    "elastic.state.get_handler_registry": "",
    "elastic.state.set_handler_registry": "registry",
    "elastic.ElasticSampler": "dataset, shuffle=True, seed=0",
    **dict.fromkeys(["elastic.ElasticSampler.reset", "elastic.ElasticSampler.state_dict"], "self"),
    "elastic.ElasticSampler.set_epoch": "self, epoch",
    "elastic.ElasticSampler.record_batch": "self, batch_idx, batch_size",
    "elastic.ElasticSampler.load_state_dict": "self, state_dict",
}
UTIL = {
    "env": "**kwargs", "_cache": "f", "extension_available": "ext_base_name, verbose=False", "gpu_available": "ext_base_name, verbose=False",
    **dict.fromkeys(["gloo_built", "mpi_built", "nccl_built", "ddl_built", "ccl_built"], "verbose=False"),
    "check_extension": "ext_name, ext_env_var, pkg_path, *args", "split_list": "l, n", "num_rank_is_power_2": "num_rank",
    "is_version_greater_equal_than": "ver, target", "is_iterable": "x",
}  # fmt: skip
TABLES = {
    "horovod.torch": TORCH,
    "runjob.torch": {name: text for name, text in TORCH.items() if not name.startswith("mpi_ops.")},
    "runjob.numpy": {
        name: text
        for name, text in TORCH.items()
        if not name.startswith(("mpi_ops.", "elastic.", "sparse_", "Distributed", "SyncBatch", "broadcast_parameters", "broadcast_optimizer"))
    },
    "horovod.common.basics": {name: text for name, text in COMMON.items() if "process" not in name.lower()},
    "horovod.common.process_sets": {name: COMMON[name] for name in ("ProcessSet", "add_process_set", "remove_process_set")},
    "horovod.common.util": UTIL,
    "horovod.common.elastic": {
        "State": "bcast_object, get_rank", "ObjectState": "bcast_object, get_rank, **kwargs", "run_fn": "func, reset",
    },
}
ROWS = [(module, name, text) for module, table in TABLES.items() for name, text in table.items()]


def named(module, name):
    value = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def expected_parameters(module, text):
    """(name, kind of stars, default) of each."""
    scope = vars(importlib.import_module("runjob.numpy" if module == "runjob.numpy" else "runjob.torch"))
    function = eval(f"lambda {text}: None", dict(scope))  # a table of our own
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize("module, name, text", ROWS, ids=lambda value: value if "." not in value else value.rsplit(".")[-1])
def test_arguments_and_defaults(module, name, text):
    ours = list(inspect.signature(named(module, name)).parameters.values())
    expected = expected_parameters(module, text)
    assert [each.name for each in ours[: len(expected)]] == [each.name for each in expected]
    for mine, theirs in zip(ours, expected):
        assert mine.kind == theirs.kind
        if theirs.default is not inspect.Parameter.empty:
            assert mine.default is theirs.default or mine.default == theirs.default
    for more in ours[len(expected) :]:
        assert more.default is not inspect.Parameter.empty, f"{name} needs {more.name}, which Horovod has not"


@pytest.mark.parametrize("module", ["horovod.torch", "runjob.torch", "runjob.numpy"])
def test_reductions_are_numbered(module):
    names = ("Average", "Sum", "Adasum", "Min", "Max", "Product")
    assert [named(module, name) for name in names] == list(range(6))


@pytest.mark.parametrize("compressor", ["Compressor", "NoneCompressor", "FP16Compressor"])
def test_compressors_are_classes(compressor):
    assert inspect.isclass(named("horovod.torch.compression", compressor))


def test_the_set_of_all_ranks():
    assert named("horovod.torch", "global_process_set").process_set_id == 0
    assert str(named("horovod.torch", "ProcessSet")([2, 0])) == "ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)"


def test_the_optimizer_with_adasum():
    import torch

    import horovod.torch as hvd
    from horovod.torch.optimizer import _DistributedAdasumOptimizer

    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1), op=hvd.Adasum)
    assert isinstance(optimizer, _DistributedAdasumOptimizer)


@pytest.mark.parametrize(
    "name, base", [("HorovodInternalError", RuntimeError), ("HostsUpdatedInterrupt", RuntimeError), ("HorovodVersionMismatchError", ImportError)]
)
def test_exceptions(name, base):
    assert issubclass(named("horovod.common.exceptions", name), base)


def test_an_interrupt_says_whether_to_synchronise():
    interrupt = named("horovod.common.exceptions", "HostsUpdatedInterrupt")
    assert (interrupt().skip_sync, interrupt(skip_sync=True).skip_sync) == (False, True)
