"""Times to figures, ratios and tables. Pure functions; times are microseconds.

A turn's figure is the median of its samples; a program's is the median of its turns'.
"""

import statistics

from runjob.benchmark.figures import markdown, number_text, size_text

FIRST_COLUMN = "bytes"
BEST_MPI = "best MPI"
LIMITS = ("t_copy", "t_scale")
LEAST_LIMIT_US = 1
MPI_FAMILIES = ("openmpi", "mpich", "intel")
FIXED_COLUMNS = ("runjob", "runjob-torch")
OURS_DISTRIBUTED = "torch-runjob"


def of_turn(times):
    ordered = sorted(times)

    def quantile(fraction):
        return ordered[round(fraction * (len(ordered) - 1))]

    return {
        "median": statistics.median(ordered), "mean": statistics.mean(ordered), "p10": quantile(0.1), "p90": quantile(0.9),
        "samples": len(ordered),
    }  # fmt: skip


def of_rounds(turns):
    """`median_us` of the turns, and the `lowest_us` and `highest_us` of their medians, which tell how quiet the machine was."""
    medians = [turn["median"] for turn in turns]
    return {
        "median_us": statistics.median(medians), "lowest_us": min(medians), "highest_us": max(medians),
        "mean_us": statistics.median(turn["mean"] for turn in turns),
        "p10_us": statistics.median(turn["p10"] for turn in turns),
        "p90_us": statistics.median(turn["p90"] for turn in turns),
        "samples": sum(turn["samples"] for turn in turns), "turns": medians,
    }  # fmt: skip


def medians(results):
    """{series: {bytes: us}} of a case's results."""
    return {name: {int(nbytes): cell["median_us"] for nbytes, cell in row.items()} for name, row in results.items()}


def is_mpi(name):
    return name.startswith(MPI_FAMILIES)


def best_mpi(figures, nbytes):
    """The lowest figure of any MPI at a size, and whose it is; (None, None) without one."""
    found = [(row[nbytes], name) for name, row in figures.items() if is_mpi(name) and nbytes in row]
    return min(found) if found else (None, None)


def ratios(figures, interfaces):
    """{(numerator, denominator): {bytes: ratio}}, without those that have nothing to compare.

    What is used through torch is compared with runjob.torch where that was measured, all else with runjob, and torch.distributed
    over Gloo also with torch.distributed over runjob. Limits that are too short to say anything about messages are left out.
    """
    table = {}
    for ours, name in _pairs(figures, interfaces):
        least = LEAST_LIMIT_US if name in LIMITS else 0
        common = [nbytes for nbytes in figures.get(ours, {}) if figures[name].get(nbytes, 0) > least]
        table[(ours, name)] = {nbytes: figures[ours][nbytes] / figures[name][nbytes] for nbytes in common}
    best = {nbytes: best_mpi(figures, nbytes)[0] for nbytes in figures.get("runjob", {})}
    table[("runjob", BEST_MPI)] = {nbytes: figures["runjob"][nbytes] / time for nbytes, time in best.items() if time}
    return {pair: row for pair, row in table.items() if row}


def _pairs(figures, interfaces):
    """(ours, another) of all that is compared."""
    for name in figures:
        if name in FIXED_COLUMNS:
            continue
        is_of_torch = interfaces.get(name, "").startswith("torch")
        yield ("runjob-torch" if is_of_torch and "runjob-torch" in figures else "runjob"), name
        if interfaces.get(name) == "torch.distributed" and name != OURS_DISTRIBUTED and OURS_DISTRIBUTED in figures:
            yield OURS_DISTRIBUTED, name


def sizes_of(figures):
    return sorted({nbytes for row in figures.values() for nbytes in row})


def time_table(figures):
    names = list(figures)
    rows = [[size_text(nbytes), *(number_text(figures[name].get(nbytes)) for name in names)] for nbytes in sizes_of(figures)]
    return markdown([FIRST_COLUMN, *names], rows)


def ratio_table(figures, interfaces):
    """Empty when there is nothing to compare with."""
    columns = ratios(figures, interfaces)
    if not columns:
        return ""
    names_best = ("runjob", BEST_MPI) in columns
    rows = []
    for nbytes in sizes_of(figures):
        cells = [number_text(column.get(nbytes)) for column in columns.values()]
        winner = best_mpi(figures, nbytes)[1]
        rows.append([size_text(nbytes), *cells, *([winner or ""] if names_best else [])])
    head = [FIRST_COLUMN, *(f"{ours} / {name}" for ours, name in columns)]
    return markdown([*head, "best MPI is"] if names_best else head, rows)


def tables(title, results, interfaces):
    figures = in_order(medians(results), interfaces)
    parts = [f"### {title}: us, medians", time_table(figures)]
    ratio = ratio_table(figures, interfaces)
    return "\n\n".join([*parts, "Ratios:", ratio] if ratio else parts)


def in_order(figures, interfaces):
    """runjob's columns first, the limits last, the others as they were found."""
    known = [name for name in (*FIXED_COLUMNS, *interfaces) if name in figures and name not in LIMITS]
    return {name: figures[name] for name in dict.fromkeys([*known, *(name for name in LIMITS if name in figures)])}
