"""The testbed: hosts, a head and the networks between them, from `with` to its end."""

import subprocess
import sys

from . import host_setup, layout, network_faults, requirements, ssh_keys
from .errors import TestbedError
from .host import Host
from .keeper import INSIDE, Keeper
from .specs import ETHERNET, HEAD_NUMBER, HOME, MOST_HOSTS, HostSpec


class Testbed:
    """See the package's docstring."""

    __test__ = False  # no class of tests, whatever pytest thinks of its name

    def __init__(self, hosts=4, *, head=None, networks=(ETHERNET,), visible=(), shared_home=False, **spec):
        """
        hosts        how many, each a HostSpec of the further arguments; or a list of HostSpecs.
        head         the HostSpec of the head; it has no sshd unless that says so.
        networks     Network objects, the one that names stand for first.
        visible      paths that hosts and head can read besides the source tree, the system and this Python.
        shared_home  whether there is one home directory for all, as with NFS.
        """
        if not isinstance(hosts, int) and spec:
            raise TypeError("name the fields in each HostSpec of the list")
        specs = [HostSpec(**spec)] * hosts if isinstance(hosts, int) else list(hosts)
        if len(specs) > MOST_HOSTS:
            raise ValueError(f"a testbed has at most {MOST_HOSTS} hosts")
        self._networks = tuple(networks)
        self._visible = visible
        self._shared_home = shared_home
        self.keeper = None
        self._forwarders = []
        self.hosts = [self._host(index, f"s{index + 1}", index + 1, spec) for index, spec in enumerate(specs)]
        self.head = self._host(len(specs), "head", HEAD_NUMBER, head or HostSpec(sshd=False))

    def _host(self, index, name, number, spec):
        return Host(self, index, name, number, spec, layout.networks_of(spec, self._networks, number == HEAD_NUMBER))

    @property
    def all(self):
        """The hosts and the head."""
        return [*self.hosts, self.head]

    def __enter__(self):
        requirements.check()
        servers = [host for host in self.all if host.spec.sshd]
        host_keys = dict(zip(servers, ssh_keys.host_keys(len(servers))))
        user_key = ssh_keys.generate("ed25519")
        visible = host_setup.visible_paths(self._visible)
        files = {"authorized_keys": (user_key.public, 0o600)}
        of_head = {**files, **self._files_of_head(user_key, host_keys)}

        def setup(host):
            own = of_head if host is self.head else files
            return host_setup.describe(host, layout.hosts_file(self.all), host_keys.get(host), own, visible, self._shared_home)

        plan = [(host.name, layout.cables(host), setup(host)) for host in self.all]
        self.keeper = Keeper(layout.switch(self._networks), host_setup.options_of_shared_home(), plan)
        try:
            self._start_all_sshd(servers)
        except BaseException:
            self.close()
            raise
        return self

    def _files_of_head(self, user_key, host_keys):
        known = "".join(layout.known_hosts(host, keys) for host, keys in host_keys.items())
        return {
            "id_ed25519": (user_key.private, 0o600), "id_ed25519.pub": (user_key.public, 0o644), "known_hosts": (known, 0o644),
        }  # fmt: skip

    def start_services(self, hosts, name, argv, *ready):
        """Host.start_service on all of them at the same time."""
        for host in hosts:
            host.begin_service(name, argv, ready)
        for host in hosts:
            host.finish_service(name)

    def _start_all_sshd(self, servers):
        for host in servers:
            host.begin_sshd()
        for host in servers:
            host.finish_service("sshd")

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends every process of the testbed and waits for that; the namespaces go with them."""
        for forwarder in self._forwarders:
            forwarder.communicate()  # closes its input, which ends it
        for index in range(len(self.all)):
            self.keeper.kill(index)
        for host in self.all:
            host.reap()
        self.keeper.close()

    def add_key(self, kind, authorize=True):
        """A new key of the head's user, of a type that ssh-keygen knows: its path there. The hosts admit it if `authorize`."""
        pair = ssh_keys.generate(kind)
        path = f"{HOME}/.ssh/id_{kind}"
        self.head.write(path, pair.private, 0o600)
        self.head.write(f"{path}.pub", pair.public)
        if authorize:
            for host in self.hosts:
                with host.path(f"{HOME}/.ssh/authorized_keys").open("a", encoding="utf-8") as file:
                    file.write(pair.public)
        return path

    def run_in_switch(self, argv):
        """A program of root in the network namespace of the bridges; all else of it is the machine's."""
        done = subprocess.run([*self._enter_switch(), *argv], capture_output=True, text=True, check=False)
        if done.returncode:
            raise TestbedError(f"{' '.join(argv)}: {done.stderr.strip()}")

    def delay_cable(self, host_name, interface, seconds):
        """Frames of this cable take so much longer in each direction, from when this returns."""
        ends = network_faults.make_late_cable(self.run_in_switch, host_name, interface, layout.bridge_of(interface))
        command = [*self._enter_switch(), sys.executable, "-I", "-S", INSIDE / "late_frames.py", *ends, str(seconds)]
        forwarder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._forwarders.append(forwarder)
        if forwarder.stdout.readline() != "ready\n":
            raise TestbedError(f"{host_name}: the program that delays {interface} has ended")

    def _enter_switch(self):
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net"]
