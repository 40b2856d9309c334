"""The keeper: the process from which all hosts of a testbed are born, and with which they die.

python3 -I -S tests/testbed/inside FD; testbed/keeper.py starts it. FD is its end of a socket pair to the owner. It
reads one line of JSON:

    owner    pid of the process that the testbed is for
    switch   lines for ip: the network that joins the hosts, which is the keeper's own network namespace
    shared   mount options of the file system that hosts may share
    hosts    [{"fd": the host's end of its own connection to the owner,
               "links": lines for ip in the switch, where "{pid}" stands for the host's PID 1}]

It makes all that, one PID 1 per host, and answers {"pids": [...]} or {"error": text}. Then it waits for the end of the
owner, or of the connection. Nothing outlives it: each PID 1 gets SIGKILL when it dies, the kernel then kills all other
processes of the host, and the last process takes the namespaces with it.
"""

import json
import os
import select
import selectors
import signal
import socket
import sys
import traceback

import init
import linux
import links
import mounts


class Keeper:
    def __init__(self, control):
        self._control = control
        self._plan = json.loads(control.makefile("r", encoding="utf-8").readline())
        self._myself = os.pidfd_open(os.getpid())
        self._pids = []

    def run(self):
        owner = os.pidfd_open(self._plan["owner"])
        if os.getppid() != self._plan["owner"]:
            return  # it died before it could be watched
        try:
            self._start_all()
        except Exception as problem:
            self._send(error=f"{type(problem).__name__}: {problem}")
            return
        self._send(pids=self._pids)
        with selectors.DefaultSelector() as selector:
            selector.register(owner, selectors.EVENT_READ)
            selector.register(self._control, selectors.EVENT_READ)
            selector.select()

    def stop(self):
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so it is still this one
        for pid in self._pids:
            os.waitpid(pid, 0)

    def _start_all(self):
        linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWNS)
        linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("testbed", mounts.SHARED, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, self._plan["shared"])
        links.run_ip(self._plan["switch"])
        unshared, say_unshared = os.pipe()
        wait_for_devices, devices_are_there = os.pipe()
        for host in self._plan["hosts"]:
            self._pids.append(self._start_one(host, say_unshared, (unshared, wait_for_devices, devices_are_there)))
        os.close(say_unshared)
        waiting = len(self._pids)
        while waiting:
            waiting -= len(os.read(unshared, waiting)) or waiting  # all have closed it: some failed, and tell the owner why
        links.run_ip([line.format(pid=pid) for host, pid in zip(self._plan["hosts"], self._pids) for line in host["links"]])
        os.close(devices_are_there)

    def _start_one(self, host, say_unshared, pipes):
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        linux.unshare(linux.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            self._be_host(host, say_unshared, *pipes)
        linux.setns(own, linux.CLONE_NEWPID)
        os.close(own)
        os.close(host["fd"])
        return pid

    def _be_host(self, host, say_unshared, unshared, wait_for_devices, devices_are_there):
        """Does not return. The child's copies of descriptors that other hosts or the keeper own are closed."""
        try:
            linux.signal_when_parent_dies(signal.SIGKILL)
            if select.select([self._myself], [], [], 0)[0]:
                return  # the keeper died before that
            for descriptor in (unshared, devices_are_there, self._control.fileno(), *self._other_descriptors(host)):
                os.close(descriptor)

            def has_unshared():
                os.write(say_unshared, b".")
                os.close(say_unshared)

            process = init.Init(socket.socket(fileno=host["fd"]))
            process.run(has_unshared, lambda: os.read(wait_for_devices, 1))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _other_descriptors(self, host):
        started = len(self._pids)
        return [other["fd"] for other in self._plan["hosts"][started + 1 :]]

    def _send(self, **fields):
        self._control.sendall((json.dumps(fields) + "\n").encode())


def main():
    os.umask(0o022)
    keeper = Keeper(socket.socket(fileno=int(sys.argv[1])))
    try:
        keeper.run()
    finally:
        keeper.stop()


if __name__ == "__main__":
    main()
