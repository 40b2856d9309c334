"""Options that only act in ranks that call init() are named at the end of a job in which none does."""

import os

import pytest
from jobs import python, run
from test_rendezvous import CLIENT


def idle(options):
    number = "it is for programs with runjob's own collectives, and does" if "," not in options else (
        "they are for programs with runjob's own collectives, and do")  # fmt: skip
    return (f"runjob: warning: no rank called init(), so {options} had no effect: {number} not act on torch.distributed or MPI "
            "(docs/ddp.md)\n")  # fmt: skip


@pytest.mark.parametrize("options, named", [
    (["--encrypt-data"], "--encrypt-data"),
    (["--stall-check-warning-time-seconds", "5"], "--stall-check-warning-time-seconds"),
    (["--timeline-filename", "trace.json", "--fusion-threshold-mb", "8"], "--fusion-threshold-mb, --timeline-filename"),
    (["--start-timeout", "60", "--log-level", "INFO"], "--log-level, --start-timeout"),
    (["--min-np", "1", "--commit-dir", "commits"], "--commit-dir"),
])
def test_they_are_named_once(tmp_path, options, named):
    done = run("-np", "2", *options, "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, idle(named))


def test_a_variable_and_a_configuration_file_count_and_horovods_variables_do_not(tmp_path):
    """Horovod's are often those of an image, for whatever runs in it."""
    (tmp_path / "job.toml").write_text("cycle-time-ms = 1\n")
    variables = {**os.environ, "RUNJOB_ENCRYPT_DATA": "1", "HOROVOD_CACHE_CAPACITY": "9"}
    done = run("--config-file", "job.toml", "true", cwd=tmp_path, env=variables)
    assert (done.returncode, done.stderr) == (0, idle("file job.toml, cycle-time-ms, RUNJOB_ENCRYPT_DATA"))


def test_a_job_that_runs_out_of_time_names_them_too():
    done = run("--timeout", "0.5", "--stall-check-shutdown-time-seconds", "600", "sleep", "600")
    assert done.returncode == 124
    assert done.stderr.startswith("runjob: error: the job did not end within the 0.5 s of --timeout")
    assert done.stderr.endswith(idle("--stall-check-shutdown-time-seconds"))


def test_nothing_is_said_where_a_rank_called_init_or_the_job_failed_or_nothing_was_asked_for():
    called = run("-np", "2", "--encrypt-data", *python(CLIENT + "if rank == 0: join()"))
    assert "had no effect" not in called.stderr
    assert "had no effect" not in run("--encrypt-data", "false").stderr
    for options in (["--encrypt-data=false"], ["--verbose=false", "--tcp", "--timeout", "60"], []):
        done = run(*options, "true")
        assert (done.returncode, done.stderr) == (0, "")
