"""examples/*.py, run as their first lines say."""

import re

import pytest

from ranks import ROOT

EXAMPLES = ROOT / "examples"


def _accuracy(job) -> float:
    (accuracy,) = re.findall(r"^(?:\[0\]<stdout>:)?test accuracy ([\d.]+) after [\d.]+ s$", job.stdout, re.MULTILINE)
    return float(accuracy)


@pytest.mark.parametrize(
    "script, np", [("pytorch_digits", 0), ("pytorch_digits", 1), ("pytorch_digits", 2), ("pytorch_digits", 4), ("pytorch_digits_horovod", 2)]
)
def test_a_model_is_trained(run_ranks, script, np):
    job = run_ranks(EXAMPLES / f"{script}.py", np)
    assert _accuracy(job) >= 0.97
    assert "[1]<stdout>" not in job.stdout, "only rank 0 prints"


def test_training_is_reproducible_and_saved(run_ranks, tmp_path):
    torch = pytest.importorskip("torch")
    models = []
    for attempt in range(2):
        file = tmp_path / f"model{attempt}.pt"
        run_ranks(EXAMPLES / "pytorch_digits.py", 2, "--epochs", 2, "--checkpoint", file)
        models.append(torch.load(file))
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_the_horovod_example_differs_in_its_import_only():
    ours, theirs = ((EXAMPLES / name).read_text().splitlines() for name in ("pytorch_digits.py", "pytorch_digits_horovod.py"))
    changed = [(a, b) for a, b in zip(ours, theirs) if a != b]
    assert len(ours) == len(theirs)
    assert ("import runjob.torch as hvd", "import horovod.torch as hvd") in changed
    assert all("import" in a or "pytorch_digits" in a for a, _ in changed)
