"""Exit status, verdict and messages for every way in which a job can end."""

import datetime
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import tempfile

import pytest
from jobs import Marked, by_rank, command, python, run
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


@pytest.mark.parametrize("interpreter", ["/no/such/python", "/bin/sh\r"])
def test_a_missing_interpreter_is_not_a_missing_command(tmp_path, interpreter):
    script = tmp_path / "a_script"
    script.write_bytes(f"#!{interpreter}\ntrue\n".encode())
    script.chmod(0o755)
    for command, environment in ((str(script), {}), ("a_script", {"PATH": f"/nowhere:{tmp_path}:{os.environ['PATH']}"})):
        done = run("-np", "1", command, env={**os.environ, **environment})
        assert done.returncode == 126
        assert done.stderr.startswith(f"runjob: error: localhost: cannot execute {command}: it is there, but not the interpreter ")


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
    before = datetime.datetime.utcnow().replace(microsecond=0)
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
    assert status["command"] == [*python(code)]
    assert status["hosts"] == [{"name": "localhost", "slots": 2}]
    times = [datetime.datetime.strptime(status[name], "%Y-%m-%dT%H:%M:%S.%fZ") for name in ("start", "end")]
    assert before <= times[0] <= times[1] <= datetime.datetime.utcnow()


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


def test_the_disk_of_our_output_is_full():
    with open("/dev/full", "wb") as full, Marked("-np", "2", "--grace-period", "1", "yes", stdout=full) as job:
        status, _, errors = job.finish()
        assert status == 125
        assert errors == "runjob: error: cannot write to standard output: No space left on device\n"
        assert job.alive() == []


def test_the_last_line_does_not_fit_on_the_disk_of_our_output():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command("-np", "1", "printf", "end"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (125, "runjob: error: cannot write to standard output: No space left on device\n")


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


OURS = ["runjob", "runjob-agent", "runjob-guard", "runjob-guard-2"]


@pytest.mark.parametrize("victim", OURS)
def test_nothing_is_left_when_one_of_us_is_killed(victim):
    check_that_nothing_is_left(victim)


@pytest.mark.parametrize("victims", list(itertools.combinations(OURS, 2)), ids="+".join)
def test_nothing_is_left_when_two_of_us_are_killed(victims):
    """At the same time, in either order: one of the guards is always left to end the ranks and their daemons."""
    check_that_nothing_is_left(*victims)
    check_that_nothing_is_left(*reversed(victims))


def check_that_nothing_is_left(*victims):
    with tempfile.TemporaryDirectory(prefix="runjob-") as folder:  # a short path, for sockets
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        with Marked("-np", "2", "--grace-period", "1", *python(DAEMON + "time.sleep(600)"), env=environment) as job:
            job.wait_for_lines(2)
            assert len(job.alive()) == 3 + 2 * 2   # two guards, the agent, and per rank itself and its daemon
            pids = {"runjob": job.process.pid, **{name: pid for name in OURS[1:] for pid in job.named(name)}}
            subprocess.run(["kill", "-9", *(str(pids[victim]) for victim in victims)], check=False)  # the second may be gone already
            status, _, errors = job.finish()
            job.wait_until_gone()
            if "runjob" in victims:
                assert status == -signal.SIGKILL
            else:
                assert status == 125
                assert "runjob: error: lost the agent on localhost" in errors
        eventually(lambda: os.listdir(folder) == [], "the folder of the agent's sockets is gone")


def test_missing_stdin_is_no_obstacle():
    done = run("-np", "1", "sh", "-c", "cat; echo end", stdin=None, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:end\n")


@pytest.mark.parametrize("limit", [14, 16, 32])
def test_too_few_descriptors_name_the_host(limit):
    done = run("-np", "8", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    assert (done.returncode, done.stdout) == (125, "")
    assert re.fullmatch(rf"runjob: error: localhost: too few descriptors: 8 ranks need \d+, and the limit is {limit}; "
                        r"raise it there \(ulimit -n\)\n", done.stderr)  # fmt: skip


def test_just_enough_descriptors_lose_no_output():
    code = "import os; os.write(1, b'out'); os.write(2, b'error')"
    done = run("-np", "8", *python(code), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    assert done.returncode == 0
    assert (done.stdout.count("out>:out"), done.stderr.count("err>:error")) == (8, 8)


def test_a_deleted_current_directory_needs_wdir(tmp_path):
    def in_deleted(*arguments):
        folder = tmp_path / "deleted"
        folder.mkdir()
        enter = f'cd {folder} && rmdir {folder} && exec "$@"'
        return subprocess.run(["sh", "-c", enter, "sh", *command(*arguments)], capture_output=True, text=True, timeout=60)

    done = in_deleted("-np", "2", "pwd")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("runjob: error: the current directory was deleted, and the ranks would run there; change to another one, "
                           "or name one with --wdir\n")  # fmt: skip
    done = in_deleted("-np", "1", "--wdir", str(tmp_path), "pwd")
    assert (done.returncode, done.stdout) == (0, f"[0]<stdout>:{tmp_path}\n")
    assert in_deleted("--version").returncode == 0


def test_command_line_belongs_to_the_command():
    done = run("-np", "1", *python("import sys; print(sys.argv[1:])"), "-np", "--", "--verbose", "a b", "")
    assert done.stdout == "[0]<stdout>:['-np', '--', '--verbose', 'a b', '']\n"
