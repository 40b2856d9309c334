"""How long the functions of a C++ source are, in lines, as clang-format has laid them out. A count of lines, not a parser of C++."""

import re

BEGIN = re.compile(r"^( *)(?![ })#/:]|namespace\b|class\b|struct\b|enum\b|union\b|extern\b|if\b|for\b|while\b|switch\b|do\b|else\b|try\b|catch\b|return\b|case\b|requires\b|concept\b)")
NAME = re.compile(r"([~\w:]+(?:<[^<>]*>)?)\s*\(")


def functions(text):
    """(name, lines) of each function that has a body of more than one line, in order. Not of lambdas."""
    found, lines = [], text.splitlines()
    place = 0
    while place < len(lines):
        begin = BEGIN.match(lines[place])
        name = begin and NAME.search(lines[place])
        if not name or not (head := _head(lines, place)):
            place += 1
            continue
        end = next((at for at in range(head, len(lines)) if lines[at] == begin.group(1) + "}"), head)
        found.append((name.group(1), end - place + 1))
        place = end + 1
    return found


def _head(lines, place):
    """The line after a head that begins at `place` and ends with the brace of a body; None for a declaration or a statement."""
    for at in range(place, min(place + 30, len(lines))):
        line = lines[at].rstrip()
        if line.endswith("{"):
            return at + 1
        if line.endswith((";", "}", "};")) or not line:
            return None
    return None
