"""Real hosts on one machine, for tests and benchmarks. Needs root; nothing of the machine itself is changed.

    from testbed import Testbed

    with Testbed(hosts=4) as bed:
        done = bed.head.run(["ssh", "s1", "hostname"])
        assert done.stdout == "s1\\n"

A host has its own network, mount, UTS, IPC and PID namespace, its own /tmp, /var/tmp, /dev/shm, /run, /home, accounts and host
keys, and runs OpenSSH's sshd. The hosts are called s1 to sN and joined by a bridge in a network namespace of its own: 10.77.0.1
and fd77::1 is s1, `s1-ip4` and `s1-ip6` are names with only one of them. The head is where a user sits: without sshd, with an
ed25519 key that every host admits and a known_hosts that knows every host. The user is called `user` on all of them.
All else of the machine is visible, read-only: the source tree with what was built in it, and this Python.

    Testbed(hosts=4,                    how many, or a list of HostSpec
            networks=(ETHERNET, INFINIBAND),  a second network of the hosts, ib0: 10.78.0.x, names sN-ib0
            visible=["/opt/mpich"],     more of the machine that must be readable, where /tmp, /home or /root would hide it
            shared_home=True,           one home directory for all, as with NFS
            hide=["/usr/lib/x"],        from here on HostSpec's fields: empty on the hosts
            tmpfs={HOME: "noexec"},     or "size=64k": a full disk; any folder
            decoys=True,                docker0, virbr0 and the 127.0.1.1 line of /etc/hosts
            port=22, max_startups=None, sshd_config="", sshd=True)

    bed.hosts, bed.head                 Host objects
    bed.add_key("rsa")                  a further key of the user at the head; authorize=False: which no host admits

    host.name .address .address6 .addresses .addresses6 .port .user .home
    host.run(argv, user=, cwd=, variables=, input=, timeout=, ...)   a finished program, its output as text
    host.popen(argv, user=, cwd=, variables=, ...)   subprocess.Popen: pid and signals are the program's own
    host.path("/tmp/x")                 the file, as the test's own process sees it; host.write(path, text)
    host.processes(mark="NAME=value")   pid, command, environment ...; without zombies, services and sshd
    host.listening_sockets()            TCP and UDP, with their programs; without sshd
    host.start_sshd() .stop_sshd(sessions=False) .restart_sshd() .ssh_connections() .change_host_key() .log("sshd")
    host.start_service(name, argv, ready=[pattern]) .stop_service(name)
    host.cut_network() .restore_network()   the cable: nobody is told
    host.drop_port(22) .drop_incoming("eth0") .drop_outgoing() .reset_connections("ib0") .drop_nothing()  firewalls
    host.shape_network("100mbit") .unshape_network() .delay_network(seconds=0.001)
    host.freeze() .thaw()               all its processes and its networks stand still
    host.kill()                         power off

    eventually(condition, what)         waits until the condition holds, and names it when it does not
    with_enough_time(attempt, what)     for a test of a time limit: tries again with a longer one on a busy machine

testbed.slurm.Slurm is a SLURM cluster made of such hosts. testbed.control_group.ControlGroup limits a program on this machine.

Nothing is left when the `with` ends, or when the test's process is killed: PID 1 of each host dies with it, and with that
all its processes and namespaces. Several testbeds at once do not see each other.
"""

from .errors import NeedsRoot, TestbedError
from .eventually import OutOfTime, eventually, with_enough_time
from .specs import ETHERNET, HOME, INFINIBAND, USER, HostSpec, Network
from .testbed import Testbed

__all__ = [
    "ETHERNET", "HOME", "INFINIBAND", "USER", "HostSpec", "NeedsRoot", "Network", "OutOfTime", "Testbed", "TestbedError", "eventually",
    "with_enough_time",
]  # fmt: skip
