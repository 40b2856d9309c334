"""PyTorch's own tests of torch.distributed, which are in its wheel, on three ranks with the backend runjob."""

import json
import sys

import pytest
import ranks
import scripts

pytest.importorskip("expecttest", reason="PyTorch's tests need the package expecttest")

PROGRAM = ranks.ROOT / "tests" / "python" / "torch" / "distributed" / "pytorch_suite.py"
LIMIT_SECONDS = 1500  # of a run that hangs

#: Tests that fail, each with the reason.
EXCEPTIONS: dict[str, str] = {}
#: The suite skips a test by itself if there are no GPUs, or too few ranks.
REASONS_TO_SKIP = ("accelerator", "small world size", "CUDA")
#: How many tests pass at least: as many as the prototypes of the backend could run.
LEAST_EXPECTED = 65

#: The part that always runs.
SHORT = [
    "test_all_gather_coalesced_with_empty", "test_all_reduce_sum_async", "test_DistributedDataParallelCPU", "test_scatter_checks",
    "test_reduce_full_group_max", "test_gather_full_group", "test_destroy_full_group", "test_ddp_create_graph",
    "test_send_recv", "test_send_recv_any_source",
]  # fmt: skip


def outcomes_of(folder, *names):
    """{name: (outcome, reason)} of the named tests, or of all."""
    done = scripts.run([sys.executable, PROGRAM, folder, *names], LIMIT_SECONDS, **ranks.environment())
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0 and lines, done.stdout + done.stderr
    return {line["name"]: (line["outcome"], line["reason"]) for line in lines}


def test_some_tests_pass(tmp_path):
    outcomes = outcomes_of(tmp_path, *SHORT)
    assert {name: outcome for name, outcome in outcomes.items() if outcome[0] != "passed"} == {}
    assert sorted(outcomes) == sorted(SHORT)


@pytest.mark.thorough
@pytest.mark.timeout(LIMIT_SECONDS + 60)
def test_all_tests_pass_but_the_exceptions(tmp_path):
    outcomes = outcomes_of(tmp_path, "--all")
    of = {kind: {name for name, (outcome, _) in outcomes.items() if outcome == kind} for kind in ("passed", "failed", "skipped")}
    print({kind: len(names) for kind, names in of.items()})
    failures = "\n".join(f"{name}: {outcomes[name][1]}" for name in of["failed"] - set(EXCEPTIONS))
    assert of["failed"] == set(EXCEPTIONS), failures
    skipped = {name: outcomes[name][1] for name in of["skipped"]}
    assert not {name: reason for name, reason in skipped.items() if not any(word in reason for word in REASONS_TO_SKIP)}
    assert len(of["passed"]) + len(EXCEPTIONS) >= LEAST_EXPECTED
