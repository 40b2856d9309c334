"""Making all ranks start from the same place: parameters and optimizer state. Python objects are in objects.py."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

import torch

from .. import job
from ..handles import synchronize
from ..objects import allgather_object, broadcast_object
from ..process_sets import ProcessSet, global_process_set
from . import gpus
from .operations import broadcast_async_


def broadcast_parameters(
    params: Mapping[str, torch.Tensor] | Iterable[Any], root_rank: int, process_set: ProcessSet = global_process_set
) -> None:
    """Overwrites each tensor with root_rank's, on the ranks of the set.

    params  model.state_dict(), model.named_parameters(), or tensors: the same names, or the same order, on all ranks.
    Errors  ValueError for what is no tensor.
    """
    if isinstance(params, Mapping):
        named = sorted(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, (torch.Tensor, str)):
        named = [item if isinstance(item, tuple) else (None, item) for item in params]
    else:
        raise ValueError(f"broadcast_parameters takes a dict or a list of tensors, not {type(params).__name__}")
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"broadcast_parameters: {name or 'an element'} is {type(tensor).__name__}, not a tensor")
    _broadcast_all(named, root_rank, process_set)


class _Placeholder(NamedTuple):
    """Stands for a tensor in a state that is sent as an object; the tensor itself follows.

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
    """Gives every rank root_rank's state and options (learning rate and so on); ranks that have no state yet get one. The state of a
    parameter lies on the device that the parameter has on the rank.

    model   not needed; taken for compatibility.
    Errors  ValueError for torch.optim.LBFGS, and where parameter groups differ from the root's.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state cannot broadcast the state of torch.optim.LBFGS")
    is_root = job.rank() == root_rank
    sent: list[torch.Tensor] = []
    outline = _outline(optimizer, sent) if is_root else None
    outline = broadcast_object(outline, root_rank, "optimizer_state", process_set)
    tensors = sent if is_root else _rooms(optimizer, outline)
    _broadcast_all([(f"optimizer_state.{i}", tensor) for i, tensor in enumerate(tensors)], root_rank, process_set)
    if not is_root:
        _adopt(optimizer, outline, tensors)


def _broadcast_all(named: list[tuple[str | None, torch.Tensor]], root_rank: int, process_set: ProcessSet) -> None:
    """All at once; a tensor that is not contiguous, such as a channels_last weight, goes through a copy."""
    pending = []
    for name, tensor in named:
        dense = tensor.detach().contiguous()
        pending.append((tensor, dense, broadcast_async_(dense, root_rank, name, process_set)))
    for tensor, dense, handle in pending:
        synchronize(handle)
        if dense.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(dense)


def _outline(optimizer: torch.optim.Optimizer, tensors: list[torch.Tensor]) -> list[dict[str, Any]]:
    """Options and states by group, the states in the order of the group's parameters: no object identities. Placeholders stand for
    the tensors in them, which are added to `tensors`."""
    return [
        {
            "options": _replace_tensors(
                {key: value for key, value in group.items() if key != "params"}, tensors, _device_of_group(group)
            ),
            "states": [
                _replace_tensors(dict(optimizer.state.get(parameter, {})), tensors, parameter.device) for parameter in group["params"]
            ],
        }
        for group in optimizer.param_groups
    ]


def _device_of_group(group: dict[str, Any]) -> torch.device:
    return group["params"][0].device if group["params"] else torch.device("cpu")


def _adopt(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]], tensors: list[torch.Tensor]) -> None:
    """The opposite of _outline(), in place: schedulers keep references to the groups."""
    ours = [len(group["params"]) for group in optimizer.param_groups]
    theirs = [len(group["states"]) for group in groups]
    if ours != theirs:
        raise ValueError(
            f"broadcast_optimizer_state: the optimizer has parameter groups of sizes {ours} here and {theirs} on the root"
        )
    for group, received in zip(optimizer.param_groups, groups):
        options = _insert_tensors(received["options"], tensors, _device_of_group(group))
        if "param_names" in group:  # this rank's own names
            options.pop("param_names", None)
        group.update(options)
        for parameter, state in zip(group["params"], received["states"]):
            if state:
                optimizer.state[parameter] = _insert_tensors(state, tensors, parameter.device)
            else:
                optimizer.state.pop(parameter, None)


def _replace_tensors(value: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    """`device`: that of the parameter."""
    if isinstance(value, torch.Tensor):
        is_with_parameter = value.device == device and (value.dim() > 0 or not value.is_cpu)
        tensors.append(value if is_with_parameter else value.cpu())
        return _Placeholder(len(tensors) - 1, tuple(value.shape), value.dtype, is_with_parameter, gpus.is_on_gpu(tensors[-1]))
    return _map(value, lambda item: _replace_tensors(item, tensors, device))


def _insert_tensors(value: Any, tensors: list[torch.Tensor], device: torch.device) -> Any:
    """`device`: that of the parameter."""
    if isinstance(value, _Placeholder):
        tensor = tensors[value.number]
        return tensor.to(device) if value.is_with_parameter else tensor
    return _map(value, lambda item: _insert_tensors(item, tensors, device))


def _rooms(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]]) -> list[torch.Tensor]:
    """Memory for the root's tensors, on a GPU where they are on one: that of the parameter which the optimizer has here. Where
    the parameters differ from the root's, which is found later, the first one's."""
    rooms: dict[int, torch.Tensor] = {}

    def add(value: Any, device: torch.device) -> None:
        if isinstance(value, _Placeholder):
            rooms[value.number] = torch.empty(value.shape, dtype=value.dtype, device=device if value.is_on_gpu else "cpu")
        else:
            _map(value, lambda item: add(item, device))

    ours = [[parameter.device for parameter in group["params"]] for group in optimizer.param_groups]
    first = next((devices[0] for devices in ours if devices), torch.device("cpu"))
    for number, group in enumerate(groups):
        devices = ours[number] if number < len(ours) else []
        add(group["options"], devices[0] if devices else first)
        for place, state in enumerate(group["states"]):
            add(state, devices[place] if place < len(devices) else first)
    return [rooms[number] for number in range(len(rooms))]


def _map(value: Any, function: Any) -> Any:
    """`function` of each element of a dict, list or tuple, in a container of the same kind; other values unchanged."""
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [function(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
