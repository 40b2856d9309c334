"""PyTorch's tensors as arrays of a state."""

from __future__ import annotations

from typing import Any

import torch

from ...elastic.array_kinds import ArrayKind, Form


class TorchTensors(ArrayKind):
    """torch.Tensor itself, not its subclasses, dense, with values. Tensors of a GPU are copied on the GPU, or to pinned
    memory if the GPU has no room.
    """

    name = "torch"

    def takes(self, value: Any) -> bool:
        return type(value) is torch.Tensor and value.layout is torch.strided and not value.is_meta and not value.is_quantized

    def form(self, value: torch.Tensor) -> Form:
        return Form(self.name, tuple(value.shape), value.dtype, value.nbytes)

    def dtype_name(self, dtype: torch.dtype) -> str:
        return str(dtype).removeprefix("torch.")

    def dtype_named(self, name: str) -> torch.dtype:
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"{name} is no dtype of PyTorch")
        return dtype

    def is_far(self, value: torch.Tensor) -> bool:
        return not value.is_cpu

    def copy_in(self, form: Form, memory: memoryview) -> torch.Tensor:
        if not form.nbytes:
            return torch.empty(form.shape, dtype=form.dtype, device="cpu")
        return torch.frombuffer(memory, dtype=form.dtype).view(form.shape)

    def copy_beside(self, value: torch.Tensor) -> torch.Tensor:
        try:
            return torch.empty(value.shape, dtype=value.dtype, device=value.device)
        except torch.cuda.OutOfMemoryError:
            return torch.empty(value.shape, dtype=value.dtype, device="cpu", pin_memory=True)

    def save(self, copy: torch.Tensor, value: torch.Tensor) -> None:
        copy.copy_(value.detach())

    def restore(self, value: torch.Tensor, copy: torch.Tensor) -> torch.Tensor:
        value.detach().copy_(copy)
        return value

    def new(self, copy: torch.Tensor) -> torch.Tensor:
        return copy.clone()
