"""own_environment.py: what tests inherit from the shell that starts them, and what they do not."""

import os
import pathlib

from own_environment import isolated


def test_a_surrounding_job_and_settings_of_the_user_are_left_out():
    shell = {
        "SLURM_JOB_ID": "7", "OMPI_COMM_WORLD_RANK": "1", "RANK": "1", "RUNJOB_CYCLE_TIME": "9", "HOROVOD_TIMELINE": "/t",
        "KERAS_BACKEND": "jax", "LANG": "de_DE.UTF-8", "LC_MESSAGES": "de_DE.UTF-8", "XDG_RUNTIME_DIR": "/gone",
    }  # fmt: skip
    found = isolated(shell, "/empty")
    assert not set(shell) & set(found)
    assert (found["HOME"], found["LC_ALL"]) == ("/empty", "C.UTF-8")


def test_the_build_under_test_and_all_else_stay():
    shell = {"PATH": "/bin", "RUNJOB_BIN": "/b/runjob", "RUNJOB_BUILD": "/b", "RANKS": "of mine", "https_proxy": "http://proxy"}
    found = isolated(shell, "/empty")
    assert {name: found[name] for name in shell} == shell


def test_pip_and_ccache_keep_what_they_have(tmp_path):
    for folder in (".cache/pip", ".cache/ccache", ".config/pip"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").touch()
    found = isolated({"HOME": str(tmp_path), "CCACHE_DIR": "/chosen"}, "/empty")
    assert found["PIP_CACHE_DIR"] == str(tmp_path / ".cache/pip")
    assert found["PIP_CONFIG_FILE"] == str(tmp_path / ".config/pip/pip.conf")
    assert found["CCACHE_DIR"] == "/chosen"


def test_a_home_that_cannot_be_read_is_no_obstacle():
    found = isolated({"HOME": "/proc/none"}, "/empty")
    assert not {"PIP_CACHE_DIR", "CCACHE_DIR", "PIP_CONFIG_FILE"} & set(found)


def test_this_process_has_a_home_of_its_own():
    assert pathlib.Path(os.environ["HOME"]).name.startswith("runjob-tests-")
    assert not any(name.startswith(("SLURM_", "OMPI_")) for name in os.environ)
