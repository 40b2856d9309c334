"""python/runjob/torch/slot.py: what a program does to a gradient is noticed, in this process."""

from __future__ import annotations

import pytest
import torch

from runjob.torch.slot import Slot


def _slot(gradient: torch.Tensor | None) -> Slot:
    slot = Slot(torch.zeros(3, requires_grad=True), "weight", 2)
    slot.parameter.grad = gradient
    return slot


def _replace(parameter: torch.Tensor) -> None:
    parameter.grad = parameter.grad.clone()


def _remove(parameter: torch.Tensor) -> None:
    parameter.grad = None


@pytest.mark.parametrize(
    "change, is_noticed",
    [
        (lambda parameter: parameter.grad.mul_(2), True),
        (lambda parameter: torch.nn.utils.clip_grad_norm_([parameter], 0.1), True),
        (_replace, True),
        (_remove, True),
        (lambda parameter: parameter.grad.norm(), False),
        (lambda parameter: parameter.grad.data.mul_(2), False),  # PyTorch does not count it
    ],
)
def test_changes_are_noticed_where_pytorch_counts_them(change, is_noticed):
    slot = _slot(torch.ones(3))
    slot.see(slot.parameter.grad)
    assert slot.is_as_seen()
    change(slot.parameter)
    assert slot.is_as_seen() != is_noticed


def test_a_part_of_a_buffer_is_not_changed_with_the_buffer():
    buffer = torch.zeros(6)
    slot = _slot(buffer[:3])
    slot.see(slot.parameter.grad)
    buffer[3:].fill_(1)
    assert slot.is_as_seen()


def test_a_gradient_of_inference_mode_has_no_count():
    with torch.inference_mode():
        gradient = torch.ones(3)
    slot = _slot(gradient)
    slot.see(gradient)
    assert slot.is_as_seen()


def test_what_no_round_has_reduced_is_left_out_of_it():
    slot = _slot(None)
    slot.end_round(is_anywhere=False)
    assert not slot.is_left_out()
    slot.parameter.grad = torch.ones(3)  # by hand
    assert slot.is_left_out()
    slot.end_round(is_anywhere=False)  # left from an earlier step
    assert not slot.is_left_out()
    slot.passes_left -= 1
    assert slot.is_left_out()
    slot.end_round(is_anywhere=True)
    assert not slot.is_left_out() and slot.is_reduced


def test_a_reduced_gradient_is_cleared_when_it_is_another_one():
    slot = _slot(torch.ones(3))
    slot.end_round(is_anywhere=True)
    assert not slot.was_cleared()
    slot.parameter.grad.add_(1)
    assert not slot.was_cleared()
    slot.parameter.grad = torch.ones(3)
    assert slot.was_cleared()
