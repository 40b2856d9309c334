"""What the ranks of `python -m runjob.benchmark` measure together: collectives and training steps, by turns of the libraries in the
same processes, so that what else the machine does meets all of them alike.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any, Callable, Iterator

from . import loop

_FEWEST_SAMPLES = 3  # of a collective in one turn
_WARM_UP_STEPS = 3
_MOST_STEPS = 50  # of a training in one turn

Say = Callable[[str], None]


def alternating(names: list[str], turns: int) -> Iterator[str]:
    """Each name once in each turn, in an order that rotates."""
    for turn in range(turns):
        first = turn % len(names)
        yield from names[first:] + names[:first]


class Collectives:
    """The collectives of several libraries. `libraries`: {name: one of libraries.py}, ours first; `left_out`: {name and operation:
    the reason}. All ranks make the same calls.
    """

    def __init__(self, libraries: dict[str, Any], turns: int, say: Say) -> None:
        self._libraries, self._turns, self._say = libraries, turns, say
        self.left_out: dict[str, str] = {}

    def measure(self, cases: list[tuple[str, int]], seconds: float) -> list[tuple[str, int, dict[str, list[float]]]]:
        """Returns for each (operation, bytes) {library: microseconds in each turn}, within about so many seconds for all. What one
        case takes too much, because its operations are slow, the later ones get less; rank 0's clock counts.
        """
        end = time.perf_counter() + seconds
        found: list[tuple[str, int, dict[str, list[float]]]] = []
        for number, (operation, nbytes) in enumerate(cases):
            if operation not in (each for each, _, _ in found):
                self._say(operation)
            left_ms = max(end - time.perf_counter(), 0) * 1000 / (len(cases) - number)
            found.append((operation, nbytes, self._of_case(operation, nbytes, left_ms / len(self._libraries) / self._turns)))
        return found

    def _of_case(self, operation: str, nbytes: int, budget_ms: float) -> dict[str, list[float]]:
        names = [name for name in self._libraries if f"{name}: {operation}" not in self.left_out]
        results: dict[str, list[float]] = {name: [] for name in names}
        for name in alternating(names, self._turns):
            if name not in results:
                continue
            try:
                plan = loop.Plan(operation, budget_ms=budget_ms, min_iterations=_FEWEST_SAMPLES)
                operations, times = loop.measure_size(self._libraries[name], plan, nbytes, checks=not results[name])
                results[name].append(statistics.median(times) / operations)
            except (NotImplementedError, RuntimeError) as error:
                if name == next(iter(self._libraries)):
                    raise  # runjob's own errors end the benchmark
                self.left_out[f"{name}: {operation}"] = str(error).partition("\n")[0]
                del results[name]
            gc.collect()
        return results


def measure_training(trainings: dict[str, Any], turns: int, seconds: float, of_rank_0: Callable[[int], int]) -> dict[str, list[float]]:
    """{library: milliseconds of a step in each turn}, within about so many seconds for all. `trainings`: {library: a
    training.Training}, ours first. The first step of each turn, which refills the caches, does not count.
    """
    begin = time.perf_counter()
    for training in trainings.values():
        training.take(_WARM_UP_STEPS)
    warm_up = time.perf_counter() - begin
    of_all_libraries = warm_up / _WARM_UP_STEPS  # one step of each
    steps = of_rank_0(int(min(max((seconds - warm_up) / of_all_libraries / turns - 1, 1), _MOST_STEPS)))
    results: dict[str, list[float]] = {name: [] for name in trainings}
    for name in alternating(list(trainings), turns):
        results[name].append(statistics.median(trainings[name].take(steps + 1)[1:]) * 1e3)
    return results
