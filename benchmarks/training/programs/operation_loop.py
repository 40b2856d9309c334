"""A training loop of a user's own: it starts one allreduce for each gradient, and waits for all of them before the step."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

#: The models whose gradients are reduced like this: in the hooks of the backward pass, or after it.
IN_HOOKS, AFTER = "loop-hooks", "loop-after"


def network() -> nn.Module:
    """75 small layers with 150 gradients, so that the operations take a large part of the step."""
    layers: list[nn.Module] = [nn.Flatten(), nn.Linear(3072, 64)]
    for _ in range(73):
        layers += [nn.Tanh(), nn.Linear(64, 64)]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def with_operations(module: str, model_name: str) -> tuple[int, Any]:
    """As training.with_horovod(): `module` is horovod.torch or runjob.torch."""
    hvd = importlib.import_module(module)
    hvd.init()

    def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        names = {parameter: name for name, parameter in model.named_parameters()}
        handles: list[Any] = []

        def start(parameter: torch.Tensor) -> None:
            handles.append(hvd.allreduce_async_(parameter.grad, name=names[parameter]))

        def finish(*_: Any) -> None:
            if model_name == AFTER:
                for parameter in reversed(names):
                    start(parameter)
            for handle in handles:
                hvd.synchronize(handle)
            handles.clear()

        if model_name == IN_HOOKS:
            for parameter in names:
                parameter.register_post_accumulate_grad_hook(start)
        optimizer.register_step_pre_hook(finish)
        return model, optimizer

    return hvd.rank(), wrap
