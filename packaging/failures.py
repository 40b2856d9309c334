"""The failures in a suite's results, which CTest and pytest write in JUnit's format.

    python3 packaging/failures.py RESULTS.xml         each failed test, with the lines on its error, or the last ones that it printed
    python3 packaging/failures.py --names RESULTS.xml   their names alone, a line each
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

LINES = 12


def failures(path):
    """(name, output) of each test that failed, or that could not begin or end."""
    for case in ElementTree.parse(path).iter("testcase"):
        problems = [child for child in case if child.tag in ("failure", "error")]
        if not problems:
            continue
        folder = (case.get("classname") or "").replace(".", "/")
        name = case.get("name") if folder in ("", case.get("name")) else f"{folder}: {case.get('name')}"
        texts = [problem.text or problem.get("message") or "" for problem in problems]
        texts += [output.text or "" for output in case if output.tag == "system-out"]
        yield name, "\n".join(text for text in texts if text.strip())


def important(text):
    """The lines on the error, where they can be told; else the last ones."""
    lines = [line for line in text.splitlines() if line.strip()]
    marked, follows = [], False
    for line in lines:
        follows = ": FAILED:" in line or follows and not re.match(r"[-=.]{20}", line)  # Catch explains below it
        if follows or re.match(r"E  |.*(ERROR: |runtime error: |SUMMARY: |\bdue to )", line):
            marked.append(line)
    return marked[:LINES] or lines[-LINES:]


def main(arguments):
    has_output = arguments[0] != "--names"
    for name, output in failures(arguments[-1]):
        print(f"   {name}" if has_output else name)
        if has_output:
            print("".join(f"      {line[:200]}\n" for line in important(output)), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
