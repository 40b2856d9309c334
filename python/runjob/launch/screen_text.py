"""Ranks' text on the caller's terminal: base/screen_text.hpp has the same rules for the command."""

from __future__ import annotations

import re

#: What stays: colours, and titles and links that are complete. What goes: any other sequence, and control characters. A carriage
#: return stays, since progress bars end their updates with one.
_SPECIAL = re.compile(
    r"(?P<stays>\x1b\[[0-9:;]*m|\x1b\][028];[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\))"
    r"|\x1b[]PX^_][^\x00-\x08\x0a-\x1f\x7f]*(?:\x07|\x1b\\)?"
    r"|\x1b\[[ -?]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[ -?]*|[]PX^_][^\x00-\x08\x0a-\x1f\x7f]*\x1b?|[ -/]*)?\Z")
_LONGEST = 4096  # of a sequence that is waited for


def screen_text(text: str) -> str:
    """`text` without what a terminal obeys."""
    return _SPECIAL.sub(lambda special: special.group("stays") or "", text)


class ScreenText:
    """The same for a text that comes in pieces: the beginning of a sequence waits for its end."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str, final: bool = False) -> str:
        text = self._held + text
        unfinished = None if final else _UNFINISHED.search(text)
        end = unfinished.start() if unfinished and len(text) - unfinished.start() <= _LONGEST else len(text)
        self._held = text[end:]
        return screen_text(text[:end])
