"""--stack-traces-on-timeout: where each rank was, and which one differs."""

import os
import shutil
import stat

import pytest
from jobs import Marked, python, run
from testbed import with_enough_time

from test_rendezvous import CLIENT

# Rank 2 is somewhere else. Each says when it is there.
PLACES = """
import os, sys, time
def wait():
    print('there', flush=True)
    time.sleep(600)
def even(): wait()
def odd(): wait()
sys.stderr.write('no stack\\n')
odd() if os.environ['RANK'] == '2' else even()
"""
LIMITS = (2, 10, 40)  # within which the ranks must get there


def without_tools(tmp_path, **programs):
    """An environment whose PATH has these programs only."""
    for name, text in programs.items():
        path = tmp_path / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": str(tmp_path)}


def test_the_rank_that_differs_is_named(tmp_path):
    def attempt(limit):
        with Marked("-np", "4", "--timeout", str(limit), "--stack-traces-on-timeout", *python(PLACES),
                    env=without_tools(tmp_path)) as job:
            status, output, errors = job.finish()
            assert job.alive() == []
        assert status == 124
        assert f"runjob: error: the job did not end within the {limit} s of --timeout; stopped 4 ranks\n" in errors
        return errors if output.count("there") == 4 else None

    errors = with_enough_time(attempt, "all ranks are there", LIMITS)
    report = errors[errors.index("runjob: error: the ranks were at different places:\n"):]
    usual, _, other = report.partition("  rank 2 on localhost differs:\n")
    assert "  ranks 0, 1, 3 on localhost:\n    Python, innermost first:\n" in usual
    assert "in even" in usual and "in odd" not in usual
    assert "in odd" in other and "in even" not in other
    assert report.count("no native stack: there is neither eu-stack nor gdb") == 2
    assert "Fatal Python error" not in errors   # the stacks are told once, in the report
    assert errors.count("<stderr>:no stack\n") == 4


def test_native_stacks_of_a_program_behind_a_shell(tmp_path):
    """A tool of our own stands for eu-stack: it is given the program's number, not the shell's."""
    environment = without_tools(tmp_path, eu_stack="""
read -r name < /proc/$3/comm
echo "TID $3:"
echo "#0  0x0000000000000001 in_$name"
""")
    done = run("-np", "2", "--timeout", "1", "-get-stack-traces", "/bin/sh", "-c", "/bin/sleep 600; true", env=environment)
    assert done.returncode == 124
    assert done.stderr.endswith(
        "runjob: error: all ranks were at the same place:\n"
        "  ranks 0, 1 on localhost:\n"
        "    native, innermost first:\n"
        "      in_sleep\n"
    )


@pytest.mark.parametrize("tool", ["eu-stack", "gdb"])
def test_the_real_tools(tmp_path, tool):
    path = shutil.which(tool)
    (tmp_path / tool).symlink_to(path)

    def attempt(limit):
        done = run("-np", "1", "--timeout", "1", "--stack-traces-on-timeout", "/bin/sleep", "600",
                   env={**os.environ, "PATH": str(tmp_path)})
        assert done.returncode == 124
        return None if f"no native stack: {tool} did not end within 2.5 s" in done.stderr else done.stderr

    errors = with_enough_time(attempt, f"{tool} ends in its time", range(10))
    assert "nanosleep" in errors and "    native, innermost first:\n" in errors


@pytest.mark.parametrize("tool", [
    "exec sleep 600",                                   # takes too long, and is killed
    "kill -STOP $2; exec sleep 600",                    # as a debugger that was killed while it attached: the rank is stopped
    "echo 'ptrace: Operation not permitted' >&2",
])
def test_python_stacks_do_not_depend_on_the_tool(tmp_path, tool):
    """Of a rank in open() of a FIFO."""
    os.mkfifo(tmp_path / "fifo")
    code = "import sys\ndef hang(): open(sys.argv[1]).read()\nprint('there', flush=True)\nhang()"
    environment = without_tools(tmp_path, eu_stack=f"PATH={os.environ['PATH']}; shift; {tool}")

    def attempt(limit):
        done = run("-np", "2", "--timeout", str(limit), "--stack-traces-on-timeout", "--grace-period", "1",
                   *python(code), str(tmp_path / "fifo"), env=environment)
        assert done.returncode == 124
        return done.stderr if done.stdout.count("there") == 2 else None

    errors = with_enough_time(attempt, "both ranks are there", LIMITS)
    assert "  ranks 0, 1 on localhost:\n    Python, innermost first:\n      File \"<string>\", line 2 in hang\n" in errors
    reason = "could not read it: ptrace: Operation not permitted" if "ptrace" in tool else "did not end within 2.5 s"
    assert f"    no native stack: eu-stack {reason}\n" in errors


def test_a_start_that_takes_too_long_has_stacks_too(tmp_path):
    code = CLIENT + "\ndef busy(): print('there', flush=True); time.sleep(600)\nif rank == 1: busy()\njoin(); print('there', flush=True); time.sleep(600)"

    def attempt(limit):
        done = run("-np", "2", "--start-timeout", str(limit), "--stack-traces-on-timeout", "-x", "OMP_NUM_THREADS=1", *python(code),
                   env=without_tools(tmp_path))
        assert done.returncode == 125
        return done.stderr if done.stdout.count("there") == 2 else None

    errors = with_enough_time(attempt, "both ranks are there", LIMITS)
    assert "rank 1 on localhost has not called init()" in errors
    assert "in busy" in errors


def test_without_the_option_nobody_is_asked(tmp_path):
    done = run("-np", "1", "--timeout", "1", *python("import time; time.sleep(600)"))
    assert done.stderr == "runjob: error: the job did not end within the 1 s of --timeout; stopped 1 rank; --stack-traces-on-timeout shows where the ranks are\n"
