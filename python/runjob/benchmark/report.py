"""The tables of `python -m runjob.benchmark`. Pure functions."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from . import machine
from .figures import markdown, number_text, ratio, ratio_text, size_text


def table(words: list[str], rows: list[tuple[list[str], dict[str, list[float]]]], unit: str) -> str:
    """Medians of the turns by library, and the ratios of the first library to the others. A row is its words and {library: turns}."""
    names = list(dict.fromkeys(name for _, results in rows for name in results))
    ours, others = names[0], names[1:]
    cells = [
        [
            *texts,
            *(number_text(statistics.median(results[name])) if name in results else "" for name in names),
            *(ratio_text(ratio(results[ours], results[name])) if name in results else "" for name in others),
        ]
        for texts, results in rows
    ]
    return markdown([*words, *(f"{name}, {unit}" for name in names), *(f"{ours} / {name}" for name in others)], cells, len(words))


def collectives_table(rows: list[tuple[str, int, dict[str, list[float]]]]) -> str:
    """The table of rows (operation, bytes, {library: microseconds by turn})."""
    return table(["operation", "bytes"], [([operation, size_text(nbytes)], results) for operation, nbytes, results in rows], "us")


def training_table(rows: list[tuple[str, dict[str, list[float]]]]) -> str:
    """Of (network, {library: milliseconds of a step by turn})."""
    return table(["step of a training"], [([network], results) for network, results in rows], "ms")


def host_text(facts: dict[str, Any], ranks: int) -> str:
    """One line about a kind of host: without a name, so that a report can be published."""
    words = facts["memory"].split()
    memory = f"{int(words[0]) / 2**20:.0f} GiB" if words[0].isdigit() else "memory unknown"
    quota = [] if facts["cpu_quota"] in ("unknown", "max 100000") else [f"processor quota {facts['cpu_quota']}"]
    return ", ".join([facts["cpu"], f"cores: {facts['cores']}", memory, *quota, f"Linux {facts['kernel']}", f"ranks: {ranks}"])


def machine_text(hosts: list[dict[str, Any]], turns: int, libraries: list[str]) -> str:
    """The facts that figures are meaningless without. `hosts`: of each rank, its host's name and facts."""
    by_host = {host["host"]: host for host in hosts}
    ranks = Counter(host["host"] for host in hosts)
    kinds = Counter(host_text(each, ranks[name]) for name, each in by_host.items())
    lines = [f"runjob {hosts[0]['runjob']}: ranks: {len(hosts)}, hosts: {len(by_host)}; medians of {turns} alternating turns", ""]
    lines += [f"- {count} x {kind}" for kind, count in kinds.items()]
    lines += [f"- {', '.join(libraries)}; Python {hosts[0]['python']}; OMP_NUM_THREADS={hosts[0]['threads']}"]
    noise = machine.noise(max(float(each["load"]) for each in hosts))
    return "\n".join([*lines, *([f"- {noise}"] if noise else [])])
