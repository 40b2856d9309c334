"""Gives all ranks the same parameters and optimizer state at the start. Python objects are in objects.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from .. import job
from ..handles import synchronize
from ..process_sets import ProcessSet, global_process_set
from . import gpus
from .comparison import compare, form_of, is_part, named_tensors, objection_to
from .operations import broadcast_async_
from .parameter_names import group_names, keys_among_ranks
from .tensors import DTYPES


def broadcast_parameters(
    params: Mapping[str, torch.Tensor] | Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Overwrites each tensor with root_rank's tensor of the same name, on the ranks of the set. Tensors without a name
    are identified by their place.

    params  model.state_dict(), model.named_parameters(), or tensors: with the same names, shapes and dtypes on all ranks, in any order.
            Of whatever dtype; one that runjob cannot reduce, such as complex64 or float8, is copied as well.
    Blocks  until all ranks of the set have called it and have the values of root_rank.
    Errors  On all ranks: MismatchError for tensors that differ in name, shape or dtype; ValueError for a value without
            bytes to copy, such as one that is not a tensor, a sparse or quantized tensor, or one on the device meta.
            The errors name the tensor and the ranks. Nothing has been overwritten then.
    """
    operation = "broadcast_parameters"
    named = named_tensors(params, operation)
    objection = next((f"{name} {text}" for name, tensor in named.items() if (text := objection_to(tensor))), "")
    facts = {} if objection else {name: form_of(tensor) + _repetition(tensor) for name, tensor in named.items()}
    compare(operation, {"root_rank": str(root_rank), **facts}, objection, "Make the same model on all ranks before it", process_set)
    _broadcast_all({name: _without_repetition(tensor) for name, tensor in sorted(named.items())}, root_rank, process_set)


class _Placeholder(NamedTuple):
    """Replaces a tensor in a state that is sent as an object. The tensor itself is sent afterwards.

    is_with_parameter  the tensor lies on the device of its parameter, and not always on the CPU as Adam's count of steps does.
    is_on_gpu          the root sends it from a GPU.
    """

    number: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    is_with_parameter: bool
    is_on_gpu: bool


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Gives every rank the state and options (learning rate and so on) of root_rank's optimizer. Ranks without a state
    get one. The state of a parameter lies on the device that the parameter has on the rank.

    optimizer  a parameter's state is found by the parameter's name, in any order of the parameters, if the optimizer
               knows names: one of DistributedOptimizer(named_parameters=), or one that PyTorch has made from named
               parameters. Otherwise it is found by the parameter's place.
    model      not needed; taken for compatibility.
    Blocks     until all ranks of the set have called it and have the state of root_rank.
    Errors     ValueError for torch.optim.LBFGS. On all ranks: MismatchError for parameters that differ in number, name, shape, dtype or
               group, ValueError for a state that has no values to copy, such as a sparse tensor. They name the parameter and the ranks.
               Nothing was changed then.
    """
    operation = "broadcast_optimizer_state"
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(f"{operation} cannot broadcast the state of torch.optim.LBFGS")
    facts, outline, objection = {"root_rank": str(root_rank)}, None, ""
    sent: list[torch.Tensor] = []
    is_root = job.rank() == root_rank
    try:
        facts |= _facts(optimizer)
        outline = _outline(optimizer, sent) if is_root else None
    except ValueError as error:
        objection = str(error)
    outlines = compare(operation, facts, objection, "Make the same optimizer on all ranks before it", process_set, outline)
    if root_rank not in outlines:
        raise ValueError(f"{operation}: root_rank={root_rank} is not among the ranks {list(outlines)}")
    tensors = sent if is_root else _rooms(optimizer, outlines[root_rank])
    _broadcast_all({f"optimizer_state.{i}": tensor for i, tensor in enumerate(tensors)}, root_rank, process_set)
    if not is_root:
        _adopt(optimizer, outlines[root_rank], tensors)


def _broadcast_all(tensors: Mapping[str, torch.Tensor], root_rank: int, process_set: ProcessSet) -> None:
    """Broadcasts all tensors at once. A tensor that is not contiguous, such as a channels_last weight, or a view that
    is to be negated or conjugated, is copied before and after. A tensor of a dtype that the library does not know is
    sent as bytes.
    """
    pending = []
    for name, tensor in tensors.items():
        dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
        sent = dense if dense.dtype in DTYPES else dense.view(-1).view(torch.uint8)
        pending.append((tensor, dense, broadcast_async_(sent, root_rank, name, process_set)))
    for tensor, dense, handle in pending:
        synchronize(handle)
        if dense.data_ptr() != tensor.data_ptr() and job.rank() != root_rank:
            tensor.detach().copy_(dense)


def _repeated(tensor: torch.Tensor) -> list[int]:
    """The dimensions along which all elements share one element of memory, as expand() makes them."""
    return [dim for dim, (extent, stride) in enumerate(zip(tensor.shape, tensor.stride())) if stride == 0 and extent > 1]


def _repetition(tensor: torch.Tensor) -> str:
    repeated = _repeated(tensor)
    return f" expanded in the dimensions {repeated}" if repeated else ""


def _without_repetition(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that have memory of their own."""
    for dim in _repeated(tensor):
        tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _facts(optimizer: torch.optim.Optimizer) -> dict[str, str]:
    """The facts that must be the same on all ranks. Errors  ValueError for parameters that FSDP has divided."""
    keys = keys_among_ranks(optimizer)
    facts = {"the number of parameter groups": str(len(keys))}
    for group, in_group, name in zip(optimizer.param_groups, keys, group_names(keys)):
        for parameter, key in zip(group["params"], in_group):
            if is_part(parameter):
                raise ValueError(f"{key} {objection_to(parameter)}")
            facts[key] = form_of(parameter) + (f" in the group of {name}" if len(keys) > 1 else "")
    return facts


def _outline(optimizer: torch.optim.Optimizer, tensors: list[torch.Tensor]) -> dict[str, dict[str, Any]]:
    """The options and states of an optimizer without object identities: by the group's name, its options, and its
    states by the parameter's key. Placeholders replace the tensors, which are added to `tensors`.

    Errors  ValueError for a tensor that has no bytes to send.
    """
    keys = keys_among_ranks(optimizer)
    outline = {}
    for group, in_group, name in zip(optimizer.param_groups, keys, group_names(keys)):
        options = {key: value for key, value in group.items() if key not in ("params", "param_names")}
        outline[name] = {
            "options": _replace_tensors(options, tensors, _device_of_group(group), f"the group of {name}"),
            "states": {
                key: _replace_tensors(dict(optimizer.state.get(parameter, {})), tensors, parameter.device, f"the state of {key}")
                for key, parameter in zip(in_group, group["params"])
            },
        }
    return outline


def _device_of_group(group: dict[str, Any]) -> torch.device:
    return group["params"][0].device if group["params"] else torch.device("cpu")


def _adopt(optimizer: torch.optim.Optimizer, outline: dict[str, dict[str, Any]], tensors: list[torch.Tensor]) -> None:
    """The inverse of _outline(), in place, because schedulers keep references to the groups."""
    keys = keys_among_ranks(optimizer)
    for group, in_group, name in zip(optimizer.param_groups, keys, group_names(keys)):
        received = outline[name]
        group.update(_insert_tensors(received["options"], tensors, _device_of_group(group)))
        for parameter, key in zip(group["params"], in_group):
            state = received["states"][key]
            if state:
                optimizer.state[parameter] = _insert_tensors(state, tensors, parameter.device)
            else:
                optimizer.state.pop(parameter, None)


def _replace_tensors(value: Any, tensors: list[torch.Tensor], device: torch.device, place: str) -> Any:
    """`value` with Placeholders for its tensors. `device` is that of the parameter. `place` names the value in errors."""
    if isinstance(value, torch.Tensor):
        objection = objection_to(value)
        if objection:
            raise ValueError(f"a tensor in {place} {objection}")
        is_with_parameter = value.device == device and (value.dim() > 0 or not value.is_cpu)
        tensors.append(value if is_with_parameter else value.cpu())
        return _Placeholder(len(tensors) - 1, tuple(value.shape), value.dtype, is_with_parameter, gpus.is_on_gpu(tensors[-1]))
    return _map(value, lambda item: _replace_tensors(item, tensors, device, place))


def _insert_tensors(value: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    """`value` with tensors for its Placeholders. `device` is that of the parameter."""
    if isinstance(value, _Placeholder):
        tensor = tensors[value.number]
        return tensor.to(device) if value.is_with_parameter else tensor
    return _map(value, lambda item: _insert_tensors(item, tensors, device))


def _rooms(optimizer: torch.optim.Optimizer, outline: dict[str, dict[str, Any]]) -> list[torch.Tensor]:
    """Memory for the root's tensors. If one lies on a GPU, it is on the GPU of the parameter which the optimizer has here."""
    rooms: dict[int, torch.Tensor] = {}

    def add(value: Any, device: torch.device) -> None:
        if isinstance(value, _Placeholder):
            rooms[value.number] = torch.empty(value.shape, dtype=value.dtype, device=device if value.is_on_gpu else "cpu")
        else:
            _map(value, lambda item: add(item, device))

    keys = keys_among_ranks(optimizer)
    for group, in_group, name in zip(optimizer.param_groups, keys, group_names(keys)):
        add(outline[name]["options"], _device_of_group(group))
        for parameter, key in zip(group["params"], in_group):
            add(outline[name]["states"][key], parameter.device)
    return [rooms[number] for number in range(len(rooms))]


def _map(value: Any, function: Any) -> Any:
    """Applies `function` to each element of a dict, list or tuple, and returns a container of the same kind. Returns
    other values unchanged.
    """
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [function(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
