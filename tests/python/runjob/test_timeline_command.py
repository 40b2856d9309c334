"""python/runjob/timeline.py: for which rank the others waited."""

import json
import re
import subprocess
import sys

import pytest

import ranks
from runjob import timeline

PROGRAM = """
import time
import numpy as np
import runjob.numpy as hvd

hvd.init()
hvd.barrier()
for turn in range(5):
    if hvd.rank() == 1:
        time.sleep(0.2)
    hvd.allreduce(np.ones(100), name="late")
hvd.barrier()
"""


def test_the_rank_that_is_late_comes_first(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    trace = tmp_path / "trace.json"
    command = [str(ranks.LAUNCHER), "-np", "3", "--timeline-filename", str(trace), sys.executable, str(tmp_path / "train.py")]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    shown = ranks.python("-m", "runjob.timeline", str(trace))
    assert (shown.returncode, shown.stderr) == (0, "")
    first = re.search(r"waited for alone\n +(\d) +(\d+) +([\d.]+) ms\n", shown.stdout)
    assert first[1] == "1" and int(first[2]) >= 3, shown.stdout
    assert re.search(r"^  operation +runs +ranks waited +data moved\n  allreduce.late +5 ", shown.stdout, re.MULTILINE), shown.stdout


def row(pid, name, ticks, data=(0, 0)):
    """The events of one operation, as the trace has them."""
    begin = {"name": "NEGOTIATE_ALLREDUCE", "ph": "B", "ts": ticks[0][0], "pid": pid}
    marks = [{"name": str(rank), "ph": "X", "ts": ts, "pid": pid, "dur": 0} for ts, rank in ticks]
    inner = [{"name": "QUEUE", "ph": "B", "ts": data[0], "pid": pid}, {"ph": "E", "ts": data[0], "pid": pid}]
    end = [{"name": "ALLREDUCE", "ph": "B", "ts": data[0], "pid": pid}, *inner, {"ph": "E", "ts": data[1], "pid": pid, "args": {"bytes": 4}}]
    name_event = {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
    return [name_event, begin, *marks, {"ph": "E", "ts": data[0], "pid": pid}, *end]


def test_waits_that_overlap_count_once():
    events = row(1, "a", [(0, 0), (1000, 2), (5000, 1)], (5000, 6000)) + row(2, "b", [(500, 0), (2000, 2), (6000, 1)], (6000, 6500))
    found = timeline.operations(events)
    assert [(each.name, each.wait(), each.wait_for_last(), each.data) for each in found] == [
        ("a", (0, 5000), (1000, 5000), (5000, 6000)), ("b", (500, 6000), (2000, 6000), (6000, 6500)),
    ]  # fmt: skip
    assert timeline.milliseconds(each.wait_for_last() for each in found) == 5.0
    lines = timeline.report(found, {}).splitlines()
    assert lines[0] == "2 operations in 6.5 ms"
    assert [line.split() for line in lines[3:6]] == [["1", "2", "5.0", "ms"], ["0", "0", "0.0", "ms"], ["2", "0", "0.0", "ms"]]
    assert [line.split() for line in lines[7:11]] == [
        ["rank", "communication", "waits", "data"], ["0", "100.0%", "76.9%", "23.1%"], ["1", "23.1%", "0.0%", "23.1%"],
        ["2", "84.6%", "61.5%", "23.1%"],
    ]  # fmt: skip
    assert [line.split() for line in lines[13:]] == [["b", "1", "5.5", "ms", "0.5", "ms"], ["a", "1", "5.0", "ms", "1.0", "ms"]]


def test_ranks_are_named_with_their_hosts_and_hosts_with_the_mean_of_their_ranks():
    names = [{"name": "process_name", "pid": 10 + rank, "args": {"name": f"rank {rank} on {host}"}} for rank, host in enumerate(["s1", "s1", "s2"])]
    events = names + row(1, "a", [(0, 0), (1000, 2), (5000, 1)], (5000, 10000))
    host_of = timeline.hosts(events)
    assert host_of == {0: "s1", 1: "s1", 2: "s2"}
    lines = timeline.report(timeline.operations(events), host_of).splitlines()
    assert [line.split() for line in lines[7:13]] == [
        ["rank", "communication", "waits", "data", "host"], ["0", "100.0%", "50.0%", "50.0%", "s1"], ["1", "50.0%", "0.0%", "50.0%", "s1"],
        ["2", "90.0%", "40.0%", "50.0%", "s2"], ["mean", "75.0%", "25.0%", "50.0%", "s1"], ["mean", "90.0%", "40.0%", "50.0%", "s2"],
    ]  # fmt: skip


def test_a_tick_that_is_late_counts_from_the_end_of_the_operation_at_most():
    late = timeline.Operation("a", [(0, 0), (1500, 1), (2500, 2)], (1000, 2000))
    assert timeline.shares([late]) == {0: (0.5, 0.5), 1: (0.0, 0.25), 2: (0.0, 0.0)}


def test_rows_that_repeat_another_one_or_have_not_ended_are_left_out():
    bucket, gradient = row(1, "bucket", [(0, 0), (9, 1)], (9, 12)), row(2, "gradient", [(0, 0), (9, 1)], (9, 12))
    gradient[1:1] = [{"name": "WAIT_FOR_OTHER_TENSOR_DATA", "ph": "B", "ts": 0, "pid": 2}, {"ph": "E", "ts": 0, "pid": 2}]
    unfinished = row(1, "bucket", [(20, 1), (29, 0)], (29, 32))[1:-1]
    alone = row(3, "alone", [(0, 0)], (0, 1))
    assert [each.name for each in timeline.operations(bucket + gradient + unfinished + alone)] == ["bucket"]


def test_the_longest_waits_are_shown():
    found = [timeline.Operation(f"operation {i:02}", [(0, 0), (1000 * i, 1)], (1000 * i, 1000 * i)) for i in range(15)]
    assert timeline.report(found, {}).splitlines()[-11].split()[1] == "14"
    assert timeline.report(found, {}).endswith("\n  ... and 5 more")


@pytest.mark.parametrize("text, message", [
    (None, "cannot be read as a timeline: No such file or directory"),
    ("no JSON", "cannot be read as a timeline: Expecting value"),
    ('{"a": 1}', "cannot be read as a timeline: "),
    (json.dumps(row(1, "a", [(0, 0)])), "has no operation for which ranks waited: a job of one rank, or one that has just begun?"),
])
def test_what_is_no_timeline_is_named(tmp_path, text, message):
    file = tmp_path / "trace.json"
    if text is not None:
        file.write_text(text)
    shown = ranks.python("-m", "runjob.timeline", str(file))
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith(f"python -m runjob.timeline: {file} {message}") and shown.stderr.count("\n") == 1
