"""python/runjob/launch/screen_text.py: what of the ranks' text reaches the caller's terminal."""

import pytest

from runjob.launch.screen_text import ScreenText, screen_text

KEPT = ["gr\u00fc\u00df\tdich\n", "\x1b[1;31mred\x1b[m", "\x1b]0;title\x07", "\x1b]8;;http://u\x1b\\link\x1b]8;;\x1b\\", "5%\r10%\n"]
REMOVED = [
    "\x1b[2J", "\x1b[10;5H", "\x1b[?1049h", "\x1b[6n", "\x1b[>4;2m", "\x1b]52;c;YQ==\x07", "\x1b]52;c;?\x1b\\", "\x1b]4;1;?\x07",
    "\x1bP$qm\x1b\\", "\x1b_x\x1b\\", "\x1b(0", "\x1bc", "\x1b7", "\x07", "\x08", "\x7f", "\x9b", "\x9d", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_text_colours_titles_and_links_stay(text):
    assert screen_text(text) == text


@pytest.mark.parametrize("text", REMOVED)
def test_what_steers_a_terminal_goes(text):
    assert screen_text(f"a{text}b") == "ab"


@pytest.mark.parametrize("text", KEPT + REMOVED)
def test_pieces_of_any_size_make_no_difference(text):
    printer, whole = ScreenText(), f"a{text}b"
    assert "".join(printer.feed(each) for each in whole) + printer.feed("", final=True) == screen_text(whole)


def test_a_sequence_without_end_holds_no_line_back():
    assert screen_text("a\x1b]0;title\nthe error") == "a\nthe error"
    printer = ScreenText()
    assert printer.feed("a\x1b]0;" + "x" * 5000) == "a"
    assert printer.feed("b\n") == "b\n"
    assert ScreenText().feed("a\x1b[", final=True) == "a"


LEFT_OPEN = {
    "a\u202eb\nc": "a\u202eb\u202c\nc",
    "\u2067a\r\u202bb": "\u2067a\u2069\r\u202bb\u202c",
    "\u202ba\u202c\u2066b\u2069\n": "\u202ba\u202c\u2066b\u2069\n",
    "\u2066\u202e\u2069a\n": "\u2066\u202e\u2069a\n",  # the end of an isolate ends what is open in it
    "\u202e\u2069\u2066\u202c\n": "\u202e\u2069\u2066\u202c\u2069\u202c\n",
    "\u202e" * 1000: "\u202e" * 125 + "\u202c" * 125,
}


@pytest.mark.parametrize("text", LEFT_OPEN)
def test_marks_of_direction_go_from_reports_and_end_with_a_ranks_line(text):
    assert screen_text(text) == "".join(each for each in text if not "\u2000" <= each <= "\u2100")
    assert ScreenText().feed(text, final=True) == LEFT_OPEN[text]
    printer = ScreenText()
    assert "".join(printer.feed(each) for each in text) + printer.feed("", final=True) == LEFT_OPEN[text]
