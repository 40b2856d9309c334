"""--commit-dir: python/runjob/elastic/stored_commits.py in real jobs, which are killed and started again."""

import collections
import importlib.util
import json
import os
import pathlib
import re
import sys

import jobs
import pytest
import ranks

from runjob.elastic import commit_file

HERE = pathlib.Path(__file__).parent
TRAINING = HERE / "stored_training.py"
ELASTIC = HERE.parent


def run(folder, *arguments, size=2, interval="0", variables=None):
    options = ("-np", str(size), "--min-np", "1", "--rank-restarts", "0", "--commit-dir", str(folder), "--commit-interval", interval)
    return jobs.run(*options, sys.executable, *map(str, arguments), env=ranks.environment(**(variables or {})))


def lines(job):
    assert job.returncode == 0, job.stdout + job.stderr
    return jobs.by_rank(job.stdout)


def files(folder):
    return sorted(each.name for each in folder.iterdir())


def kill_at_mark(folder, *arguments, size, **variables):
    """A job of which every process is killed when its ranks have printed "mark", the launcher first."""
    options = ("-np", str(size), "--min-np", "1", "--commit-dir", str(folder), "--commit-interval", "0")
    with jobs.Marked(*options, sys.executable, *map(str, arguments), env=ranks.environment(**variables)) as job:
        for line in iter(job.process.stdout.readline, ""):
            if line.endswith("mark\n"):
                break
        else:
            raise AssertionError(job.process.stderr.read())
        job.process.kill()
        job.wait_until_gone()


def test_a_job_that_is_started_again_goes_on_with_other_ranks(tmp_path):
    kill_at_mark(tmp_path / "c", TRAINING, 200, "slow", size=2)
    assert 1 <= len([name for name in files(tmp_path / "c") if name.endswith(".safetensors")]) <= 3, "the last two, and one just written"
    after = lines(run(tmp_path / "c", TRAINING, 300, size=3))
    start = int(after[0][0].removeprefix("from "))
    assert 1 <= start <= 200
    total = [2.0 * start + 3.0 * (300 - start)] * 3
    assert after == {rank: [f"from {start}", f"300 {total}"] for rank in range(3)}
    again = run(tmp_path / "c", TRAINING, 300)
    assert lines(again) == {rank: ["from 300", f"300 {total}"] for rank in range(2)}, "the end is written too"
    said = re.findall(r"^.*runjob: the job goes on from .*$", again.stderr, re.MULTILINE)
    assert len(said) == 1, again.stderr
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"\[0\]<stderr>:runjob: the job goes on from {tmp_path}/c/commit-\d+\.safetensors, the commit of {time} with step=300", said[0])


def test_every_sample_is_in_one_step_that_is_kept(tmp_path):
    (tmp_path / "log").mkdir()
    training = (ELASTIC / "torch_training.py", tmp_path / "log", "0")
    kill_at_mark(tmp_path / "c", *training, size=3, TRAINING_MARK="14")
    after = lines(run(tmp_path / "c", *training, size=2))
    assert [text[-1] for text in after.values()] == ["size 2, equal True"] * 2
    entries = [json.loads(line) for path in (tmp_path / "log").iterdir() for line in path.read_text().splitlines()]
    second = [entry for entry in entries if entry["size"] == 2]
    start = min(entry["step"] for entry in second)
    assert start > 0
    kept = second + [entry for entry in entries if entry["size"] == 3 and entry["step"] < start]
    for epoch in range(3):
        batches = [entry for entry in kept if entry["epoch"] == epoch]
        counts = collections.Counter(index for batch in batches for index in batch["indices"])
        assert sorted(counts) == list(range(103))
        assert sum(counts.values()) - 103 < 3, "only the last step is filled up"


def test_an_interval_leaves_commits_out_and_the_last_one_is_written(tmp_path):
    job = run(tmp_path / "c", TRAINING, 50, interval="10m")
    assert lines(job)[0][-1] == "50 [100.0, 100.0, 100.0]"
    assert "goes on from" not in job.stderr
    assert files(tmp_path / "c") == ["commit-00000001.safetensors"]


def test_only_the_first_state_of_a_program_is_written(tmp_path):
    for _ in range(2):
        assert lines(run(tmp_path / "c", TRAINING, 5, "twice"))[0][-1] == "5 [10.0, 10.0, 10.0]"
    assert commit_names(tmp_path / "c") == {"step", "total"}


def commit_names(folder):
    with open(sorted(folder.iterdir())[-1], "rb") as file:
        return set(commit_file.read_header(file).names)


@pytest.mark.thorough
@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here: pip install keras")
def test_a_model_of_keras_and_its_optimizer(tmp_path):
    for _ in range(2):  # the second time nothing is left to do, and all of this comes from the file
        job = run(tmp_path / "c", ELASTIC / "keras_training.py", 9, interval="10m", variables={"KERAS_BACKEND": "torch"})
        assert [text[-1] for text in lines(job).values()] == ["size 2, epochs 4, batch 0, steps 24, equal True"] * 2


def test_a_broken_newest_commit_is_passed_over_with_a_warning(tmp_path):
    folder = tmp_path / "c"
    for steps in (5, 9):
        run(folder, TRAINING, steps, interval="10m")
    newest = folder / "commit-00000002.safetensors"
    newest.write_bytes(newest.read_bytes()[:-10])
    job = run(folder, TRAINING, 9)
    assert lines(job)[0] == ["from 5", "9 [18.0, 18.0, 18.0]"]
    assert "goes on from the older commit" in job.stderr and f"{newest}: it has " in job.stderr


def refused(job):
    """What is on standard error of a job that cannot begin. It forms no other generation, which would meet the same error."""
    assert job.returncode == 1, job.stdout
    assert "(generation 1)" not in job.stderr
    return job.stderr


def test_without_a_whole_commit_the_job_ends_with_the_files_and_the_remedy(tmp_path):
    run(tmp_path, TRAINING, 5, interval="10m")
    (tmp_path / "commit-00000001.safetensors").write_bytes(b"")
    errors = refused(run(tmp_path, TRAINING, 9, size=3))
    assert re.search(r"no commit can be used: .*/commit-00000001.safetensors: .*; remove these files to begin anew, or name another", errors)
    assert files(tmp_path) == ["commit-00000001.safetensors"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_another_users_commit_is_not_unpickled(tmp_path):
    run(tmp_path, TRAINING, 5, interval="10m")
    os.chown(tmp_path / "commit-00000001.safetensors", 65534, -1)
    assert "commit-00000001.safetensors: it belongs to user 65534, and this process to user 0" in refused(run(tmp_path, TRAINING, 9, size=3))


@pytest.mark.parametrize(
    "kind, problem",
    [
        ("longer", r"has total with the shape \(3,\) and dtype float64, and this program's has \(4,\) and float64"),
        ("named", "has the values step, total, and this program's state has more, step, total"),
        ("own", "a Own has commits of its own, which cannot be written; use one of runjob's states"),
    ],
)
def test_another_program_is_an_error(tmp_path, kind, problem):
    run(tmp_path, TRAINING, 5, interval="10m")
    assert re.search(problem, refused(run(tmp_path, TRAINING, 9, kind, size=3)))
    assert lines(run(tmp_path, TRAINING, 5))[0][0] == "from 5", "nothing has been written meanwhile"


def test_a_commit_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "c").mkdir()
    os.symlink("c", tmp_path / "link")
    assert jobs.run("-np", "1", "--min-np", "1", "--commit-dir", str(tmp_path / "link"), "true").returncode == 2
    (tmp_path / "c" / "commit-00000001.safetensors.part").mkdir()  # in the way, and no file of a killed job
    job = run(tmp_path / "c", TRAINING, 5)
    assert lines(job)[0][-1] == "5 [10.0, 10.0, 10.0]"
    assert "a commit was not written to" in job.stderr and "Is a directory" in job.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        (("--commit-dir", "c"), "--commit-dir: needs --min-np, which makes the job elastic"),
        (("--min-np", "1", "--commit-interval", "5"), "--commit-interval: needs --commit-dir"),
        (("--min-np", "1", "--commit-dir", "c", "--commit-interval", "soon"), "--commit-interval: 'soon'"),
        (("--min-np", "1", "--commit-dir", "/dev/null"), "--commit-dir: /dev/null is not a directory; name a directory of your own"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    job = jobs.run("-np", "1", *options, "true", cwd=tmp_path)
    assert job.returncode == 2 and message in job.stderr, job.stderr
    assert job.stderr.count("\n") == 1
