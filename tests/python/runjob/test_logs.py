"""What a job writes to standard error at each log level."""

import re
import subprocess
import sys

import pytest

import ranks

SCRIPT = """
import numpy, runjob.numpy as hvd
hvd.init()
for _ in range(3):
    hvd.allreduce(numpy.ones(1), name="x")
hvd.shutdown()
"""
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: "


def log_of(*options, np=2, **variables):
    """The runtime's lines of a job, without the tags that the launcher puts before them."""
    done = subprocess.run(
        [str(ranks.LAUNCHER), "-np", str(np), *options, sys.executable, "-c", SCRIPT],
        env=ranks.environment(**variables), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line.split("<stderr>:")[-1] for line in done.stderr.splitlines() if "runjob: " in line]


def test_by_default_a_job_logs_nothing():
    assert log_of() == []


@pytest.mark.parametrize("prefix", ["HOROVOD", "RUNJOB"])
def test_info_names_the_place_of_each_rank_and_its_backend_with_the_reason(prefix):
    lines = log_of(**{f"{prefix}_LOG_LEVEL": "info"})
    assert len(lines) == 4, lines
    text = "\n".join(lines)
    for rank in range(2):
        start = rf"runjob: \[{TIME}I job\.cc:\d+\] rank {rank} on localhost: "
        place = rf"init\(\): rank {rank} of 2, local rank {rank} of 2; hosts: 1 \(localhost\); generation 0; runjob \d+\.\S+$"
        assert re.search(start + place, text, re.MULTILINE), text
        backend = "backend: shared memory, because all 2 ranks are on one host$"
        assert re.search(start + backend, text, re.MULTILINE), text


def test_a_fallback_has_its_reason():
    text = "\n".join(log_of(HOROVOD_LOG_LEVEL="INFO", RUNJOB_SHARED_MEMORY="0"))
    assert text.count("backend: TCP between all 2 ranks, because RUNJOB_SHARED_MEMORY is 0") == 2, text


def test_a_rank_alone_says_so():
    assert "backend: none, because one rank has no other one" in log_of(np=1, RUNJOB_LOG_LEVEL="INFO")[-1]


def test_without_times_a_line_has_its_place_only():
    for line in log_of(HOROVOD_LOG_LEVEL="info", HOROVOD_LOG_HIDE_TIME="1"):
        assert re.match(r"runjob: \[I job\.cc:\d+\] rank ", line), line


def test_debug_has_the_decisions_and_trace_each_operation():
    debug = "\n".join(log_of(RUNJOB_LOG_LEVEL="DEBUG"))
    assert "debug: rank 0 on localhost: the ranks agreed on 1 operation, the first one is 'allreduce.x'" in debug
    assert "debug: rank 0 on localhost: a step repeats; its plan has 0 buckets of several operations" in debug
    assert "trace: " not in debug
    trace = "\n".join(log_of(RUNJOB_LOG_LEVEL="TRACE"))
    for rank in range(2):
        done = re.findall(rf"T \w+\.cc:\d+\] trace: rank {rank} on localhost: allreduce 'allreduce\.x' is done", trace)
        assert len(done) == 3, trace


def test_verbose_shows_each_rank_its_backend():
    lines = log_of("--verbose", "--log-hide-timestamp")
    chosen = [line for line in lines if re.match(r"runjob: \[I job\.cc:\d+\] rank \d on localhost: backend: ", line)]
    assert len(chosen) == 2, lines
    assert not [line for line in log_of("--verbose", "--log-level", "WARNING") if "backend: " in line]
