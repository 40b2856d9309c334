"""Cleans the ranks' text for the caller's terminal. base/screen_text.hpp has the same rules for the command."""

from __future__ import annotations

import re

#: The text keeps colours, and titles and links that are complete. It loses all other sequences, and control characters.
#: A carriage return stays, because progress bars end their updates with one.
_SPECIAL = re.compile(
    r"(?P<stays>\x1b\[[0-9:;]*m|\x1b\][028];[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\))"
    r"|\x1b[]PX^_][^\x00-\x08\x0a-\x1f\x7f]*(?:\x07|\x1b\\)?"
    r"|\x1b\[[ -?]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
#: The marks that change the direction of writing, and the ends of a line, at which such a change is ended.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069\n\r]")
_MOST_OPEN = 125  # UAX #9: max_depth
_END_OF_EMBEDDING, _END_OF_ISOLATE = "\u202c", "\u2069"
_UNFINISHED = re.compile(r"\x1b(?:\[[ -?]*|[]PX^_][^\x00-\x08\x0a-\x1f\x7f]*\x1b?|[ -/]*)?\Z")
_LONGEST = 4096  # the longest sequence whose end is waited for


def _without_sequences(text: str) -> str:
    return _SPECIAL.sub(lambda special: special.group("stays") or "", text)


def screen_text(text: str) -> str:
    """`text` without sequences that a terminal obeys, and without marks of direction."""
    return _DIRECTIONS.sub(lambda mark: mark.group() if mark.group() in "\r\n" else "", _without_sequences(text))


class ScreenText:
    """Cleans text that comes in pieces: the beginning of a sequence waits for its end. It serves the text of one rank,
    and keeps the marks of direction, which Arabic and Hebrew text uses. A mark that is in effect at the end of a line
    is ended there.
    """

    def __init__(self) -> None:
        self._held = ""
        self._open: list[str] = []  # the mark that ends each open change, from the outermost on

    def feed(self, text: str, final: bool = False) -> str:
        text = self._held + text
        unfinished = None if final else _UNFINISHED.search(text)
        end = unfinished.start() if unfinished and len(text) - unfinished.start() <= _LONGEST else len(text)
        self._held = text[end:]
        return _DIRECTIONS.sub(self._follow, _without_sequences(text[:end])) + (self._ends() if final else "")

    def _ends(self) -> str:
        ends = "".join(reversed(self._open))
        self._open.clear()
        return ends

    def _follow(self, found: re.Match[str]) -> str:
        mark = found.group()
        if mark in "\r\n":
            return self._ends() + mark
        if mark == _END_OF_ISOLATE:
            if mark in self._open:  # closes also the changes within it
                del self._open[len(self._open) - 1 - self._open[::-1].index(mark) :]
        elif mark != _END_OF_EMBEDDING:
            if len(self._open) == _MOST_OPEN:
                return ""
            self._open.append(_END_OF_ISOLATE if mark >= "\u2066" else _END_OF_EMBEDDING)
        elif self._open and self._open[-1] == mark:
            self._open.pop()
        return mark
