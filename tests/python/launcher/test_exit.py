"""Exit status, verdict and messages for every way in which a job can end."""

import json
import os
import signal
import tempfile

import pytest
from jobs import Marked, by_rank, python, run
from testbed import eventually


def test_all_ranks_succeed():
    done = run("-np", "3", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_first_failed_rank_decides():
    code = "import os, sys, time; r = int(os.environ['RUNJOB_RANK'])\nif r == 1: sys.exit('broken pipe dream')\ntime.sleep(60)"
    done = run("-np", "3", *python(code))
    assert done.returncode == 1
    assert "runjob: error: rank 1 on localhost (pid " in done.stderr
    assert "exited with status 1; stopped 2 other ranks" in done.stderr
    assert done.stderr.rstrip().endswith("broken pipe dream")


@pytest.mark.parametrize("status", [3, 42, 255])
def test_status_is_passed_on(status):
    assert run("-np", "2", "sh", "-c", f"exit {status}").returncode == status


def test_killed_rank_gives_128_plus_signal():
    done = run("-np", "2", "sh", "-c", 'if [ $RUNJOB_RANK = 1 ]; then kill -9 $$; else sleep 60; fi')
    assert done.returncode == 128 + signal.SIGKILL
    assert "was killed by signal 9 (SIGKILL)" in done.stderr


def test_command_not_found():
    done = run("-np", "2", "no-such-command", "x")
    assert done.returncode == 127
    assert done.stderr == "runjob: error: localhost: command not found: no-such-command (searched PATH)\n"


def test_command_not_executable(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("text")
    done = run("-np", "2", str(path))
    assert done.returncode == 126
    assert done.stderr == f"runjob: error: localhost: cannot execute {path}: Permission denied\n"
    assert run("-np", "1", str(tmp_path)).returncode == 126


def test_rank_may_take_its_grace_time(tmp_path):
    """A rank that handles SIGTERM saves its work before the job ends."""
    saved = tmp_path / "saved"
    code = f"""
import os, pathlib, signal, sys, time
if os.environ['RUNJOB_RANK'] == '0':
    def save(*_):
        time.sleep(0.5)
        pathlib.Path({str(saved)!r}).write_text('yes')
        print('saved', flush=True)
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    pathlib.Path({str(tmp_path / 'ready')!r}).write_text('')
    while True: time.sleep(0.1)
else:
    while not os.path.exists({str(tmp_path / 'ready')!r}): time.sleep(0.01)
    sys.exit(5)
"""
    done = run("-np", "2", *python(code))
    assert done.returncode == 5
    assert saved.read_text() == "yes"
    assert by_rank(done.stdout) == {0: ["saved"]}


def test_status_file(tmp_path):
    path = tmp_path / "status.json"
    code = "import os, sys; print('why', file=sys.stderr); sys.exit(7 if os.environ['RANK'] == '1' else 0)"
    done = run("-np", "2", "--status-file", str(path), *python(code))
    assert done.returncode == 7
    status = json.loads(path.read_text())
    assert status["exit_status"] == 7
    assert status["first_failed_rank"] == 1
    failed = status["ranks"][1]
    assert (failed["outcome"], failed["status"], failed["signal"], failed["host"]) == ("failed", 7, None, "localhost")
    assert failed["last_stderr_lines"] == ["why"]
    assert failed["out_of_memory"] is False
    assert failed["pid"] > 0


def test_interrupt_reaches_every_rank_and_gives_130():
    code = """
import os, signal, sys, time
def handle(*_):
    print('interrupted', flush=True)
    sys.exit(9)
signal.signal(signal.SIGINT, handle)
print('ready', flush=True)
while True: time.sleep(0.1)
"""
    with Marked("-np", "2", *python(code)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGINT)
        status, output, errors = job.finish()
        assert status == 130
        assert by_rank(output) == {0: ["interrupted"], 1: ["interrupted"]}
        assert errors == "runjob: warning: interrupted: 2 ranks have up to 10 s to end; Ctrl-C again kills\n"
        assert job.alive() == []


def test_second_interrupt_kills_at_once():
    code = "import signal, time; signal.signal(signal.SIGINT, lambda *_: print('ignored', flush=True)); print('ready', flush=True)\nwhile True: time.sleep(0.1)"
    with Marked("-np", "2", *python(code)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGINT)
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGINT)
        status, _, errors = job.finish()
        assert status == 130
        assert "killing all ranks" in errors
        assert job.alive() == []


def test_terminate_gives_143():
    with Marked("-np", "2", "sh", "-c", "echo ready; sleep 60") as job:
        job.wait_for_lines(2)
        job.process.terminate()
        assert job.finish()[0] == 143
        assert job.alive() == []


def test_reader_of_our_output_goes_away():
    """`runjob yes | head` ends, as `yes | head` does."""
    with Marked("-np", "2", "yes") as job:
        job.wait_for_lines(1)
        job.process.stdout.close()
        job.process.stdout = None
        assert job.process.wait(30) == 128 + signal.SIGPIPE
        assert job.alive() == []


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sys.stdout.close(); os.close(1); os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
print('ready', flush=True)
"""


def test_daemons_are_gone_when_the_ranks_have_ended():
    with Marked("-np", "2", *python(DAEMON)) as job:
        status, output, _ = job.finish()
        assert (status, sorted(by_rank(output))) == (0, [0, 1])
        assert job.alive() == []


@pytest.mark.parametrize("victim", ["runjob", "agent", "guard"])
def test_nothing_is_left_when_one_of_us_is_killed(victim):
    with tempfile.TemporaryDirectory(prefix="runjob-") as folder:  # a short path, for sockets
        check_that_nothing_is_left(victim, {**os.environ, "XDG_RUNTIME_DIR": folder})
        eventually(lambda: os.listdir(folder) == [], "the folder of the agent's sockets is gone")


def check_that_nothing_is_left(victim, environment):
    with Marked("-np", "2", *python(DAEMON + "time.sleep(600)"), env=environment) as job:
        job.wait_for_lines(2)
        (guard,), (agent,) = job.named("runjob-guard"), job.named("runjob-agent")
        assert len(job.alive()) == 2 + 2 * 2   # guard, agent, and per rank itself and its daemon
        os.kill({"runjob": job.process.pid, "agent": agent, "guard": guard}[victim], signal.SIGKILL)
        status, _, errors = job.finish()
        job.wait_until_gone()
        if victim == "runjob":
            assert status == -signal.SIGKILL
        else:
            assert status == 125
            assert "runjob: error: lost the agent on localhost" in errors


def test_missing_stdin_is_no_obstacle():
    done = run("-np", "1", "sh", "-c", "cat; echo end", stdin=None, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:end\n")


def test_command_line_belongs_to_the_command():
    done = run("-np", "1", *python("import sys; print(sys.argv[1:])"), "-np", "--", "--verbose", "a b", "")
    assert done.stdout == "[0]<stdout>:['-np', '--', '--verbose', 'a b', '']\n"
