"""Times to medians, ratios and tables. Pure functions."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any, Sequence

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """`64K` -> 65536. Errors  ValueError."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or not int(match[1]):
        raise ValueError(f"'{text}' is no size; 4, 64K, 1M and 1G are")
    return int(match[1]) * _UNITS[match[2]]


def size_text(nbytes: int) -> str:
    """65536 -> `64K`; a size of 0, of a barrier, -> `-`."""
    for unit, factor in reversed(_UNITS.items()):
        if factor > 1 and nbytes >= factor and nbytes % factor == 0:
            return f"{nbytes // factor}{unit}"
    return str(nbytes) if nbytes else "-"


def number_text(value: float | None) -> str:
    """Three digits that count, and no more after the point than that takes; no value is an empty cell."""
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def chosen(words: str, known: Sequence[str]) -> list[str]:
    """The words of a list with commas. Errors  ValueError for one that is not known."""
    found = words.split(",")
    if unknown := [word for word in found if word not in known]:
        raise ValueError(f"'{unknown[0]}' is none of {', '.join(known)}")
    return found


def sizes(text: str) -> list[int]:
    """`4,64K` -> [4, 65536]. Errors  ValueError."""
    return [parse_size(word) for word in text.split(",")]


def interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The lowest and the highest value of a confidence interval of the median. It follows from the order of the values
    alone, without an assumption about their distribution.

    The k-th lowest and the k-th highest of n values have the median between them with probability 1 - 2 P(B < k), where
    B is binomial (n, 1/2). Too few values for the confidence give the lowest and the highest.
    """
    ordered = sorted(values)
    count = len(ordered)
    below, k = 0.0, 0
    while k < count // 2:
        below += math.comb(count, k) / 2**count
        if 1 - 2 * below < confidence:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[-k]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """The ratios of the turns that belong together, their median, and the interval that contains it by 95%."""
    turns = [a / b for a, b in zip(ours, theirs)]
    lowest, highest = interval(turns)
    return {"median": statistics.median(turns), "lowest": lowest, "highest": highest, "turns": turns}


def ratio_text(found: dict[str, Any]) -> str:
    """A ratio with its interval, for a cell of a table."""
    return f"{found['median']:.2f} ({found['lowest']:.2f} to {found['highest']:.2f})"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> str:
    """A table, whose first `words` columns are words and the others numbers."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * words + "---:|" * (len(head) - words), *lines[1:]])
