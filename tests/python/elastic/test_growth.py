"""Elastic jobs that grow on this host: discovery scripts, spares, Horovod's rules, and requests that are refused."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from jobs import RUNJOB, TIMEOUT, Marked, by_rank, run

HERE = pathlib.Path(__file__).parent
TRAINING, GROWING, SIZES = HERE / "training.py", HERE / "growing.py", HERE / "sizes.py"


@pytest.mark.parametrize(
    "options, message",
    [
        (("--host-discovery-script", "/no/such/script"), r"the first run of '/no/such/script' exited with status 127: .*not found"),
        (("--host-discovery-script", "echo 'no cluster' >&2; exit 3"), r"exited with status 3: no cluster"),
        (("--host-discovery-script", "echo localhost:1; echo localhost:many"), r"line 2, column 11: expected a number of slots after ':'.*; the script prints one host a line, such as s1:4"),
        (("--host-discovery-script", " "), r"the command is empty"),
        (("--host-discovery-script", "echo localhost", "-H", "localhost"), r"both name hosts; give one of them"),
        (("--slots-per-host", "2"), r"--slots-per-host: needs --host-discovery-script"),
        (("--slots-per-host", "0", "--host-discovery-script", "echo localhost"), r"--slots-per-host: '0'"),
        (("--spares", "1"), r"--spares: needs --min-np"),
        (("--spares", "1", "--min-np", "2", "-H", "localhost:2"), r"--spares: 2 ranks and 1 spare need 3 slots, and the hosts have 2; name more slots, or lower -np"),
        (("--min-np", "3"), r"--min-np: 3 is over the 2 ranks that the job starts with; lower it, or raise -np"),
        (("--min-np", "1", "--max-np", "1"), r"--max-np: 1 is below the 2 ranks that the job starts with; raise it, or lower -np"),
        (("--min-np", "1", "--blacklist-cooldown-range", "0", "5"), r"--blacklist-cooldown-range takes two numbers of seconds: '0' is not"),
        (("--min-np", "1", "--blacklist-cooldown-range", "5", "3601"), r"--blacklist-cooldown-range takes two numbers of seconds: '3601' is"),
        (("--min-np", "1", "--blacklist-cooldown-range", "9", "5"), r"--blacklist-cooldown-range: 9 is over 5; write the smaller number first"),
        (("--max-np", "4"), r"--max-np: needs --min-np"),
        (("--elastic-timeout", "5"), r"--elastic-timeout: needs --min-np"),
        (("--reset-limit", "5"), r"--reset-limit: needs --min-np"),
        (("--rank-restarts", "5"), r"--rank-restarts: needs --min-np"),
        (("--blacklist-cooldown-range", "1", "5"), r"--blacklist-cooldown-range: needs --min-np"),
    ],
)
def test_bad_input_is_one_line_and_status_2(options, message):
    job = run("-np", "2", *options, "true")
    assert job.returncode == 2
    assert re.fullmatch(rf"runjob: error: .*{message}.*\n", job.stderr), job.stderr


def test_a_script_that_lists_too_few_slots_is_waited_for():
    job = run("-np", "2", "--elastic-timeout", "1500ms", "--host-discovery-script", "echo localhost", "true")
    assert job.returncode == 125
    assert "lists 1 of the 2 slots that the job needs; waiting up to 1.5 s for more" in job.stderr
    assert "runjob: error: --host-discovery-script: 'echo localhost' lists 1 of the 2 slots that the job needs after 1.5 s" in job.stderr


def test_a_job_grows_on_its_own_host_and_lists_its_generations(tmp_path):
    hosts, status_file = tmp_path / "hosts", tmp_path / "status.json"
    hosts.write_text("localhost:1\n")
    options = ("-np", "1", "--max-np", "2", "--host-discovery-script", f"cat {hosts}", "--status-file", status_file)
    with Marked(*options, sys.executable, SIZES, "1,2") as job:
        job.wait_for_lines(1)
        hosts.write_text("localhost:2\n")
        status, output, errors = job.finish()
        assert status == 0, errors
        assert {lines[-1] for lines in by_rank(output).values()} == {
            "process 0 on localhost: rank 0 of 2, [1, 2]",
            "process 1 on localhost: rank 1 of 2, [1, 2]",
        }
        assert job.alive() == []
    generations = json.loads(status_file.read_text())["generations"]
    assert [(each["number"], each["size"], each["came"]) for each in generations] == [(0, 1, []), (1, 2, ["rank 1 on localhost"])]
    assert generations[1]["cause"] == "the hosts have changed: rank 1 on localhost has come"
    assert generations[1]["stood_still_seconds"] >= 0 and generations[1]["steps_redone"] == 0


def test_another_name_of_this_host_joins_leaves_and_comes_back(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:1\n")
    options = ("-np", "1", "--max-np", "2", "--host-discovery-script", f"cat {hosts}")
    with Marked(*options, sys.executable, SIZES, "1,2,1,2") as job:
        for text in ("localhost:1\n127.0.0.2:1\n", "localhost:1\n", "127.0.0.2:1\nlocalhost:1\n"):
            job.wait_for_lines(1)
            hosts.write_text(text)
        status, output, errors = job.finish()
        assert status == 0, errors
        assert {lines[-1] for lines in by_rank(output).values()} == {
            "process 0 on localhost: rank 0 of 2, [1, 2, 1, 2]",
            "process 2 on 127.0.0.2: rank 1 of 2, [1, 2, 1, 2]",
        }
        assert job.alive() == []


def test_a_script_that_does_not_end_is_followed(tmp_path):
    log = tmp_path / "hosts"
    log.write_text("localhost:1\n\n")
    options = ("-np", "1", "--max-np", "2", "--host-discovery-script", f"exec tail -n +1 -f {log}")
    with Marked(*options, sys.executable, SIZES, "1,2") as job:
        job.wait_for_lines(1)
        with log.open("a") as more:
            more.write("localhost:2\n\n")
        status, _, errors = job.finish()
        assert status == 0, errors
        assert job.alive() == []


def test_a_spare_replaces_a_lost_rank():
    # No process is started again, so the third rank can only be the spare.
    options = ("-np", "3", "--min-np", "3", "--spares", "1", "--rank-restarts", "0", "-H", "localhost:4")
    job = run(*options, sys.executable, TRAINING, "1")
    assert job.returncode == 0, job.stderr
    lines = by_rank(job.stdout)
    assert {rank: text[-1] for rank, text in lines.items() if rank < 3} == {rank: f"{rank} 3 20 60 [3]" for rank in range(3)}
    assert re.search(r"rank 1 on localhost was killed by signal 9 .*\. The job goes on with 3 ranks \(generation 1\)", job.stderr)


def test_a_job_is_made_larger_and_smaller_while_it_runs():
    with Marked("-np", "2", "--min-np", "2", "-H", "localhost:3", sys.executable, SIZES, "2,3,2") as job:
        job.wait_for_lines(1)
        name = str(job.process.pid)
        refused = run("resize", name, "-np", "1")
        assert (refused.returncode, refused.stderr) == (
            2,
            "runjob: error: resize: 1 is below the 2 of --min-np, with which the job was started\n",
        )
        refused = run("resize", name, "-np", "4")
        assert (refused.returncode, refused.stdout, refused.stderr) == (
            2, "", "runjob: error: resize: 4 ranks need 4 slots, and the job's hosts have 3 slots; add slots first: runjob resize JOB --add "
            "localhost:4\n",
        )  # fmt: skip
        assert run("resize", name, "-np", "3").stdout == "the job has 2 ranks and may have 3, and its hosts have 3 slots\n"
        job.wait_for_lines(1)
        assert run("resize", name, "-np", "2").returncode == 0
        status, output, errors = job.finish()
        assert status == 0, errors
        assert "2 ranks (generation 2)" in errors
        assert {lines[-1] for lines in by_rank(output).values()} >= {
            "process 0 on localhost: rank 0 of 2, [2, 3, 2]",
            "process 1 on localhost: rank 1 of 2, [2, 3, 2]",
        }


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("0123", "-np", "3"), "no elastic job 0123 of this user runs on this host"),
        (("0123",), "write runjob resize JOB -np N | --add HOSTS | --remove HOSTS"),
        (("0123", "--sub", "s1"), "unknown option --sub"),
        (("0123", "-np", "none"), "-np: 'none'"),
    ],
)
def test_a_request_for_no_job_or_none_at_all_is_one_line_and_status_2(arguments, message):
    done = run("resize", *arguments)
    assert done.returncode == 2
    assert re.fullmatch(rf"runjob: error: .*{re.escape(message)}.*\n", done.stderr)


def test_another_users_job_is_left_alone(root):
    with Marked("-np", "1", "--min-np", "1", "-H", "localhost:2", sys.executable, SIZES, "1,2") as job:
        job.wait_for_lines(1)

        def resize(user):
            words = [RUNJOB, "resize", str(job.process.pid), "-np", "2"]
            return subprocess.run(words, user=user, capture_output=True, text=True, timeout=TIMEOUT, check=False)

        refused = resize(65534)
        assert refused.returncode == 2
        assert refused.stderr == f"runjob: error: resize: process {job.process.pid} belongs to another user\n"
        assert resize(os.getuid()).returncode == 0
        assert job.finish()[0] == 0


def test_under_the_name_horovodrun_a_failed_rank_costs_its_host():
    words = ["horovodrun", "-np", "2", "--min-np", "2", "--host-discovery-script", "echo localhost:2; echo 127.0.0.2:2"]
    job = subprocess.run(
        [*words, sys.executable, TRAINING, "3"], executable=RUNJOB, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert job.returncode == 0, job.stderr
    lines = by_rank(job.stdout)
    assert {rank: text[-1] for rank, text in lines.items()} == {rank: f"{rank} 2 20 {7 * 4 + 13 * 2} [2]" for rank in range(2)}
    assert re.search(
        r"rank 3 on 127.0.0.2 was killed by signal 9 \(SIGKILL\)\. .* 2 ranks \(generation 1\), .*; no new process starts on 127.0.0.2\.", job.stderr
    )


def test_the_discovery_script_ends_with_its_job(tmp_path):
    script = f"echo $$ > {tmp_path}/pid; echo localhost:1; echo; exec sleep 600"
    job = run("-np", "1", "--host-discovery-script", script, "true")
    assert job.returncode == 0, job.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
