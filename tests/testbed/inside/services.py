"""The services of a host: started and stopped on request, their output kept in /run/log."""

import os
import re
import selectors
import signal

LOGS = "/run/log"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Service:
    """One program, child of PID 1, given by its full path. It is ready when its output matches each of `patterns`."""

    def __init__(self, name, argv, patterns, variables):
        self.name = name
        self.starting = bool(patterns)
        self.closed = False
        self.request = None  # the number of the request that waits for its start or its end
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._text = ""
        self._log = open(f"{LOGS}/{name}.log", "ab", buffering=0)
        self.output, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.output, False)
        null = os.open("/dev/null", os.O_RDONLY)
        actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in ((null, 0), (writing, 1), (writing, 2))]
        self.pid = os.posix_spawn(argv[0], argv, {**ENVIRONMENT, **variables}, file_actions=actions, setsid=True)
        os.close(writing)
        os.close(null)

    def read(self):
        """Moves what it has written to the log. False when no process can write any more."""
        try:
            while data := os.read(self.output, 65536):
                self._log.write(data)
                if self.starting:
                    self._text += data.decode(errors="replace")
        except BlockingIOError:
            return True
        return False

    def has_become_ready(self):
        """True once."""
        if not self.starting or not all(pattern.search(self._text) for pattern in self._patterns):
            return False
        self.starting = False
        return True

    def said(self):
        return self._text[-2000:].strip()

    def close(self):
        self.closed = True
        os.close(self.output)
        self._log.close()


class Services:
    """All of them. `answer(request, **fields)` tells the owner."""

    def __init__(self, selector, answer):
        os.makedirs(LOGS)
        self._selector = selector
        self._answer = answer
        self._by_name = {}

    def start(self, request, name, argv, patterns, variables):
        """Answers with its pid when it is ready."""
        if name in self._by_name:
            raise ValueError(f"{name} runs already")
        service = Service(name, argv, patterns, variables)
        self._by_name[name] = service
        self._selector.register(service.output, selectors.EVENT_READ, lambda: self._read(service))
        if service.starting:
            service.request = request
        else:
            self._answer(request, pid=service.pid)

    def stop(self, request, name, number):
        """Answers when it has ended; what it has started may live on."""
        if name not in self._by_name:
            raise ValueError(f"{name} does not run")
        self._by_name[name].request = request
        os.kill(self._by_name[name].pid, number)

    def ended(self, pid, status):
        """To be called for each child of PID 1 that was reaped."""
        for service in [service for service in self._by_name.values() if service.pid == pid]:
            del self._by_name[service.name]
            self._read(service)
            if service.starting:
                self._answer(service.request, error=f"{service.name} ended at once, wait status {status}: {service.said()}")
            elif service.request is not None:
                self._answer(service.request, status=status)

    def _read(self, service):
        if service.closed:
            return
        open_still = service.read()
        if service.has_become_ready():
            self._answer(service.request, pid=service.pid)
            service.request = None
        if not open_still:
            self._selector.unregister(service.output)
            service.close()


def reap():
    """(pid, wait status) of each child that has ended; PID 1 inherits every orphan of its host."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, status


def listen_for_children(selector):
    """Makes the end of a child an event of `selector`, after which reap() has something to return."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector.register(reading, selectors.EVENT_READ, lambda: os.read(reading, 4096))
