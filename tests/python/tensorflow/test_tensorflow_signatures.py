"""The names that Horovod's scripts for TensorFlow and Keras use, with the arguments and defaults that they count on; ours may take more
arguments behind them."""

import ranks
import tensorflow_cases

PS = ", process_set=global_process_set"
FACTORS = ", prescale_factor=1.0, postscale_factor=1.0"
DEVICES = ", device_dense='', device_sparse='', compression=Compression.none"
TENSORFLOW = {
    "init": "comm=None, process_sets=None",
    **dict.fromkeys(["shutdown", "is_initialized", "size", "rank", "local_size", "local_rank", "cross_size", "cross_rank"], ""),
    **dict.fromkeys(["is_homogeneous", "stop_timeline", "mpi_enabled", "gloo_built", "nccl_built", "cuda_built", "join"], ""),
    "allreduce": f"tensor, average=None{DEVICES}, op=None{FACTORS}, name=None{PS}, ignore_name_scope=False",
    "grouped_allreduce": f"tensors, average=None{DEVICES}, op=None{FACTORS}{PS}, ignore_name_scope=False, name=None",
    "reducescatter": "tensor, device_dense='', compression=Compression.none, op=Average, name=None"
    f"{PS}, ignore_name_scope=False{FACTORS}",
    "grouped_reducescatter": f"tensors, device_dense='', compression=Compression.none, op=Average{PS}{FACTORS}",
    "allgather": f"tensor, name=None, ignore_name_scope=False{PS}",
    "grouped_allgather": f"tensors, name=None, ignore_name_scope=False{PS}",
    "broadcast": f"tensor, root_rank, name=None, ignore_name_scope=False{PS}",
    "broadcast_": f"variables, root_rank, name=None{PS}",
    "alltoall": f"tensor, splits=None, name=None, ignore_name_scope=False{PS}",
    **dict.fromkeys(["size_op", "process_set_included_op"], "process_set_id=0, name=None"),
    **dict.fromkeys(["local_size_op", "rank_op", "local_rank_op"], "name=None"),
    "broadcast_variables": f"variables, root_rank{PS}, inplace=False",
    "broadcast_global_variables": "root_rank",
    "BroadcastGlobalVariablesHook": "root_rank, device=''",
    "broadcast_object": f"obj, root_rank=0, session=None, name=None{PS}",
    "broadcast_object_fn": f"root_rank=0, session=None, name=None{PS}",
    "allgather_object": f"obj, session=None, name=None{PS}",
    "DistributedOptimizer": f"optimizer, name=None, use_locking=False{DEVICES}, sparse_as_dense=False, backward_passes_per_step=1, op=Average, "
    f"gradient_predivide_factor=1.0, average_aggregated_gradients=False, num_groups=0, groups=None{PS}, scale_local_gradients=True",
    "DistributedGradientTape": f"gradtape{DEVICES}, sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, num_groups=0, "
    f"groups=None{PS}, scale_local_gradients=True",
    "PartialDistributedGradientTape": f"gradtape{DEVICES}, sparse_as_dense=False, op=Average, gradient_predivide_factor=1.0, num_groups=0, "
    f"groups=None{PS}, local_layers=None, scale_local_gradients=True",
    "SyncBatchNormalization": "fused=False",
}  # fmt: skip
CALLBACKS = {
    "callbacks.BroadcastGlobalVariablesCallback": "root_rank, device='', local_variables=None",
    "callbacks.MetricAverageCallback": "device=''",
    "callbacks.LearningRateScheduleCallback": "initial_lr, multiplier, start_epoch=0, end_epoch=None, staircase=True, "
    "momentum_correction=True, steps_per_epoch=None",
    "callbacks.LearningRateWarmupCallback": "initial_lr, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None, verbose=0",
    "callbacks.BestModelCheckpoint": "monitor='val_loss', verbose=0, save_weights_only=False, mode='auto', save_freq='epoch'",
}
KERAS = {
    **CALLBACKS,
    "DistributedOptimizer": f"optimizer, name=None{DEVICES}, sparse_as_dense=False, gradient_predivide_factor=1.0, op=Average, "
    f"backward_passes_per_step=1, average_aggregated_gradients=False, num_groups=0, groups=None{PS}, scale_local_gradients=True",
    "PartialDistributedOptimizer": f"optimizer, name=None{DEVICES}, sparse_as_dense=False, gradient_predivide_factor=1.0, op=Average, "
    f"backward_passes_per_step=1, average_aggregated_gradients=False, groups=None{PS}, local_layers=None, scale_local_gradients=True",
    "broadcast_global_variables": "root_rank",
    "allgather": "value, name=None",
    "broadcast": "value, root_rank, name=None",
    "reducescatter": "value, name=None, op=Average",
    "allreduce": f"value, name=None, average=None{FACTORS}, op=None, compression=Compression.none",
    "load_model": "filepath, custom_optimizers=None, custom_objects=None, compression=Compression.none, legacy_opts=False",
}
HOROVOD_KERAS = {
    **KERAS,
    "DistributedOptimizer": f"optimizer, name=None{DEVICES}, sparse_as_dense=False, gradient_predivide_factor=1.0, op=Average, "
    "num_groups=0, groups=None",
    "callbacks.BestModelCheckpoint": "monitor='val_loss', verbose=0, mode='auto', save_freq='epoch'",
}
PRIVATE = {
    "_allreduce": f"tensor, name=None, op=Sum{FACTORS}, ignore_name_scope=False{PS}",
    "mpi_ops._grouped_allreduce": f"tensors, name=None, op=Sum{FACTORS}, ignore_name_scope=False{PS}",
}
TABLES = {
    "horovod.tensorflow": {**TENSORFLOW, **PRIVATE},
    "runjob.tensorflow": TENSORFLOW,
    "horovod.tensorflow.keras": KERAS,
    "runjob.tensorflow.keras": KERAS,
    "horovod.keras": HOROVOD_KERAS,
    "runjob.keras": KERAS,
}


def signatures():
    """What differs."""
    import importlib
    import inspect

    scope = vars(importlib.import_module("runjob.tensorflow"))
    wrong = []
    for module, table in TABLES.items():
        for name, text in table.items():
            value = importlib.import_module(module)
            for part in name.split("."):
                value = getattr(value, part)
            ours = list(inspect.signature(value).parameters.values())
            expected = list(inspect.signature(eval(f"lambda {text}: None", dict(scope))).parameters.values())
            for mine, theirs in zip(ours, expected):
                if mine.name != theirs.name or mine.default != theirs.default:
                    wrong.append(f"{module}.{name}: {mine}, not {theirs}")
            if len(ours) < len(expected):
                wrong.append(f"{module}.{name} has only {len(ours)} arguments")
            wrong += [f"{module}.{name} needs {more}" for more in ours[len(expected) :] if more.default is more.empty and more.kind < 2]
    return wrong


def modules_in_dir():
    """The modules among the names that dir() lists."""
    import importlib
    import types

    loaded = {name: importlib.import_module(name) for name in ("runjob.tensorflow", *TABLES)}
    return {name: [each for each in dir(module) if isinstance(getattr(module, each, None), types.ModuleType)] for name, module in loaded.items()}


PUBLIC_MODULES = {
    "runjob.tensorflow": ["elastic"], "horovod.tensorflow": ["elastic", "keras", "mpi_ops", "util"],
    **dict.fromkeys(["runjob.tensorflow.keras", "horovod.tensorflow.keras", "runjob.keras", "horovod.keras"], ["callbacks", "elastic"]),
}  # fmt: skip

CASES = {signatures: [], modules_in_dir: {name: PUBLIC_MODULES[name] for name in ("runjob.tensorflow", *TABLES)}}

test_every_case = tensorflow_cases.test(CASES)


def test_docs_show_the_examples():
    for page, example in (("tensorflow", "tensorflow_digits"), ("keras", "keras_digits")):
        text = (ranks.ROOT / "docs" / f"{page}.md").read_text()
        shown = "".join(line[4:] or "\n" for line in text.splitlines(keepends=True))
        assert (ranks.ROOT / "examples" / f"{example}.py").read_text() in shown, page
