"""start_timeline() and stop_timeline(): a trace of a part of the job."""

import json

import pytest
import torch


def record_a_part(path, all_ranks):
    import runjob.torch as hvd

    hvd.init()
    hvd.allreduce(torch.ones(4), name="before")
    hvd.start_timeline(path, all_ranks=all_ranks)
    hvd.allreduce(torch.ones(4), name="during")
    hvd.barrier()
    hvd.stop_timeline()
    hvd.allreduce(torch.ones(4), name="after")


def read(path):
    """The events of each process of the trace, by its name."""
    trace = json.loads(path.read_text())
    names = {event["pid"]: event["args"]["name"] for event in trace if "name" in event.get("args", {})}
    return {name: [event for event in trace if event.get("pid") == pid and event["ph"] != "M"] for pid, name in names.items()}


def test_only_what_lies_between_start_and_stop_is_recorded(run_ranks, tmp_path):
    path = tmp_path / "trace.json"
    run_ranks(record_a_part, 2, str(path), False)
    tensors = read(path)
    assert "allreduce.during" in tensors
    assert not {"allreduce.before", "allreduce.after"} & set(tensors)
    assert [event["name"] for event in tensors["allreduce.during"] if "name" in event][-2:] == ["QUEUE", "SHM_ALLREDUCE"]


def test_each_rank_has_a_track(run_ranks, tmp_path):
    path = tmp_path / "trace.json"
    run_ranks(record_a_part, 3, str(path), True)
    tracks = read(path)
    for rank in range(3):
        begun = [event for event in tracks[f"rank {rank} on localhost"] if event["ph"] == "b" and event["name"] == "ALLREDUCE"]
        assert [event["args"]["tensor"] for event in begun][:1] == ["allreduce.during"]


def start_where_it_cannot():
    import runjob.torch as hvd

    with pytest.raises(ValueError, match="not initialized"):
        hvd.start_timeline("/tmp/never.json")
    hvd.init()
    with pytest.raises(ValueError, match="cannot create '/nonexistent/trace.json': No such file"):
        hvd.start_timeline("/nonexistent/trace.json")
    hvd.stop_timeline()


def test_errors_say_why(run_ranks):
    run_ranks(start_where_it_cannot, 1)
