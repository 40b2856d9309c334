"""Many cases in one job of real ranks: for what takes much less time than starting ranks.

A test module has CASES, {function: what each rank must get from it}, and says `outcomes = cases.fixture(_all)`, where _all() is a
function of the module that calls run(CASES).
"""

from __future__ import annotations

import traceback
from typing import Any, Callable

import pytest

import ranks


def run(cases: dict[Callable[[], Any], Any]) -> dict[str, Any]:
    """What each case returns, by its name; the traceback of one that raises. On a rank that is in a job."""
    found = {}
    for case in cases:
        try:
            found[case.__name__] = case()
        except Exception:
            found[case.__name__] = traceback.format_exc()
    return found


def fixture(function: Callable[[], Any], np: int = 2) -> Any:
    """A fixture of the module: what `function` returned on each of `np` ranks."""

    @pytest.fixture(scope="module")
    def outcomes(tmp_path_factory):
        return ranks.start(tmp_path_factory.mktemp("cases") / "job", function, np).results

    return outcomes
