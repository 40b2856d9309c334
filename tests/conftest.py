import os
import signal


def pytest_configure():
    os.environ["RUNJOB_REMEMBER_WAYS"] = "0"  # tests leave nothing in the home of whoever runs them
    # A shell without job control starts what it puts into the background with these ignored, and runjob passes on only what
    # is not: the tests are about runjob, not about how pytest was started.
    for number in (signal.SIGQUIT, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGQUIT else signal.default_int_handler)
