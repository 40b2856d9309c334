"""Horovod's elastic examples of TensorFlow 2 and Keras, in programs of the same form, under horovodrun: they train to their end when a rank is
killed, and with a host that the script finds later."""

import pathlib
import re
import subprocess
import sys

import ranks

FOLDER = pathlib.Path(__file__).parent


def horovodrun(folder, program, *arguments):
    """The last line of each rank. The program runs in `folder`, and the hosts are those of its file `hosts`."""
    (folder / "hosts").write_text("localhost:1\n127.0.0.2:1\n")
    options = ("-np", "2", "--min-np", "1", "--host-discovery-script", "cat hosts")
    command = ["horovodrun", *options, sys.executable, FOLDER / program, *arguments]
    job = subprocess.run(
        list(map(str, command)), executable=ranks.LAUNCHER, cwd=folder, env=ranks.environment(KERAS_BACKEND="tensorflow"),
        capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    assert job.returncode == 0, job.stdout + job.stderr
    assert re.search(r"rank 1 on 127\.0\.0\.2 was killed by signal 9 .*\. The job goes on with \d ranks? \(generation 1\)", job.stderr), job.stderr
    return re.findall(r"^\[\d\]<stdout>:(sizes .*)$", job.stdout, re.MULTILINE)


def test_a_loop_of_tensorflow_ends_without_the_rank_that_was_killed(tmp_path):
    # The commit of batch 11 is restored; the program then takes so many batches as one rank does.
    assert horovodrun(tmp_path, "loop_example.py", 30) == ["sizes [2, 1], batch 40, rate True"]
    assert list(tmp_path.glob("checkpoints-1.*"))


def test_a_loop_of_tensorflow_takes_in_a_host_that_the_script_finds(tmp_path):
    lines = horovodrun(tmp_path, "loop_example.py", 0, "hosts")
    assert len(lines) == 2 and len(set(lines)) == 1, lines
    # By Horovod's rules the rank that is left waits for the new one when the script has listed its host by then.
    assert re.fullmatch(r"sizes \[2, (1, )?2\], batch \d+, rate True", lines[0])


def test_fit_of_keras_ends_without_the_rank_that_was_killed(tmp_path):
    assert horovodrun(tmp_path, "fit_example.py") == ["sizes [2, 1], epoch 4, rate True"]
    assert list(tmp_path.glob("checkpoint-*.keras"))
