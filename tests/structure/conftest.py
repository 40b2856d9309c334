import marks
import page_words


def pytest_terminal_summary(terminalreporter):
    """Lists at the end the sizes that are over their marks, which are no failures, and the words of the pages for users."""
    terminalreporter.section("larger than the marks of tests/structure/marks.py")
    for line in marks.report(marks.all_sizes()):
        terminalreporter.write_line(line)
    terminalreporter.section("words of docs/*.md")
    for line in page_words.report():
        terminalreporter.write_line(line)
