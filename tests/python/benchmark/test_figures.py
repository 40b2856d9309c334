"""python/runjob/benchmark/figures.py and report.py: from times to the text of the tables."""

import pytest

from runjob.benchmark import figures, report


def test_numbers_and_sizes_are_short():
    assert [figures.number_text(value) for value in (None, 0.0213, 0.5, 4.567, 45.67, 456.7)] == [
        "", "0.021", "0.50", "4.57", "45.7", "457",
    ]  # fmt: skip
    assert [figures.size_text(nbytes) for nbytes in (0, 4, 1000, 65536, 1 << 20)] == ["-", "4", "1000", "64K", "1M"]


@pytest.mark.parametrize(
    "count, expected",
    [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15))],  # of tables of the sign test
)
def test_an_interval_holds_the_median_with_95_percent(count, expected):
    assert figures.interval(range(count, 0, -1)) == expected


@pytest.mark.parametrize("text", ["", "0", "K", "4k", "-1", "1.5M", "4,"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is no size; 4, 64K, 1M and 1G are"):
        figures.sizes(text)
    assert figures.sizes("4,1K,2M,1G") == [4, 1024, 2 << 20, 1 << 30]


def test_a_ratio_is_the_median_of_turns_with_its_interval():
    found = figures.ratio([10, 20, 30], [5, 20, 10])
    assert found == {"median": 2, "lowest": 1, "highest": 3, "turns": [2, 1, 3]}


def test_ratios_are_those_of_turns_that_belong_together():
    rows = [("allreduce", 4, {"runjob": [1.0, 2.0, 3.0], "Gloo": [2.0, 8.0, 3.0]}), ("barrier", 0, {"runjob": [5.0, 5.0, 5.0]})]
    assert report.collectives_table(rows).splitlines() == [
        "| operation | bytes | runjob, us | Gloo, us | runjob / Gloo |",
        "|---|---|---:|---:|---:|",
        "| allreduce | 4 | 2.00 | 3.00 | 0.50 (0.25 to 1.00) |",
        "| barrier | - | 5.00 |  |  |",
    ]


def test_hosts_of_one_kind_share_a_line_and_have_no_names():
    facts = {"cpu": "CPU", "cores": "8", "memory": "16777216 kB", "cpu_quota": "max 100000", "kernel": "6.1", "runjob": "0.1.0", "python": "3.11",
             "threads": "4", "load": "0.10"}  # fmt: skip
    hosts = [{**facts, "host": host} for host in ("s1", "s1", "s2", "s2")] + [{**facts, "host": "s3", "cpu_quota": "200000 100000", "load": "1.5"}]
    assert report.machine_text(hosts, 5, ["runjob.numpy 0.1.0, numpy 2.4"]).splitlines() == [
        "runjob 0.1.0: ranks: 5, hosts: 3; medians of 5 alternating turns",
        "",
        "- 2 x CPU, cores: 8, 16 GiB, Linux 6.1, ranks: 2",
        "- 1 x CPU, cores: 8, 16 GiB, processor quota 200000 100000, Linux 6.1, ranks: 1",
        "- runjob.numpy 0.1.0, numpy 2.4; Python 3.11; OMP_NUM_THREADS=4",
        "- other work is running (load 1.5): read gaps under 2x as nothing",
    ]
