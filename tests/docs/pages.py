"""The commands of a page of the documentation, with the output that the page shows.

    <!-- file: train.py -->                      the code block below is a file, in the folder where the page's commands run
    <!-- sample: REASON -->                      the commands of the block below are not run, for this reason

        $ runjob -np 2 python train.py           a command, in an indented block or in one that is fenced by ``` without a language
        [0]<stdout>:...                          its output, standard error included; "..." alone stands for any lines
        $ echo $?                                the status of the command before it; without this line it must be 0
        1

Outputs are compared without what differs from run to run: decimal numbers, durations, process ids, the folders of files, and how many
ranks had to be stopped. The lines of each rank are in order; the lines of different ranks may be interleaved differently.
"""

import dataclasses
import pathlib
import re

_MARK = re.compile(r"^<!-- (file|sample): (.+) -->$")
_TAG = re.compile(r"^\[\d+[^\]]*\]<(?:stdout|stderr)>:")
_FENCE = re.compile(r"^```(\w*)$")
_MASKS = [
    (re.compile(r"; stopped \d+ other ranks?$"), ""),  # some of them have ended by themselves by then
    (re.compile(r"\(pid \d+\)|\bpid \d+"), "pid N"),
    (re.compile(r"(?<![\w.])\d+\.\d+(?:e[-+]\d+)?(?![\w.])"), "N"),
    (re.compile(r"\b\d+ (?=(?:s|ms|µs|min)\b)"), "N "),
    (re.compile(r'(?<=")/[^"]*/(?=[^"/]+")'), ""),
]


@dataclasses.dataclass
class Command:
    """`output` as the page shows it; `sample` is the reason why the command is not run, or ""."""

    text: str
    line: int
    sample: str = ""
    output: list[str] = dataclasses.field(default_factory=list)
    status: int = 0


@dataclasses.dataclass
class Page:
    files: dict[str, str]
    commands: list[Command]
    strays: list[int]  # the lines of blocks that are neither commands nor files nor code in a language


def read(path: pathlib.Path) -> Page:
    page = Page({}, [], [])
    mark, lines, number = None, path.read_text(encoding="utf-8").splitlines(), 0
    while number < len(lines):
        line, first = lines[number], number + 1
        if found := _MARK.match(line):
            mark = found.groups()
        elif (fence := _FENCE.match(line)) or (line.startswith("    ") and not (number and lines[number - 1].strip())):
            block, number = _fenced(lines, number) if fence else _indented(lines, number)
            if mark and mark[0] == "file":
                page.files[mark[1]] = "\n".join(block) + "\n"
            elif block and block[0].startswith("$ "):
                page.commands += _commands(block, first, mark[1] if mark else "")
            elif not (fence and fence[1]):
                page.strays.append(first)
            mark = None
        elif line.strip():
            mark = None
        number += 1
    return page


def _fenced(lines, number):
    end = lines.index("```", number + 1)
    return lines[number + 1 : end], end


def _indented(lines, number):
    end = number
    while end + 1 < len(lines) and (lines[end + 1].startswith("    ") or not lines[end + 1].strip()):
        end += 1
    return "\n".join(line[4:] for line in lines[number : end + 1]).rstrip().splitlines(), end


def _commands(block, first, sample):
    commands = []
    for number, line in enumerate(block):
        if line == "$ echo $?":
            commands[-1].status = int(block[number + 1])
        elif block[number - 1] == "$ echo $?":
            continue
        elif line.startswith("$ "):
            commands.append(Command(line[2:], first + number, sample))
        elif commands[-1].text.endswith("\\") and not commands[-1].output:
            commands[-1].text += "\n" + line
        else:
            commands[-1].output.append(line)
    for command in commands:
        while command.output and not command.output[-1]:
            command.output.pop()
    return commands


def masked(line: str) -> str:
    for pattern, replacement in _MASKS:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def _streams(lines):
    """tag -> the masked lines that have it; "" for those without a tag."""
    streams: dict[str, list[str]] = {}
    for line in lines:
        tag = found.group() if (found := _TAG.match(line)) else ""
        streams.setdefault(tag, []).append(masked(line))
    return streams


def difference(shown: list[str], printed: list[str]) -> str:
    """How `printed` differs from what a page shows; "" if it does not."""
    expected, actual = _streams(line for line in shown if line != "..."), _streams(printed)
    if "..." not in shown:
        return "" if expected == actual else f"shown: {expected}\nprinted: {actual}"
    for tag, lines in expected.items():
        rest = iter(actual.get(tag, []))
        for line in lines:
            if line not in rest:  # takes lines from `rest` until it finds this one
                return f"not printed, or not in this order: {line}\nprinted:\n" + "\n".join(printed)
    return ""
