"""What happens to a job for a time and then ends by itself: a host whose cable is pulled, a process that is stopped."""

import signal
import threading

SHORT_SECONDS = (0.1, 1.5)  # an interruption that costs a job nothing
LONG_SECONDS = (6.5, 9.0)  # the host counts as lost
STOPPED_SECONDS = (0.1, 3.0)  # less than an agent may be silent


class Disturbances:
    """Begins disturbances, of which several may last at the same time. The end of the `with` statement waits for the end of all.

    random  a random.Random, from which their lengths come
    note    called with a line of text for each that begins
    """

    def __init__(self, random, note):
        self._random = random
        self._note = note
        self._timers = []
        self._cut = set()  # names of hosts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()

    def wait(self):
        for timer in self._timers:
            timer.join()
        self._timers.clear()

    def interrupt(self, host):
        self._cut_off(host, self._random.uniform(*SHORT_SECONDS))

    def isolate(self, host):
        self._cut_off(host, self._random.uniform(*LONG_SECONDS))

    def stop(self, host, process):
        seconds = self._random.uniform(*STOPPED_SECONDS)
        if was_signalled(process, signal.SIGSTOP):
            self._begin(f"stop {process.name} {process.pid} on {host.name}", seconds, lambda: was_signalled(process, signal.SIGCONT))

    def _cut_off(self, host, seconds):
        if host.name in self._cut:
            return
        self._cut.add(host.name)
        host.cut_network()

        def restore():
            host.restore_network()
            self._cut.discard(host.name)

        self._begin(f"cut off {host.name}", seconds, restore)

    def _begin(self, text, seconds, end):
        self._note(f"{text} for {seconds:.2f} s")
        timer = threading.Timer(seconds, end)
        self._timers.append(timer)
        timer.start()


def was_signalled(process, number):
    """False when it has just ended by itself."""
    try:
        process.kill(number)
        return True
    except ProcessLookupError:
        return False
