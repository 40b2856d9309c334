"""python -m runjob.benchmark: it measures with real ranks and prints its tables. How fast anything is, is not asked here."""

import re
import subprocess
import sys

import pytest
import ranks

TINY = ("--seconds", "0.2", "--turns", "2", "--sizes", "4,1K", "--networks", "none")


def run(*words, **environment):
    return ranks.python("-m", "runjob.benchmark", *words, **{"RUNJOB_BIN": str(ranks.LAUNCHER), **environment})


def rows(text, first):
    """The cells of the tables' rows that begin with `first`."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith(f"| {first} |")]


def without(folder, *modules):
    """The variables of a Python that cannot import these modules."""
    (folder / "sitecustomize.py").write_text("import sys\n" + "".join(f"sys.modules[{module!r}] = None\n" for module in modules))
    return {"PYTHONPATH": f"{folder}:{ranks.ROOT / 'python'}"}


def test_it_starts_two_ranks_and_prints_tables_of_collectives_and_of_training():
    done = run("--seconds", "0.2", "--turns", "2", "--sizes", "4,1K", "--networks", "mlp")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"runjob \d\S+: ranks: 2, hosts: 1; medians of 2 alternating turns", lines[0])
    assert re.fullmatch(r"- 1 x .+, cores: \d+, \d+ GiB, .*Linux .+, ranks: 2", lines[2])
    assert re.match(r"- runjob\.torch \d\S+, torch \d\S+, torch \S+ gloo; Python 3\.\d+", lines[3])
    assert "| operation | bytes | runjob, us | Gloo, us | runjob / Gloo |\n|---|---|---:|---:|---:|" in done.stdout
    for operation in ("allreduce", "allgather", "broadcast", "reducescatter", "alltoall", "barrier"):
        found = rows(done.stdout, operation)
        assert [row[1] for row in found] == (["-"] if operation == "barrier" else ["4", "1K"])
        for row in found:
            if f"left out: Gloo: {operation}: " not in done.stdout:
                assert float(row[2]) > 0 and float(row[3]) > 0 and re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)", row[4])
    assert "| step of a training | runjob, ms | DDP, ms | runjob / DDP |" in done.stdout
    ((_, ours, theirs, _),) = rows(done.stdout, "mlp")
    assert float(ours) > 0 and float(theirs) > 0
    assert "== allreduce\n" in done.stderr and "== training, mlp\n" in done.stderr


def test_without_pytorch_arrays_of_numpy_are_measured(tmp_path):
    done = run(*TINY, "--ops", "allreduce,alltoall", **without(tmp_path, "torch"))
    assert done.returncode == 0, done.stderr
    assert "== without PyTorch: rank 0 on " in done.stderr
    assert "| operation | bytes | runjob, us |" in done.stdout and "- runjob.numpy " in done.stdout
    assert len(rows(done.stdout, "allreduce")) == len(rows(done.stdout, "alltoall")) == 2 and "Gloo" not in done.stdout


def test_without_pytorch_and_numpy_it_ends_with_a_remedy(tmp_path):
    done = run(*TINY, **without(tmp_path, "torch", "numpy"))
    assert done.returncode == 1
    assert re.search(r"^error: rank 0 on \S+ has neither PyTorch nor NumPy; install one of them there$", done.stderr, re.MULTILINE)


def test_it_is_a_program_of_a_job_as_well():
    program = [sys.executable, "-m", "runjob.benchmark", "--ops", "barrier", *TINY]
    done = subprocess.run(
        [ranks.LAUNCHER, "-np", "3", "--tag-output=none", *program], env=ranks.environment(), capture_output=True, text=True,
        timeout=ranks.TIMEOUT_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ranks: 3, hosts: 1" in done.stdout and len(rows(done.stdout, "barrier")) == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (("-np", "1"), "error: one rank has nobody to exchange data with; start at least 2"),
        (("-np", "two"), "'two' is no number greater than 0"),
        (("--seconds", "0"), "'0' is no number greater than 0"),
        (("--turns", "-3"), "'-3' is no number greater than 0"),
        (("--sizes", "4,5X"), "'5X' is no size; 4, 64K, 1M and 1G are"),
        (("--ops", "allreduce,reduce"), "'reduce' is none of allreduce, allgather, broadcast, reducescatter, alltoall, barrier"),
        (("--networks", "gpt"), "'gpt' is none of resnet18, vgg11, transformer, mlp, small-layers"),
        (("--fast",), "unrecognized arguments: --fast"),
    ],
)
def test_wrong_options_are_refused(words, message):
    done = run(*words)
    assert done.returncode in (1, 2) and message in done.stderr, done.stderr


def test_a_launcher_that_is_not_there_is_named():
    done = run(*TINY, RUNJOB_BIN="/nowhere/runjob")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: RUNJOB_BIN names /nowhere/runjob, which is no program" in done.stderr


def test_the_networks_of_the_options_are_those_that_there_are():
    done = ranks.python("-c", "from runjob.benchmark import arguments, networks; print(set(arguments.NETWORKS) == set(networks.MODELS))")
    assert done.stdout == "True\n", done.stderr
