"""PID 1 of a host: makes its namespaces and its view of the files, then runs services and reaps orphans until it is killed.

Its control connection carries lines of JSON: first the set-up (testbed/host_setup.py), answered when the host
is ready, then requests {"id", "do": "start" | "stop", ...}, each answered under its id.
"""

import json
import os
import selectors

import linux
import links
import mounts
import services

NAMESPACES = linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC


class Init:
    def __init__(self, control):
        self._control = control
        self._lines = control.makefile("r", encoding="utf-8")
        self._selector = selectors.DefaultSelector()
        self._open = True

    def run(self, say_unshared, wait_for_devices):
        """Returns when the owner has closed the connection, or at once, having said why, when the host cannot be made."""
        try:
            linux.unshare(NAMESPACES)
            links.use_addresses_at_once()
            say_unshared()
            setup = json.loads(self._lines.readline())
            mounts.build(setup)
            linux.set_host_name(setup["name"])
            wait_for_devices()
            links.run_ip(setup["links"])
            self._services = services.Services(self._selector, self._answer)
        except Exception as problem:
            self._send(error=f"{type(problem).__name__}: {problem}")
            return
        self._send(ready=True)
        self._serve()

    def _serve(self):
        services.listen_for_children(self._selector)
        self._selector.register(self._control, selectors.EVENT_READ, self._take_request)
        while self._open:
            for key, _ in self._selector.select():
                if key.fd in self._selector.get_map():  # an event before it may have closed this one
                    key.data()
            for pid, status in services.reap():
                self._services.ended(pid, status)

    def _take_request(self):
        line = self._lines.readline()  # one line is on its way at a time: the owner waits for the answer
        if not line:
            self._open = False
            return
        request = json.loads(line)
        number, action = request.pop("id"), request.pop("do")
        try:
            (self._services.start if action == "start" else self._services.stop)(number, **request)
        except Exception as problem:
            self._answer(number, error=f"{type(problem).__name__}: {problem}")

    def _answer(self, number, **fields):
        self._send(id=number, **fields)

    def _send(self, **fields):
        try:
            self._control.sendall((json.dumps(fields) + "\n").encode())
        except BrokenPipeError:
            self._open = False
