class TestbedError(RuntimeError):
    """The testbed cannot do what was asked; the text says why and what is missing."""

    __test__ = False  # no class of tests, whatever pytest thinks of its name


class NeedsRoot(TestbedError):
    """The account may not make hosts. tests/conftest.py skips a test that gets this, with its text as the reason."""
