"""torch.distributed.checkpoint over a group of runjob's: each rank writes its part of a model and reads it again."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from both_backends import over
from installed_ranks import run
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard


def model_and_optimizer(seed):
    torch.manual_seed(seed)
    model = fully_shard(nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4)))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    model(torch.ones(3, 8)).sum().backward()
    optimizer.step()
    return model, optimizer


def whole(model):
    return [parameter.full_tensor().tolist() for parameter in model.parameters()]


def saved_and_loaded(folder):
    model, optimizer = model_and_optimizer(1)
    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    dcp.save(states, checkpoint_id=folder)
    other, its_optimizer = model_and_optimizer(2)
    before = whole(other)
    states = dict(zip(("model", "optimizer"), get_state_dict(other, its_optimizer)))
    dcp.load(states, checkpoint_id=folder)
    set_state_dict(other, its_optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
    moments = [each["exp_avg"].full_tensor().tolist() for each in optimizer.state.values()]
    loaded = [each["exp_avg"].full_tensor().tolist() for each in its_optimizer.state.values()]
    return before != whole(model), whole(other) == whole(model), loaded == moments


def save_and_load(folder):
    return over("runjob", saved_and_loaded, folder)


def test_a_model_and_its_optimizer(call_ranks, tmp_path):
    assert call_ranks(save_and_load, 2, str(tmp_path / "checkpoint")) == [(True, True, True)] * 2
    assert len(list((tmp_path / "checkpoint").glob("*.distcp"))) == 2


def load_on_fewer_ranks(folder):
    def load():
        model, _ = model_and_optimizer(3)
        state = {"model": get_model_state_dict(model)}
        dcp.load(state, checkpoint_id=folder)
        return [value.full_tensor().tolist() for value in state["model"].values()]

    return over("runjob", load)


def save_only(folder):
    def save():
        model, _ = model_and_optimizer(1)
        dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=folder)
        return whole(model)

    return over("runjob", save)


def test_other_ranks_read_what_some_have_written(call_ranks, tmp_path):
    written = call_ranks(save_only, 2, str(tmp_path / "checkpoint"))
    assert call_ranks(load_on_fewer_ranks, 3, str(tmp_path / "checkpoint")) == [written[0]] * 3


def saved_beside_training(folder):
    """A thread writes the checkpoint, with collectives of its own group, while the training goes on."""
    beside = dist.new_group()
    model, optimizer = model_and_optimizer(1)
    then = whole(model)
    future = dcp.async_save({"model": get_model_state_dict(model)}, checkpoint_id=folder, process_group=beside)
    for _ in range(5):
        model(torch.ones(3, 8)).sum().backward()
        optimizer.step()
    future.result()
    has_changed = whole(model) != then
    state = {"model": get_model_state_dict(model)}
    dcp.load(state, checkpoint_id=folder)
    return has_changed, [value.full_tensor().tolist() for value in state["model"].values()] == then


def save_beside_training(folder):
    return over("runjob", saved_beside_training, folder)


def test_a_thread_writes_a_checkpoint(call_ranks, tmp_path):
    assert call_ranks(save_beside_training, 2, str(tmp_path / "checkpoint")) == [(True, True)] * 2


IN_A_PROCESS = """
import sys, torch
import torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.fsdp import fully_shard

def main():
    dist.init_process_group("gloo")
    model = fully_shard(torch.nn.Linear(8, 4))
    then = model.weight.full_tensor().clone()
    future = dcp.async_save(
        {"model": model.state_dict()}, checkpoint_id=sys.argv[1], async_checkpointer_type=AsyncCheckpointerType.PROCESS)
    with torch.no_grad():
        model.weight.zero_()
    dist.all_reduce(torch.ones(3))
    future.result()
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=sys.argv[1])
    print(type(dist.group.WORLD).__name__, torch.equal(state["model"]["weight"].full_tensor(), then))
    dist.destroy_process_group()

if __name__ == "__main__":  # the process of the checkpoint imports this file
    main()
"""


@pytest.mark.thorough
def test_a_process_writes_a_checkpoint_over_gloo(installed, tmp_path):
    """It makes a group of its own, of the name that it knows: "gloo", for which the rank's own process has runjob."""
    (tmp_path / "save.py").write_text(IN_A_PROCESS)
    arguments = [str(tmp_path / "checkpoint")]
    lines, _ = run(installed, None, "--torch-backend", "runjob", arguments=[str(tmp_path / "save.py"), *arguments])
    assert lines == ["RunjobProcessGroup True"] * 2
