"""Gradients in the timeline: a row for each, beside the bucket that carried it."""

import json
import re

import torch


def read(path):
    """The events of each row of the trace, by its name."""
    trace = json.loads(path.read_text())
    names = {event["pid"]: event["args"]["name"] for event in trace if "name" in event.get("args", {})}
    return {
        name: [event for event in trace if event.get("pid") == pid and event["ph"] != "M"]
        for pid, name in names.items()
    }


def record_a_training_step(path):
    import runjob.torch as hvd

    hvd.init()
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for step in range(4):
        if step == 2:  # the ranks know the gradients by then
            hvd.start_timeline(path)
        optimizer.zero_grad()
        model(torch.ones(3, 8)).sum().backward()
        optimizer.step()
    hvd.stop_timeline()
    optimizer.zero_grad()
    model(torch.ones(3, 8)).sum().backward()
    optimizer.step()


def test_each_gradient_has_a_row_under_horovods_name(run_ranks, tmp_path):
    path = tmp_path / "trace.json"
    run_ranks(record_a_training_step, 2, str(path))
    rows = read(path)
    shapes = {"0.weight": "[4, 8]", "0.bias": "[4]", "1.weight": "[2, 4]", "1.bias": "[2]"}
    for parameter, shape in shapes.items():
        events = rows[f"allreduce.{parameter}"]
        names = [event["name"] for event in events if event["ph"] == "B"]
        assert names.count("NEGOTIATE_ALLREDUCE") == names.count("ALLREDUCE") == 2, names
        assert sorted(event["name"] for event in events if event["ph"] == "X") == ["0", "0", "1", "1"]
        results = [event["args"] for event in events if event["ph"] == "E" and "args" in event]
        assert [result["shape"] for result in results] == [shape, shape]
        assert len([event for event in events if event["ph"] == "B"]) == len([event for event in events if event["ph"] == "E"])
    activities = {event["name"] for events in rows.values() for event in events if event["ph"] == "B"}
    assert "ALLREDUCE" in activities and "WAIT_FOR_DATA" not in activities  # the data are there when an operation starts
    carriers = [row for row in rows if "(DistributedOptimizer." in row]
    assert any(re.fullmatch(r"allreduce\.\d\.\w+(\.\.\.\d\.\w+)? \(DistributedOptimizer\..*\)", row) for row in carriers), list(rows)
