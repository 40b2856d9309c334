import marks


def pytest_terminal_summary(terminalreporter):
    """What is over the marks is listed at the end; it is no failure."""
    terminalreporter.section("larger than the marks of tests/structure/marks.py")
    for line in marks.report(marks.all_sizes()):
        terminalreporter.write_line(line)
