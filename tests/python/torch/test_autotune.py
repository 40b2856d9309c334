"""python/runjob/torch/autotune.py: rank 0 searches while real ranks train, and reports what it has found."""

from __future__ import annotations

import csv
import re
import subprocess
import sys

import pytest

import ranks

HEADER = (
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,tensor_fusion_threshold,score,bucket_mb,step_ms"
)

#: Trains a network with 3 MiB of gradients for some steps. With argv[2], rank 0 has a clock on which a step takes 50 ms
#: with buckets of so many MiB and 100 ms with others. Prints whether all ranks used the same sizes, the sum of the
#: weights' bits, the number of sizes, the last one, and the number of its buckets.
TRAINING = """
import sys
import torch
from torch import nn
import runjob.torch as hvd
from runjob.torch import autotune

class Clock:
    now = 0.0
    def perf_counter(self):
        return self.now

hvd.init()
torch.manual_seed(0)
network = nn.Sequential(*(nn.Linear(256, 256) for _ in range(12)))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.01), network.named_parameters(){options})
batch = torch.ones(2, 256) * (hvd.rank() + 1)
steps, fastest = int(sys.argv[1]), float(sys.argv[2])
clock = Clock()
if fastest:
    autotune.time = clock
sizes = []
for step in range(steps):
    optimizer.zero_grad()
    network(batch).square().sum().backward()
    sizes.append(optimizer._gradients._layout.bucket_bytes)
    clock.now += 0.05 if sizes[-1] == fastest * 2**20 else 0.1
    optimizer.step()
same = [other == sizes for other in hvd.allgather_object(sizes)]
bits = sum(weight.view(torch.int32).sum().item() for weight in network.parameters())
print("result", all(same), bits, len(set(sizes)), sizes[-1] / 2**20, len(optimizer._gradients._layout.buckets), flush=True)
"""


def run(*arguments, np=2, **environment):
    command = [str(ranks.LAUNCHER), "-np", str(np), *map(str, arguments)]
    return subprocess.run(command, env=ranks.environment(**environment), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS, check=False)


def train(tmp_path, *arguments, np=2, steps=300, fastest=0.0, options="", **environment):
    program = tmp_path / "training.py"
    program.write_text(TRAINING.replace("{options}", options))
    return run(*arguments, sys.executable, program, steps, fastest, np=np, **environment)


def result(done):
    """The bits, the number of sizes, the last one, and the number of its buckets: the same on all ranks."""
    assert done.returncode == 0, done.stderr
    (result,) = {line.split("result ")[1] for line in done.stdout.splitlines() if "result" in line}  # of all ranks
    all_same, *rest = result.split()
    assert all_same == "True"
    return rest


def test_the_fastest_size_stays_on_all_ranks_and_the_log_has_the_samples(tmp_path):
    log = tmp_path / "log.csv"
    limits = ["--autotune-warmup-samples", 1, "--autotune-steps-per-sample", 3]
    done = train(tmp_path, "--autotune", "--autotune-log-file", log, *limits, steps=55, fastest=1)
    assert result(done)[1:3] == ["3", "1.0"]
    lines = log.read_text().splitlines()
    assert lines[0] == HEADER
    rows = list(csv.DictReader(lines))
    assert [float(row["bucket_mb"]) for row in rows] == [16, 1, 2, *[16, 1] * 4, 1]
    gradients = 12 * (256 * 256 + 256) * 4
    for row in rows:
        assert [row[name] for name in HEADER.split(",")[:6]] == ["0", "0", "0", "1", "0", "128"]
        assert float(row["step_ms"]) == (50 if row["bucket_mb"] == "1" else 100)
        assert float(row["score"]) == pytest.approx(gradients / float(row["step_ms"]) / 1000, rel=1e-2)
    said = "buckets of 1 MiB stay, with 50 ms a step instead of 100 ms with the default of 16 MiB; --bucket-mb 1 keeps this size"
    assert done.stderr.count(f"runjob: --autotune: {said}\n") == done.stderr.count("--autotune") == 1


def test_no_bits_change_on_one_host(tmp_path):
    plain = result(train(tmp_path, steps=40))
    limits = ["--autotune-warmup-samples", 0, "--autotune-steps-per-sample", 2]
    tuned = result(train(tmp_path, "--autotune", *limits, steps=40, fastest=2))
    assert tuned[1:3] == ["3", "2.0"] and tuned[0] == plain[0]


def test_a_job_that_ends_before_says_how_many_steps_were_missing(tmp_path):
    log = tmp_path / "log.csv"
    done = train(tmp_path, steps=60, HOROVOD_AUTOTUNE="1", HOROVOD_AUTOTUNE_LOG=str(log))
    result(done)
    (missing,) = re.findall(r"--autotune has not ended: the job was too short by up to (\d+) steps", done.stderr)
    # 3 samples of the warm-up and at most 13 others, with a step for each change; the first step of the 60 has no time
    assert int(missing) == 3 * 10 + 13 * 11 - 59
    rows = list(csv.DictReader(log.read_text().splitlines()))
    assert [float(row["bucket_mb"]) for row in rows] == [16, 1]  # no last line with a size that stays
    assert "--autotune: buckets of" not in done.stderr


@pytest.mark.parametrize(
    "arguments, options, reason, buckets",
    [
        (["--bucket-mb", 1], "", "--bucket-mb has set the size of the buckets", "3"),
        ([], ", groups=2", "groups= has set the buckets of the optimizer", "2"),
        (["--fusion-threshold-mb", 0], "", "there is no other size to try, since the optimizer has gradients of 3.01 MiB", "24"),
        (["--autotune-bayes-opt-max-samples", 2], "", "--autotune-bayes-opt-max-samples 2 is less than the number of sizes, 3; give", "1"),
    ],
)
def test_one_line_says_why_nothing_is_tuned(tmp_path, arguments, options, reason, buckets):
    done = train(tmp_path, "--autotune", *arguments, steps=3, options=options)
    assert result(done)[3] == buckets
    assert done.stderr.count("--autotune has tuned nothing") == done.stderr.count(f"--autotune has tuned nothing: {reason}") == 1


def test_without_an_optimizer_one_line_says_so():
    code = "import runjob.numpy as hvd; hvd.init()"
    done = run("--autotune", sys.executable, "-c", code)
    assert done.returncode == 0
    assert done.stderr.count("--autotune has tuned nothing: no DistributedOptimizer of PyTorch has reduced gradients over all ranks") == 1
    alone = run("--autotune", sys.executable, "-c", code, np=1)
    assert alone.stderr.count("--autotune has tuned nothing: the job has one rank") == 1


def test_a_log_that_cannot_be_written_fails_init_on_all_ranks(tmp_path):
    code = "import runjob.numpy as hvd\ntry:\n    hvd.init()\nexcept Exception as error:\n    print(error)"
    place = tmp_path / "nowhere" / "log.csv"
    done = run("-x", "HOROVOD_AUTOTUNE=1", "-x", f"RUNJOB_AUTOTUNE_LOG={place}", sys.executable, "-c", code)
    expected = f"cannot take part: RUNJOB_AUTOTUNE_LOG: cannot create '{place}': No such file or directory"
    assert done.stdout.count(expected) == 2, done.stdout + done.stderr
    refused = run("true", HOROVOD_AUTOTUNE="1", HOROVOD_AUTOTUNE_LOG=str(place))
    assert refused.returncode != 0 and f"environment HOROVOD_AUTOTUNE_LOG: the directory {place.parent} does not exist" in refused.stderr
