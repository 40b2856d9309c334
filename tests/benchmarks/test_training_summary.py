"""What benchmarks/training makes of turns: speeds, ratios, intervals, tables."""

import pytest

from benchmarks.training import summary


def test_a_speed_is_that_of_all_ranks():
    assert summary.speed(16, [[0.5, 1.5], [2.0, 2.0]]) == pytest.approx(16 / 1 + 16 / 2)


def test_results_compare_all_with_ours():
    found = summary.results({"runjob": [10, 30], "ddp": [5, 10]}, "runjob")
    assert found["ddp"]["ratio"]["median"] == 2.5
    assert found["runjob"] == {"samples_per_second": 20, "turns": [10, 30]}


def test_pairs_are_compared_where_both_have_trained():
    speeds = {"ddp-runjob": [10, 30], "ddp": [5, 10], "fsdp": [1, 1]}
    found = summary.pairs(speeds, (("ddp-runjob", "ddp"), ("fsdp-runjob", "fsdp")))
    assert {name: ratio["median"] for name, ratio in found.items()} == {"ddp-runjob / ddp": 2.5}
    case = {"model": "mlp", "np": 2, "results": summary.results(speeds, "runjob"), "pairs": found}
    assert summary.table([case], "runjob").splitlines()[2].endswith("| 2.50 (2.00 to 3.00) |")


def test_tables_have_a_column_for_each_and_leave_out_what_is_not_there():
    cases = [
        {"model": "mlp", "np": 2, "results": summary.results({"runjob": [10], "ddp": [5]}, "runjob"),
         "memory": {"runjob": {"VmHWM": 2048, "Pss": 1024}}},
        {"model": "vgg11", "np": 4, "results": summary.results({"runjob": [3]}, "runjob"), "memory": {}},
    ]  # fmt: skip
    assert summary.table(cases, "runjob").splitlines() == [
        "| samples/s | runjob | ddp | runjob / ddp |",
        "|---|---:|---:|---:|",
        "| mlp, np 2 | 10.0 | 5.0 | 2.00 (2.00 to 2.00) |",
        "| vgg11, np 4 | 3.0 |  |  |",
    ]
    assert summary.memory_table(cases).splitlines()[2:] == ["| mlp, np 2 | 2, 1 |", "| vgg11, np 4 |  |"]
