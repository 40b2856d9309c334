"""python/runjob/launch/run_command.py: run()'s arguments as a command line, and where its program is."""

import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import ranks
from runjob.launch import run_command


def test_arguments_become_options():
    given = {
        "num_proc": 2, "hosts": ["a:1", "b:1"], "hostfile": None, "verbose": True, "start_timeout": 1.5,
        "ssh_identity_file": pathlib.Path("/k e y"), "no": False,
    }  # fmt: skip
    words = ["--num-proc=2", "--hosts=a:1,b:1", "--verbose", "--start-timeout=1.5", "--ssh-identity-file=/k e y"]
    assert run_command.options(given) == words
    assert run_command.options({"num_proc": numpy.int64(2), "timeout": numpy.float32(1.5)}) == ["--num-proc=2", "--timeout=1.5"]


def test_only_names_of_variables_are_on_the_command_line():
    assert run_command.exports({"A": "secret", "B": ""}) == ["-x", "A", "-x", "B"]
    assert run_command.exports(None) == []
    for name in ("", "A=B", "A\0"):
        with pytest.raises(ValueError, match="cannot be the name"):
            run_command.exports({name: "x"})


def test_the_launcher_gets_the_variables_and_our_package_from_the_source_tree():
    environment = run_command.environment({"A": "secret"})
    assert environment["A"] == "secret"
    source = str(pathlib.Path(run_command.__file__).resolve().parents[2])
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == source


def test_ranks_run_this_python_unless_another_one_is_named():
    assert run_command.rank_command(None)[:2] == [sys.executable, "-c"]
    assert run_command.rank_command("/p")[0] == "/p"


def test_a_rank_imports_nothing_from_the_current_folder(tmp_path):
    for name in ("runjob", "io", "cloudpickle", "http"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("import os; os.write(1, b'the other user')\n")
    done = subprocess.run(run_command.rank_command(None), cwd=tmp_path, env=ranks.environment(), capture_output=True, text=True)
    assert "the other user" not in done.stdout
    assert "this program is started by runjob.run(), and by nothing else" in done.stderr


def test_the_program_is_where_the_variable_says(monkeypatch, tmp_path):
    program = tmp_path / "runjob"
    program.write_text("")
    monkeypatch.setenv("RUNJOB_BIN", str(program))
    with pytest.raises(FileNotFoundError, match="RUNJOB_BIN names .* which is no program"):
        run_command.find()
    program.chmod(0o755)
    assert run_command.find() == str(program)


def test_a_program_that_is_nowhere_is_an_error_with_the_places(monkeypatch, tmp_path):
    monkeypatch.delenv("RUNJOB_BIN", raising=False)
    monkeypatch.setattr(run_command, "candidates", lambda: [tmp_path / "runjob"])
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(FileNotFoundError, match=f"was not found .tried {tmp_path}/runjob, and PATH"):
        run_command.find()
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "runjob").write_text("")
    (tmp_path / "runjob").chmod(0o755)
    assert run_command.find() == str(tmp_path / "runjob")
