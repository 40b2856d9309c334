"""python/horovod/runner/arguments.py and launch._run(): jobs that are described by an object."""

import pickle
import sys

import pytest

import ranks
import runjob
from horovod.runner import _HorovodArgs
from horovod.runner.arguments import words_of
from horovod.runner.launch import _run

pytest.importorskip("cloudpickle")


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    monkeypatch.setenv("RUNJOB_BIN", str(ranks.LAUNCHER))


def described(**options):
    arguments = _HorovodArgs()
    for name, value in options.items():
        setattr(arguments, name, value)
    return arguments


def test_attributes_are_options():
    assert (_HorovodArgs().num_proc, _HorovodArgs().hosts) == (1, None)
    assert words_of(_HorovodArgs()) == []
    arguments = described(
        num_proc=4, hosts="a:2,b:2", use_gloo=True, use_mpi=False, nics={"lo"}, verbose=2, fusion_threshold_mb=32, mpi_args=None,
        command=["python", "train.py"], ssh_port=22, timeline_filename="t.json",
    )  # fmt: skip
    assert sorted(words_of(arguments)) == [
        "--fusion-threshold-mb=32", "--gloo", "--hosts=a:2,b:2", "--network-interfaces=lo", "--ssh-port=22", "--timeline-filename=t.json",
        "--verbose",
    ]  # fmt: skip
    assert vars(pickle.loads(pickle.dumps(arguments))) == vars(arguments)


def test_a_function_is_called_on_each_rank():
    assert _run(described(num_proc=2, hosts="localhost:2", use_gloo=True, run_func=lambda: 3)) == [3, 3]
    with pytest.raises(runjob.RankError, match="^Horovod detected that one or more processes exited with non-zero status: rank 0 "):
        _run(described(run_func=lambda: 1 / 0))


def test_a_command_is_run_on_each_rank(tmp_path, capfd):
    code = "import os; print(os.environ['HOROVOD_SIZE'])"
    assert _run(described(num_proc=2, output_filename=str(tmp_path), command=[sys.executable, "-c", code])) is None
    assert [(tmp_path / f"rank.{rank}" / "stdout").read_text() for rank in range(2)] == ["2\n"] * 2
    with pytest.raises(RuntimeError, match="^Horovod detected that .* non-zero status: the status of the job is 3$"):
        _run(described(command=[sys.executable, "-c", "raise SystemExit(3)"]))
    assert "rank 0 on localhost" in capfd.readouterr().err
