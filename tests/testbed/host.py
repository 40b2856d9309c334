"""One host of a testbed, as a test sees it."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

from . import listeners, network_faults, process_table, requirements, ssh_keys, sshd
from .errors import TestbedError
from .inside import linux
from .specs import HOME, USER, USER_ID

LIMIT_SECONDS = 120  # of a program that hangs: no test depends on it


class Program(subprocess.Popen):
    """Popen, but a `with` that an exception leaves kills the program: a test that fails is not to wait for it."""

    def __exit__(self, kind, *rest):
        if kind:
            self.kill()
        super().__exit__(kind, *rest)

    def wait_until_it_is_not(self, path):
        """Until then it is in the namespaces by halves, and a signal would meet the wrong program."""
        process = pathlib.Path(f"/proc/{self.pid}")
        with contextlib.suppress(OSError):  # it has ended
            while os.path.samefile(process / "exe", path) or not (process / "cmdline").read_bytes():
                time.sleep(0.0005)


class Host:
    """A host, or the head. Made by Testbed only; usable until that ends, from any thread."""

    user = USER
    home = HOME

    def __init__(self, bed, index, name, number, spec, networks):
        self.name = name
        self.number = number  # the last part of its addresses
        self.spec = spec
        self.networks = networks
        self.port = spec.port
        self.addresses = {network.interface: f"{network.prefix}.{number}" for network in networks}
        self.addresses6 = {network.interface: f"{network.prefix6}::{number:x}" for network in networks}
        self._bed = bed
        self._index = index
        self._is_off = False
        self._started = []
        self._lock = threading.Lock()
        self._services = {}  # name -> pid, as the host counts

    def __repr__(self):
        return f"<{self.name}>"

    @property
    def address(self):
        """IPv4, on the first network."""
        return next(iter(self.addresses.values()))

    @property
    def address6(self):
        return next(iter(self.addresses6.values()))

    @property
    def init_pid(self):
        """Its PID 1, as the machine counts: the name of its namespaces."""
        return self._bed.keeper.pids[self._index]

    # Programs

    def popen(self, argv, *, user=USER, cwd=None, variables=None, **options):
        """subprocess.Popen of a program on the host, which runs when this returns; pid, signals and status are its own.

        user       USER or "root".
        cwd        a folder of the host; the user's home when not given.
        variables  are added to the environment of a login; `env`, as Popen has it, replaces that.
        options    as Popen has them; standard input is empty unless one says otherwise.
        """
        number = {USER: USER_ID, "root": 0}[user]
        home = HOME if number else "/root"
        login = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "PATH": requirements.PATH, "LANG": "C.UTF-8"}
        options.setdefault("env", {**login, **(variables or {})})
        options.setdefault("stdin", subprocess.DEVNULL)
        enter = [f"--target={self.init_pid}", "--net", "--mount", "--uts", "--ipc", f"--wdns={cwd or home}"]
        enter += [f"--setuid={number}", f"--setgid={number}", "--"]
        process = self._born_inside([*enter, *map(str, argv)], options)
        with self._lock:
            self._started = [other for other in self._started if other.returncode is None] + [process]
        return process

    def run(self, argv, *, user=USER, cwd=None, variables=None, timeout=LIMIT_SECONDS, check=False, input=None, **options):
        """subprocess.run of a program on the host, with its output as text."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        if input is not None:
            options["stdin"] = subprocess.PIPE
        with self.popen(argv, user=user, cwd=cwd, variables=variables, **options) as process:
            try:
                output, errors = process.communicate(input, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        if check and process.returncode:
            raise TestbedError(f"{self.name}: {argv}: status {process.returncode}: {output}{errors}")
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)

    def _born_inside(self, command, options):
        """A child of this process in the PID namespace of the host: there is none between them, so signals meet the program."""
        if self._is_off:
            raise TestbedError(f"{self.name} is off")
        nsenter = requirements.program("nsenter")
        own = os.open("/proc/thread-self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        theirs = os.open(f"/proc/{self.init_pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.setns(theirs, linux.CLONE_NEWPID)  # of this thread's next children, not of this thread
            try:
                process = Program([nsenter, *command], **options)
            finally:
                linux.setns(own, linux.CLONE_NEWPID)
        finally:
            os.close(own)
            os.close(theirs)
        process.wait_until_it_is_not(nsenter)
        return process

    # Files

    def path(self, path):
        """A file of the host as the machine sees it. Beware of symbolic links with absolute targets: they leave the host."""
        return pathlib.Path(f"/proc/{self.init_pid}/root", str(path).lstrip("/"))

    def write(self, path, text, mode=0o644, user=USER):
        """A file of the host, which belongs to `user`; folders above it are made, and belong to `user` too."""
        number = USER_ID if user == USER else 0
        target = self.path(path)
        for folder in reversed([folder for folder in target.parents if not folder.exists()]):
            folder.mkdir()
            os.chown(folder, number, number)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)
        os.chown(target, number, number)

    # What is there

    def processes(self, mark=None, system=False):
        """Its processes, without zombies. Only those with NAME=VALUE `mark` in their environment, when it is given.

        Without PID 1, services and sshd's own processes, unless `system`.
        """
        found = process_table.in_namespace_of(self.init_pid)
        if not system:
            services = {1, *self._services.values()}
            found = [process for process in found if process.pid not in services and process.name != "sshd"]
        return [process for process in found if mark is None or process.has_mark(mark)]

    def listening_sockets(self, system=False):
        """TCP listeners and UDP ports; those of sshd only with `system`."""
        found = listeners.of_host(self.init_pid, process_table.in_namespace_of(self.init_pid))
        return [listener for listener in found if system or listener.program != "sshd"]

    # Services

    def start_service(self, name, argv, ready=(), variables=None):
        """A program of root, child of PID 1, given by its full path; returns when its output matches all patterns in `ready`."""
        self.begin_service(name, argv, ready, variables)
        self.finish_service(name)

    def begin_service(self, name, argv, ready=(), variables=None):
        """The first half of start_service(), so that several hosts can be busy with it. The second half must come next."""
        self._control.post("start", name=name, argv=argv, patterns=list(ready), variables=variables or {})

    def finish_service(self, name):
        self._services[name] = self._control.receive()["pid"]

    def stop_service(self, name, number=signal.SIGTERM):
        """Returns when it has ended; what it has started may live on."""
        self._control.ask("stop", name=name, number=int(number))
        del self._services[name]

    def log(self, service):
        """What a service has written so far."""
        return self.path(f"/run/log/{service}.log").read_text(encoding="utf-8", errors="replace")

    def start_sshd(self):
        self.begin_sshd()
        self.finish_service("sshd")

    def begin_sshd(self):
        self.begin_service("sshd", sshd.command(), sshd.listening_patterns(self.port))

    def stop_sshd(self, sessions=False):
        """New connections are refused from then on. Sessions go on, as with `systemctl stop ssh`, unless `sessions`."""
        self.stop_service("sshd")
        for process in self.processes(system=True) if sessions else ():
            if process.name == "sshd":
                os.kill(process.machine_pid, signal.SIGKILL)

    def restart_sshd(self):
        self.stop_sshd()
        self.start_sshd()

    def ssh_connections(self):
        """How many connections sshd has accepted since the host was started, refused ones included."""
        return self.log("sshd").count("Connection from ")

    def change_host_key(self):
        """New host keys of every type; nobody who knew the old ones is told."""
        for kind in ssh_keys.HOST_KEY_TYPES:
            pair = ssh_keys.generate(kind)
            self.write(f"/etc/ssh/ssh_host_{kind}_key", pair.private, 0o600, "root")
            self.write(f"/etc/ssh/ssh_host_{kind}_key.pub", pair.public, user="root")
        self.restart_sshd()

    # Faults

    def cut_network(self, interface=None):
        """Pulls the cable of one network, or of all: no packet comes or goes, and nobody is told."""
        network_faults.cut(self._bed.run_in_switch, self.name, [interface] if interface else self.addresses)

    def restore_network(self, interface=None):
        network_faults.restore(self._bed.run_in_switch, self.name, [interface] if interface else self.addresses)

    def drop_port(self, port, protocol="tcp"):
        """Packets to this port are dropped without an answer, as a firewall does."""
        network_faults.drop_port(self._run_as_root, port, protocol)

    def drop_incoming(self, interface=None):
        """Packets to the host are dropped, on one network or all; those that it sends arrive."""
        network_faults.drop_direction(self._run_as_root, "input", interface)

    def drop_outgoing(self, interface=None):
        network_faults.drop_direction(self._run_as_root, "output", interface)

    def reset_connections(self, interface):
        """TCP connections over this network end with a reset as soon as they carry anything."""
        network_faults.reset_connections(self._run_as_root, interface)

    def drop_nothing(self):
        """Takes back what the four above do."""
        network_faults.drop_nothing(self._run_as_root)

    def shape_network(self, rate, burst="64kb", interface="eth0"):
        """Limits both directions; `rate` and `burst` as tc takes them ("100mbit")."""
        network_faults.shape(self._run_as_root, self._bed.run_in_switch, self.name, interface, rate, burst)

    def unshape_network(self, interface="eth0"):
        network_faults.unshape(self._run_as_root, self._bed.run_in_switch, self.name, interface)

    def delay_network(self, seconds, interface="eth0"):
        """Each packet to and from the host takes so much longer, until the testbed ends: a round trip takes twice that. Once for
        each interface."""
        self._bed.delay_cable(self.name, interface, seconds)

    def limit_socket_buffers(self):
        """Connections made from now on have the smallest buffers that the kernel knows: 4 KiB for what comes."""
        network_faults.limit_socket_buffers(self._run_as_root)

    def set_congestion_control(self, name):
        """The default of connections made from now on, such as "cubic"."""
        network_faults.set_congestion_control(self._run_as_root, name)

    def freeze(self):
        """Stops all its processes but PID 1, as a host does that stands still. Its kernel still answers on its networks, so that
        they are cut as well; the cables come back with thaw()."""
        self.cut_network()
        for process in self._all_but_init():
            with contextlib.suppress(ProcessLookupError):
                process.kill(signal.SIGSTOP)

    def thaw(self):
        self.restore_network()
        for process in self._all_but_init():
            with contextlib.suppress(ProcessLookupError):
                process.kill(signal.SIGCONT)

    def _all_but_init(self):
        return [process for process in self.processes(system=True) if process.pid != 1]

    def kill(self):
        """Power off: all its processes end at once, and no other host hears of it. It does not come back."""
        self.cut_network()
        self._is_off = True
        self._bed.keeper.kill(self._index)
        self.reap()
        self._bed.keeper.wait_until_dead(self._index)

    def reap(self):
        """Waits for programs that popen() has started: the kernel keeps the host's PID 1 until its namespace has no zombies."""
        for process in self._started:
            process.wait()

    @property
    def _control(self):
        return self._bed.keeper.controls[self._index]

    def _run_as_root(self, argv, **options):
        return self.run(argv, user="root", check=True, **options)
