"""Time limits that depend on each other, in folders that may not include each other's headers."""

from __future__ import annotations

import re

from source_tree import ROOT


def constant(header: str, name: str) -> int:
    """The value of a constexpr number or of a number of seconds."""
    declaration = re.search(
        rf"static constexpr (?:int|std::chrono::seconds) {name}(?:\{{(\d+)\}}| = (\d+));", (ROOT / header).read_text()
    )
    assert declaration, f"{header} declares no {name} in whole seconds"
    return int(declaration[1] or declaration[2])


def test_the_launcher_notices_a_silent_host_before_it_blames_the_network():
    heartbeat = "launcher/channel/heartbeat.hpp"
    longest_silence = constant(heartbeat, "kInterval") * constant(heartbeat, "kMostMisses")
    noticed_by_ranks = constant("runtime/links/silence_watch.hpp", "kLimit")
    patience = constant("launcher/supervision/rank_supervisor.hpp", "kCulpritPatience")
    assert longest_silence < noticed_by_ranks + patience
