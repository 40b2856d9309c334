"""Elastic jobs with TensorFlow: models that train on while ranks are lost and come back."""

import pathlib
import re
import subprocess
import sys

import pytest

import ranks

FOLDER = pathlib.Path(__file__).parents[2] / "elastic"


def run(*arguments):
    """The last line of each rank."""
    command = [str(ranks.LAUNCHER), "-np", "3", "--min-np", "2", *map(str, arguments)]
    job = subprocess.run(
        command, env=ranks.environment(KERAS_BACKEND="tensorflow"), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS
    )
    assert job.returncode == 0, job.stdout + job.stderr
    return re.findall(r"^\[\d\]<stdout>:(size .*)$", job.stdout, re.MULTILINE)


def test_a_model_goes_on_at_the_batch_of_its_commit():
    lines = run("--rank-restarts", "0", sys.executable, FOLDER / "keras_training.py", 1)
    assert lines == ["size 2, epochs 4, batch 0, steps 24, equal True"] * 2


def test_a_model_that_fit_trains_grows_again():
    assert run(sys.executable, FOLDER / "keras_training.py", 1, "grow") == ["size 3, epochs all, batch 0, steps all, equal True"] * 3


def test_a_rank_leaves_in_the_middle_of_fit():
    command = [str(ranks.LAUNCHER), "-np", "3", "--min-np", "2", sys.executable, str(FOLDER / "keras_training.py"), "none", "shrink"]
    environment = ranks.environment(KERAS_BACKEND="tensorflow")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        for _ in range(3):
            job.stdout.readline()  # all have begun their second epoch
        resize = [str(ranks.LAUNCHER), "resize", str(job.pid), "-np", "2"]
        assert subprocess.run(resize, capture_output=True, timeout=ranks.TIMEOUT_SECONDS).returncode == 0
        output, errors = job.communicate(timeout=ranks.TIMEOUT_SECONDS)
    assert job.returncode == 0, output + errors
    assert re.findall(r"^\[\d\]<stdout>:(size .*)$", output, re.MULTILINE) == ["size 2, epochs all, batch 0, steps all, equal True"] * 2
    assert "the hosts have changed: rank 2 on localhost has left" in errors


@pytest.mark.parametrize("state", ["keras", "variables"])
def test_a_replacement_gets_the_variables(state):
    assert run(sys.executable, FOLDER / "tensorflow_training.py", state) == ["size 3, step 30, equal True"] * 3


def test_a_job_that_is_started_again_gets_the_variables_from_its_file(tmp_path):
    for _ in range(2):  # the second time nothing is left to do, and all of this comes from the file
        lines = run("--rank-restarts", "0", "--commit-dir", tmp_path, sys.executable, FOLDER / "keras_training.py", 9)
        assert lines == ["size 3, epochs 4, batch 0, steps 24, equal True"] * 3
