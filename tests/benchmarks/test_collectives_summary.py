"""What benchmarks/collectives makes of times: figures, ratios, tables."""

from benchmarks.collectives import summary

DISTRIBUTED = "torch.distributed"
INTERFACES = {"runjob": "native", "runjob-torch": "torch", "torch-gloo": DISTRIBUTED, "torch-runjob": DISTRIBUTED, "mpich": "native", "intel": "native"}


def results(**times):
    """Results of a case from {series: {bytes: us}}."""
    return {
        name.replace("_", "-") if name not in summary.LIMITS else name: {
            nbytes: summary.of_rounds([summary.of_turn([time])]) for nbytes, time in row.items()
        }
        for name, row in times.items()
    }


def test_a_turn_is_the_median_of_its_samples():
    turn = summary.of_turn([5, 1, 100, 3, 2])
    assert turn == {"median": 3, "mean": 22.2, "p10": 1, "p90": 100, "samples": 5}


def test_a_program_is_the_median_of_its_turns():
    cell = summary.of_rounds([summary.of_turn([time]) for time in (4, 10, 6)])
    assert (cell["median_us"], cell["lowest_us"], cell["highest_us"], cell["samples"]) == (6, 4, 10, 3)
    assert cell["turns"] == [4, 10, 6]


def test_ratios_are_to_what_is_used_in_the_same_way():
    figures = summary.medians(results(runjob={4: 2}, runjob_torch={4: 9}, torch_gloo={4: 90}, mpich={4: 4}, intel={4: 1}))
    assert summary.ratios(figures, INTERFACES) == {
        ("runjob-torch", "torch-gloo"): {4: 0.1},
        ("runjob", "mpich"): {4: 0.5},
        ("runjob", "intel"): {4: 2},
        ("runjob", "best MPI"): {4: 2},
    }


def test_torch_distributed_over_gloo_is_compared_with_the_same_over_runjob():
    figures = summary.medians(results(runjob={4: 2}, runjob_torch={4: 9}, torch_runjob={4: 10}, torch_gloo={4: 90}))
    assert summary.ratios(figures, INTERFACES) == {
        ("runjob-torch", "torch-runjob"): {4: 0.9},
        ("runjob-torch", "torch-gloo"): {4: 0.1},
        ("torch-runjob", "torch-gloo"): {4: 1 / 9},
    }


def test_the_best_mpi_is_another_one_at_another_size():
    figures = {"runjob": {4: 1, 8: 1}, "mpich": {4: 1, 8: 3}, "intel": {4: 2, 8: 2}, "torch-gloo": {4: 0.1}}
    assert summary.best_mpi(figures, 4) == (1, "mpich")
    assert summary.best_mpi(figures, 8) == (2, "intel")
    assert summary.best_mpi({"runjob": {4: 1}}, 4) == (None, None)


def test_without_runjob_there_are_no_ratios():
    assert summary.ratios({"mpich": {4: 1}, "t_copy": {4: 5}}, INTERFACES) == {}
    assert summary.ratio_table({"mpich": {4: 1}}, INTERFACES) == ""


def test_limits_count_only_where_memory_plays_a_part():
    figures = {"runjob": {4: 2, 1024: 10}, "t_copy": {4: 0.001, 1024: 5}}
    assert summary.ratios(figures, INTERFACES) == {("runjob", "t_copy"): {1024: 2}}


def test_tables():
    text = summary.tables("allreduce", results(intel={4: 1, 65536: 8}, t_copy={65536: 2}, runjob={4: 2, 65536: 4}), INTERFACES)
    assert text.splitlines() == [
        "### allreduce: us, medians",
        "",
        "| bytes | runjob | intel | t_copy |",
        "|---:|---:|---:|---:|",
        "| 4 | 2.00 | 1.00 |  |",
        "| 64K | 4.00 | 8.00 | 2.00 |",
        "",
        "Ratios:",
        "",
        "| bytes | runjob / intel | runjob / t_copy | runjob / best MPI | best MPI is |",
        "|---:|---:|---:|---:|---:|",
        "| 4 | 2.00 |  | 2.00 | intel |",
        "| 64K | 0.50 | 2.00 | 0.50 | intel |",
    ]
