import marks


def pytest_terminal_summary(terminalreporter):
    """Lists at the end the sizes that are over their marks, which are no failures."""
    terminalreporter.section("larger than the marks of tests/structure/marks.py")
    for line in marks.report(marks.all_sizes()):
        terminalreporter.write_line(line)
