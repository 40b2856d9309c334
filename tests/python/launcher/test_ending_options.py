"""--timeout, --grace-period and --continue-on-failure."""

import json

import pytest
from jobs import Marked, by_rank, python, run
from testbed import with_enough_time

HINT = "; --stack-traces-on-timeout shows where the ranks are"
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))
print('ready', flush=True)
while True: time.sleep(0.1)
"""


def test_timeout_ends_the_job_with_124(tmp_path):
    status_file = tmp_path / "status.json"
    with Marked("-np", "2", "--timeout", "1", "--status-file", str(status_file), "sleep", "600") as job:
        status, _, errors = job.finish()
        assert (status, errors) == (124, f"runjob: error: the job did not end within the 1 s of --timeout; stopped 2 ranks{HINT}\n")
        assert job.alive() == []
    verdict = json.loads(status_file.read_text())
    assert (verdict["cause"], verdict["exit_status"], verdict["first_failed_rank"]) == ("timeout", 124, None)
    assert [rank["outcome"] for rank in verdict["ranks"]] == ["stopped", "stopped"]


def test_a_job_within_its_timeout_is_left_alone():
    done = run("-np", "2", "-timeout", "1h", "true")
    assert (done.returncode, done.stderr) == (0, "")


def run_stubborn(tmp_path, grace):
    """The second rank fails once the first one is ready; that one ignores SIGTERM. Returns the lines that it has printed."""
    folder = tmp_path / str(grace)
    folder.mkdir()
    status_file = folder / "status.json"
    code = f"""
import os, sys, time
if os.environ['RANK'] == '1':
    while not os.path.exists({str(folder / 'ready')!r}): time.sleep(0.01)
    sys.exit(5)
{STUBBORN.replace("print('ready'", f"open({str(folder / 'ready')!r}, 'w').close(); print('ready'")}
"""
    done = run("-np", "2", "--grace-period", str(grace), "--status-file", str(status_file), *python(code))
    assert done.returncode == 5
    assert json.loads(status_file.read_text())["ranks"][0]["signal"] == 9
    lines = by_rank(done.stdout)
    assert set(lines) == {0}
    return lines[0]


def test_without_a_grace_period_a_rank_is_killed_at_once(tmp_path):
    assert run_stubborn(tmp_path, 0) == ["ready"]


def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path):
    def attempt(grace):
        lines = run_stubborn(tmp_path, grace)
        return lines if len(lines) > 1 else None

    assert with_enough_time(attempt, "the rank handles SIGTERM in its grace period", (0.2, 2, 20)) == ["ready", "asked"]


WAIT_FOR_RANK_1 = """
import os, pathlib, sys, time
rank, folder = int(os.environ['RANK']), pathlib.Path(sys.argv[1])
if rank == 1:
    (folder / 'new').write_text(str(os.getpid()))
    (folder / 'new').rename(folder / 'pid')
    sys.exit(3)
while not (folder / 'pid').exists(): time.sleep(0.01)
while os.path.exists('/proc/' + (folder / 'pid').read_text()): time.sleep(0.01)
"""


def test_continue_on_failure_lets_the_others_go_on(tmp_path):
    code = WAIT_FOR_RANK_1 + "print('went on')\nsys.exit(4 if rank == 2 else 0)"
    status_file = tmp_path / "status.json"
    done = run("-np", "3", "--continue-on-failure", "--status-file", str(status_file), *python(code), str(tmp_path))
    assert done.returncode == 3
    assert by_rank(done.stdout) == {0: ["went on"], 2: ["went on"]}
    assert "runjob: error: rank 1 on localhost (pid " in done.stderr
    assert done.stderr.endswith("exited with status 3\n  rank 2 exited with status 4\n")
    verdict = json.loads(status_file.read_text())
    assert (verdict["first_failed_rank"], verdict["failed_ranks"]) == (1, [1, 2])
    assert [rank["outcome"] for rank in verdict["ranks"]] == ["ok", "failed", "failed"]


def test_continue_on_failure_still_ends_at_the_timeout(tmp_path):
    code = WAIT_FOR_RANK_1 + "time.sleep(600)"
    done = run("-np", "2", "--continue-on-failure", "--timeout", "2", *python(code), str(tmp_path))
    assert done.returncode == 3
    assert "\n  then the job did not end within the 2 s of --timeout; stopped 1 rank\n" in done.stderr
