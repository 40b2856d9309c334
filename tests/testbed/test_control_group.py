import subprocess

import pytest
from testbed.control_group import ControlGroup


@pytest.mark.usefixtures("root")
def test_a_limit_of_processes_holds_for_a_program_and_its_children():
    with ControlGroup(pids=3) as group:
        command = "sleep 600 2>/dev/null & sleep 600 2>/dev/null & sleep 0"
        limited = subprocess.run(["dash", "-c", command], stderr=subprocess.PIPE, text=True, preexec_fn=group.join, timeout=60)
        assert (limited.returncode, "Cannot fork" in limited.stderr) == (2, True)
        group.set(100)
        free = subprocess.run(["dash", "-c", command], stderr=subprocess.PIPE, text=True, preexec_fn=group.join, timeout=60)
        assert (free.returncode, free.stderr) == (0, "")


@pytest.mark.usefixtures("root")
def test_a_limit_of_memory_ends_the_program_that_exceeds_it():
    with ControlGroup(memory=100 << 20) as group:
        command = ["python3", "-c", "print(len(bytearray(b'x') * (300 << 20)))"]
        assert subprocess.run(command, capture_output=True, preexec_fn=group.join, timeout=60).returncode == -9


@pytest.mark.usefixtures("root")
def test_a_quota_of_processor_time_can_be_given():
    with ControlGroup(cpu=150_000) as group:
        assert subprocess.run(["true"], preexec_fn=group.join, timeout=60).returncode == 0
