"""examples/*.py, run as their first lines say."""

import importlib.util
import re

import pytest

from ranks import ROOT

EXAMPLES = ROOT / "examples"


def _accuracy(job) -> float:
    (accuracy,) = re.findall(r"^(?:\[0\]<stdout>:)?test accuracy ([\d.]+) after [\d.]+ s$", job.stdout, re.MULTILINE)
    return float(accuracy)


@pytest.mark.parametrize(
    "script, np",
    [
        ("pytorch_digits", 0), pytest.param("pytorch_digits", 1, marks=pytest.mark.thorough), ("pytorch_digits", 2),
        pytest.param("pytorch_digits", 4, marks=pytest.mark.thorough), ("pytorch_digits_horovod", 2),
    ],
)  # fmt: skip
def test_a_model_is_trained(run_ranks, script, np):
    job = run_ranks(EXAMPLES / f"{script}.py", np)
    assert _accuracy(job) >= 0.97
    assert "[1]<stdout>" not in job.stdout, "only rank 0 prints"


def test_keras_learns_with_pytorch_as_its_backend(run_ranks, monkeypatch):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("no Keras here: pip install keras")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    job = run_ranks(EXAMPLES / "keras_digits.py", 2)
    assert float(re.findall(r"test accuracy (\S+)", job.stdout)[-1]) > 0.9, job.stdout


def test_training_is_reproducible_and_saved(run_ranks, tmp_path):
    torch = pytest.importorskip("torch")
    models = []
    for attempt in range(2):
        file = tmp_path / f"model{attempt}.pt"
        run_ranks(EXAMPLES / "pytorch_digits.py", 2, "--epochs", 2, "--checkpoint", file)
        models.append(torch.load(file))
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_an_epoch_that_is_all_warm_up_can_be_the_only_one(run_ranks):
    """The scheduler asks for a factor after the last step as well, where neither warm-up nor descent has any steps."""
    assert 0 < _accuracy(run_ranks(EXAMPLES / "pytorch_digits.py", 0, "--epochs", 1)) < 1


def test_the_horovod_example_differs_in_its_import_only():
    ours, theirs = ((EXAMPLES / name).read_text().splitlines() for name in ("pytorch_digits.py", "pytorch_digits_horovod.py"))
    changed = [(a, b) for a, b in zip(ours, theirs) if a != b]
    assert len(ours) == len(theirs)
    assert ("import runjob.torch as hvd", "import horovod.torch as hvd") in changed
    assert all("import" in a or "pytorch_digits" in a for a, _ in changed)


@pytest.mark.thorough
def test_the_benchmark_prints_the_rate_of_a_rank_and_of_all(run_ranks):
    small = "--no-cuda --batch-size 2 --image-size 64 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 3 --fp16-allreduce"
    lines = [line.partition(">:")[2] for line in run_ranks(EXAMPLES / "pytorch_synthetic_benchmark.py", 2, *small.split()).stdout.splitlines()]
    assert lines[:3] == ["Model: resnet50", "Batch size: 2", "Number of CPUs: 2"], "and only rank 0 prints"
    rates = [float(re.fullmatch(rf"Iter #{i}: ([\d.]+) img/sec per CPU", line).group(1)) for i, line in enumerate(lines[5:8])]
    mean, spread = map(float, re.fullmatch(r"Img/sec per CPU: ([\d.]+) \+-([\d.]+)", lines[8]).groups())
    total, _ = map(float, re.fullmatch(r"Total img/sec on 2 CPU\(s\): ([\d.]+) \+-([\d.]+)", lines[9]).groups())
    assert mean == pytest.approx(sum(rates) / 3, abs=0.11) and min(rates) > 0
    assert spread == pytest.approx(1.96 * (sum((rate - mean) ** 2 for rate in rates) / 3) ** 0.5, abs=0.2)
    assert total == pytest.approx(2 * mean, abs=0.11)


def test_the_benchmarks_network_is_resnet50(run_python):
    code = f"""
import runpy, sys
sys.path.insert(0, {str(EXAMPLES)!r})
make = runpy.run_path({str(EXAMPLES / "pytorch_synthetic_benchmark.py")!r})["make_model"]
import torch
model = make("resnet50").eval()
print(sum(p.numel() for p in model.parameters()), len(list(model.parameters())), tuple(model(torch.zeros(1, 3, 64, 64)).shape))
try:
    make("no_such_network")
except SystemExit as error:
    print(error)
"""
    numbers, refusal = run_python(code).stdout.splitlines()
    assert numbers == "25557032 161 (1, 1000)"
    assert refusal.startswith("--model no_such_network") and "torchvision" in refusal


@pytest.mark.thorough
def test_a_transformer_learns_on_shards_of_text(run_ranks):
    jobs = [run_ranks(EXAMPLES / "pytorch_transformer.py", 2, "--steps", 60, "--evaluate-every", 30) for _ in range(2)]
    losses = [re.findall(r"^\[0\]<stdout>:step +\d+: test loss ([\d.]+)$", job.stdout, re.MULTILINE) for job in jobs]
    assert losses[0] == losses[1], "the seeds are fixed"
    first, last = map(float, losses[0])
    assert last < first < 3.1 and last < 2.6, "better than knowing how often each character occurs"
    assert "[1]<stdout>" not in jobs[0].stdout, "only rank 0 prints"


SMALL_IMAGENET = "--no-cuda --image-size 32 --classes 4 --val-images 8 --base-lr 0.001 --warmup-epochs 1"


def _imagenet_epochs(run_ranks, folder, *arguments):
    """What pytorch_imagenet_resnet50.py prints: its first line, and the figures of each epoch."""
    small = [*SMALL_IMAGENET.split(), "--checkpoint-format", folder / "checkpoint-{epoch}.pt", *arguments]
    job = run_ranks(EXAMPLES / "pytorch_imagenet_resnet50.py", 2, *small)
    first, *epochs = [line.removeprefix("[0]<stdout>:") for line in job.stdout.splitlines()]
    pattern = r"epoch (\d+): loss ([\d.]+), validation loss ([\d.]+), accuracy ([\d.]+)"
    return first, {int(found[1]): found.groups()[1:] for found in (re.fullmatch(pattern, line) for line in epochs)}


@pytest.mark.thorough
def test_resnet50_learns_and_continues_after_its_last_checkpoint(run_ranks, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir(), parts.mkdir()
    options = ("--mixed-precision", "bfloat16", "--train-images", 48, "--batch-size", 8)
    first, expected = _imagenet_epochs(run_ranks, whole, *options, "--epochs", 2)
    assert first == "ResNet-50 with 2 ranks on cpu, from the beginning"
    assert list(expected) == [1, 2] and float(expected[2][0]) < float(expected[1][0]), "the loss falls"
    assert sorted(path.name for path in whole.iterdir()) == [f"checkpoint-{epoch}.pt" for epoch in (1, 2)], "no partial files"

    _imagenet_epochs(run_ranks, parts, *options, "--epochs", 1)
    first, continued = _imagenet_epochs(run_ranks, parts, *options, "--epochs", 2)
    assert first == "ResNet-50 with 2 ranks on cpu, continuing after epoch 1"
    assert continued == {2: expected[2]}, "as if the job had not been interrupted"


@pytest.mark.thorough
def test_resnet50_trains_with_float16_and_several_backward_passes_for_a_step(run_ranks, tmp_path):
    options = "--mixed-precision float16 --train-images 16 --batch-size 4 --batches-per-allreduce 2 --fp16-allreduce --epochs 1".split()
    _, epochs = _imagenet_epochs(run_ranks, tmp_path, *options)
    assert 0 < float(epochs[1][0]) < 5, "the loss is a number, and about that of a guess among four classes"


@pytest.mark.thorough
def test_ranks_with_unequal_data_train_with_join(run_ranks):
    job = run_ranks(EXAMPLES / "pytorch_join.py", 3)
    found = re.findall(r"^\[\d\]<stdout>:rank (\d): (\d+) steps on (\d+) images$", job.stdout, re.MULTILINE)
    assert {int(rank): int(count) for rank, count, _ in found} == {0: 8, 1: 16, 2: 24}
    assert sum(int(images) for _, _, images in found) == 1500, "no image is left out"
    last = re.findall(r"^\[(\d)\]<stdout>:epoch 6: rank (\d) was the last to join, test accuracy ([\d.]+)$", job.stdout, re.MULTILINE)
    ((printed_by, rank, accuracy),) = last
    assert printed_by == rank == "2" and float(accuracy) > 0.85
