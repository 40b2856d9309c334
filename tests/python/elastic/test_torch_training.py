"""python/runjob/torch/elastic: models that train on while ranks are lost and come back, and what becomes of each sample."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import jobs
import pytest
import ranks

TRAINING = pathlib.Path(__file__).with_name("torch_training.py")
SAMPLES = 103  # of torch_training.py


def train(folder, *options, script=TRAINING, timeout=jobs.TIMEOUT):
    """A finished job, and what its ranks have logged."""
    words, arguments = options[: options.index("--")], options[options.index("--") + 1 :]
    job = jobs.run(*words, sys.executable, script, folder, *arguments, env=ranks.environment(), timeout=timeout)
    assert job.returncode == 0, job.stdout + job.stderr
    entries = [json.loads(line) for path in folder.iterdir() for line in path.read_text().splitlines()]
    return job, entries


def kept_steps(entries):
    """Of each step the batches of the last generation that has done it."""
    steps = collections.defaultdict(list)
    for entry in entries:
        steps[entry["step"]].append(entry)
    kept = []
    for batches in steps.values():
        newest = max(batch["generation"] for batch in batches)
        kept.append([batch for batch in batches if batch["generation"] == newest])
    assert all(len(step) == step[0]["size"] for step in kept), "each rank has done each step that is kept"
    return kept


def check_exactly_once(entries, samples=SAMPLES):
    for epoch in range(max(entry["epoch"] for entry in entries) + 1):
        steps = [step for step in kept_steps(entries) if step[0]["epoch"] == epoch]
        counts = collections.Counter(index for step in steps for batch in step for index in batch["indices"])
        assert sorted(counts) == list(range(samples)), "each sample is in a step that is kept"
        size = max(steps, key=lambda step: step[0]["step"])[0]["size"]  # what is repeated fills up the last step
        repeated = sum(counts.values()) - samples
        assert 0 <= repeated < size


@pytest.mark.parametrize("lost", [0, pytest.param(1, marks=pytest.mark.thorough), 2])
def test_a_lost_rank_is_no_loss_of_samples(tmp_path, lost):
    job, entries = train(tmp_path, "-np", "3", "--min-np", "2", "--rank-restarts", "0", "--", "0", f"{lost}:11")
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 2, equal True"] * 2
    assert {entry["size"] for entry in entries} == {2, 3}
    check_exactly_once(entries)


def test_ranks_come_back_and_go_on_with_the_same_parameters(tmp_path):
    job, entries = train(tmp_path, "-np", "3", "--min-np", "2", "--rank-restarts", "100", "--", "4", "1:11", "3:5")
    assert {lines[-1] for lines in jobs.by_rank(job.stdout).values()} == {"size 3, equal True"}
    assert "3 ranks (generation 4)" in job.stderr
    check_exactly_once(entries)


def test_a_rank_that_is_to_leave_takes_no_sample_with_it(tmp_path):
    command = ("-np", "3", "--min-np", "2", sys.executable, TRAINING, tmp_path, "1")
    with jobs.Marked(*command, env=ranks.environment(TRAINING_MARK="3")) as job:
        job.wait_for_lines(3)
        assert jobs.run("resize", str(job.process.pid), "-np", "2").returncode == 0
        status, output, errors = job.finish()
        assert status == 0, output + errors
        assert sorted(lines[-1] for lines in jobs.by_rank(output).values()) == ["size 2, equal True"] * 2, output
        assert "the hosts have changed: rank 2 on localhost has left" in errors
        assert job.alive() == []
    check_exactly_once([json.loads(line) for path in tmp_path.iterdir() for line in path.read_text().splitlines()])


@pytest.mark.thorough
def test_digits_are_learned_while_ranks_are_lost_and_come(tmp_path):
    """A rank is lost, or comes, as soon as there was a commit since the last change: TESTS_CHANGES times, twice without it."""
    changes = int(os.environ.get("TESTS_CHANGES", "2"))
    options = ("-np", "3", "--min-np", "2", "--rank-restarts", "100", "--", str(changes))
    job, entries = train(tmp_path, *options, script=TRAINING.with_name("torch_changes.py"), timeout=60 + 30 * changes)
    lines = [lines[-1] for lines in jobs.by_rank(job.stdout).values()]
    assert len(lines) == 3 and len(set(lines)) == 1, lines
    match = re.fullmatch(rf"generation {changes}, size 3, equal True, accuracy (\S+)", lines[0])
    assert match, lines
    assert float(match[1]) >= 0.97
    assert {entry["generation"] for entry in entries} == set(range(changes + 1))
    check_exactly_once(entries, samples=1440)


@pytest.mark.thorough
def test_a_programs_own_state_grows_by_checks_alone():
    script = TRAINING.with_name("torch_user_state.py")
    job = jobs.run("-np", "3", "--min-np", "2", sys.executable, script, env=ranks.environment())
    assert job.returncode == 0, job.stdout + job.stderr
    # Adam has two moments of each of the 18 parameters, and a count for each of the two tensors.
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 3, step 30, equal True, moments 38"] * 3


def run_raising(error):
    command = ("-np", "3", "--min-np", "2", "--rank-restarts", "0", sys.executable, TRAINING.with_name("torch_raising.py"), error)
    return jobs.run(*command, env=ranks.environment())


def test_an_error_that_the_program_raises_is_no_loss_of_ranks():
    job = run_raising("HorovodInternalError")
    assert job.returncode == 0, job.stdout + job.stderr
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 3, step 12, begun [0, 6], equal True"] * 3
    assert "3 ranks (generation 1)" in job.stderr


def test_an_error_that_would_come_again_ends_its_rank():
    job = run_raising("MismatchError")
    assert job.returncode == 0, job.stdout + job.stderr
    assert [lines[-1] for lines in jobs.by_rank(job.stdout).values()] == ["size 2, step 12, begun [0, 6], equal True"] * 2
    assert "MismatchError: of the program" in job.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("idiom, counts", [("batches", r"\[90, \d+, 60\]"), ("samples", r"\[90, 9[01], 90\]")])
def test_the_idioms_of_horovods_examples(idiom, counts):
    """The sampler of the first idiom is PyTorch's, which goes on with a third of the samples for each of the two ranks that are left."""
    options = ("-np", "3", "--min-np", "2", "--rank-restarts", "0")
    job = jobs.run(*options, sys.executable, TRAINING.with_name("torch_examples.py"), idiom, env=ranks.environment())
    assert job.returncode == 0, job.stdout + job.stderr
    lines = [lines[-1] for lines in jobs.by_rank(job.stdout).values()]
    assert len(lines) == 2 and all(re.fullmatch(f"size 2, counts {counts}, equal True, average 0.5", line) for line in lines), lines


def test_the_idioms_of_horovods_examples_under_horovodrun():
    """Horovod gives up the host of the lost rank, so that each rank has one of its own: names of this host."""
    words = ["horovodrun", "-np", "3", "--min-np", "2", "--host-discovery-script", "echo localhost:1; echo 127.0.0.2:1; echo 127.0.0.3:1"]
    job = subprocess.run(
        [*words, sys.executable, TRAINING.with_name("torch_examples.py"), "samples"], executable=jobs.RUNJOB, env=ranks.environment(),
        capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    assert job.returncode == 0, job.stdout + job.stderr
    lines = [lines[-1] for lines in jobs.by_rank(job.stdout).values()]
    assert len(lines) == 2 and all(re.fullmatch(r"size 2, counts \[90, 9[01], 90\], equal True, average 0.5", line) for line in lines), lines
    assert re.search(r"rank 1 on 127.0.0.2 was killed by signal 9 .* 2 ranks \(generation 1\), .*; no new process starts on 127.0.0.2\.", job.stderr)
