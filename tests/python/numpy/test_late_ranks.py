"""The timeline shows which rank was late, and for how long the others waited for it."""

import json
import time

import pytest

import numpy as np

SLEEP_SECONDS = 0.3
SEEN_SECONDS = 0.1  # the least of it that must be seen: a rank that is not late may be held up by other processes


def each_rank_is_late_once(path):
    import runjob.numpy as hvd

    hvd.init()
    hvd.allreduce(np.ones(4), name="known")
    hvd.start_timeline(path)
    for name in ("first", "known"):  # an operation that is new, and one that the ranks announce by its number
        for late in range(hvd.size()):
            hvd.barrier()
            if hvd.rank() == late:
                time.sleep(SLEEP_SECONDS)
            hvd.allreduce(np.ones(4), name=name if name == "known" else f"{name}.{late}")
    hvd.stop_timeline()


def negotiations(path, tensor):
    """Of each negotiation of a tensor: when it began, and the time of each rank's tick, in seconds."""
    trace = json.loads(path.read_text())
    pid = next(event["pid"] for event in trace if event.get("args", {}).get("name") == tensor)
    found = []
    for event in trace:
        if event.get("pid") != pid or event["ph"] == "M":
            continue
        if event.get("name", "").startswith("NEGOTIATE_"):
            found.append((event["ts"] / 1e6, {}))
        elif event["ph"] == "X":
            found[-1][1][int(event["name"])] = event["ts"] / 1e6
    return found


@pytest.mark.parametrize("shared_memory", ["1", "0"])
def test_a_tick_stands_where_its_rank_was_ready(run_ranks, tmp_path, monkeypatch, shared_memory):
    monkeypatch.setenv("RUNJOB_SHARED_MEMORY", shared_memory)
    path = tmp_path / "trace.json"
    run_ranks(each_rank_is_late_once, 3, str(path))
    shown = [negotiations(path, f"allreduce.first.{late}")[0] for late in range(3)]
    shown += negotiations(path, "allreduce.known")
    assert len(shown) == 6
    for late, (begin, ticks) in zip([0, 1, 2] * 2, shown):
        others = [tick for rank, tick in ticks.items() if rank != late]
        assert len(others) == 2
        assert ticks[late] - max(others) >= SEEN_SECONDS, (late, ticks)
        assert begin == min(ticks.values())
