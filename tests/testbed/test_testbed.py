"""The testbed itself: hosts are apart, joined by their network only, fail as hosts do, and leave nothing."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from testbed import ETHERNET, HOME, INFINIBAND, HostSpec, Testbed, TestbedError, eventually, requirements

TESTS = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=4) as bed:
        yield bed


def ssh(bed, host, command, *options):
    return bed.head.run(["ssh", "-o", "BatchMode=yes", *options, host, command])


# Logging in


def test_the_user_reaches_every_host_by_name(bed):
    for host in bed.hosts:
        done = ssh(bed, host.name, "hostname; whoami; pwd; id -u")
        assert done.stdout.split() == [host.name, "user", HOME, "20077"], done.stderr


@pytest.mark.parametrize("suffix, family", [("-ip4", "10.77.0.253"), ("-ip6", "fd77::fd")])
def test_both_families_work(bed, suffix, family):
    assert ssh(bed, f"s2{suffix}", "echo $SSH_CLIENT").stdout.startswith(family + " ")


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512"])
def test_a_host_has_a_key_of_each_type(bed, kind):
    assert ssh(bed, "s1", "echo in", "-o", f"HostKeyAlgorithms={kind}").stdout == "in\n"


def test_another_user_is_refused(bed):
    done = ssh(bed, "s1", "true", "-l", "nobody")
    assert done.returncode == 255 and "Permission denied" in done.stderr


def test_connections_are_counted(bed):
    before = bed.hosts[2].ssh_connections()
    ssh(bed, "s3", "true"), ssh(bed, "s3", "true")
    eventually(lambda: bed.hosts[2].ssh_connections() == before + 2, "two more connections")


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_a_further_key_is_admitted(bed, kind):
    path = bed.add_key(kind)
    assert ssh(bed, "s1", "echo in", "-o", "IdentitiesOnly=yes", "-i", path).stdout == "in\n"


def test_a_key_that_is_not_authorized_is_refused(bed):
    path = bed.add_key("ecdsa", authorize=False)
    done = ssh(bed, "s1", "true", "-F", "none", "-o", "IdentitiesOnly=yes", "-o", f"IdentityFile={path}")
    assert "Permission denied" in done.stderr


def test_a_changed_host_key_is_noticed():
    with Testbed(hosts=1) as bed:
        assert ssh(bed, "s1", "true").returncode == 0
        bed.hosts[0].change_host_key()
        done = ssh(bed, "s1", "true")
        assert done.returncode == 255 and "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr


# Apart


def test_hosts_share_no_namespace(bed):
    everybody = [*bed.hosts, bed.head]
    for kind in ("net", "mnt", "uts", "ipc", "pid"):
        namespaces = {os.readlink(f"/proc/{host.init_pid}/ns/{kind}") for host in everybody}
        assert len(namespaces - {os.readlink(f"/proc/self/ns/{kind}")}) == len(everybody)


def test_a_process_is_seen_on_its_own_host_only(bed):
    with bed.hosts[0].popen(["sleep", "600"], variables={"MARK": "apart"}) as process:
        (seen,) = bed.hosts[0].processes(mark="MARK=apart")
        assert (seen.machine_pid, seen.command, seen.name) == (process.pid, ("sleep", "600"), "sleep")
        assert ssh(bed, "s1", f"cat /proc/{seen.pid}/comm").stdout == "sleep\n"
        assert not bed.hosts[1].processes(mark="MARK=apart")
        assert "sleep 600" not in ssh(bed, "s2", "ps axww -o args").stdout
        process.kill()
    assert not bed.hosts[0].processes(mark="MARK=apart")


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", HOME])
def test_a_file_is_seen_on_its_own_host_only(bed, folder):
    assert ssh(bed, "s1", f"echo text > {folder}/of-s1").returncode == 0
    assert bed.hosts[0].path(f"{folder}/of-s1").read_text() == "text\n"
    assert ssh(bed, "s2", f"cat {folder}/of-s1").returncode != 0
    assert not pathlib.Path(folder, "of-s1").exists()


def test_shared_memory_of_system_v_is_apart(bed):
    identifier = ssh(bed, "s1", "ipcmk -M 4096").stdout.split()[-1]
    assert f" {identifier} " in ssh(bed, "s1", "ipcs -m").stdout
    assert f" {identifier} " not in ssh(bed, "s2", "ipcs -m").stdout


def test_root_of_a_host_cannot_write_to_the_machine(bed):
    for path in ("/etc", "/usr", str(TESTS)):
        done = bed.hosts[0].run(["touch", f"{path}/of-testbed"], user="root")
        assert "Read-only file system" in done.stderr, path
        assert not pathlib.Path(path, "of-testbed").exists()


def test_the_interfaces_of_a_host_are_its_own(bed):
    done = bed.hosts[1].run(["ls", "/sys/class/net"])
    assert done.stdout.split() == ["eth0", "lo"]


def test_two_testbeds_do_not_see_each_other(bed):
    with Testbed(hosts=1) as other:
        other.hosts[0].write("/tmp/whose", "the other's")
        assert ssh(other, "s1", "cat /tmp/whose").stdout == "the other's"
        assert ssh(bed, "s1", "cat /tmp/whose").returncode != 0
        assert "No route to host" in other.head.run(["ssh", "-o", "BatchMode=yes", bed.hosts[1].address, "true"]).stderr


def test_the_machine_is_as_before(root, unchanged):
    def state():
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
        mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        accounts = [pathlib.Path(path).read_bytes() for path in ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts")]
        return links, mounts, accounts, os.listdir("/run"), os.listdir("/etc/ssh"), os.listdir("/home")

    def use(check):
        with Testbed(hosts=2) as bed:
            assert ssh(bed, "s1", "true").returncode == 0
            check()

    unchanged(state, use)


# Programs


def test_python_and_the_source_tree_are_there(bed):
    code = "import json, sys; print(json.__file__, sys.prefix)"
    for host in (bed.hosts[0], bed.head):
        assert host.run([sys.executable, "-c", code]).stdout.split()[-1] == sys.prefix
        assert host.run(["cat", __file__]).stdout == pathlib.Path(__file__).read_text()


def test_signals_reach_the_program_itself(bed):
    script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 1; done"
    with bed.hosts[0].popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "caught\n"
    assert process.returncode == 7
    assert bed.head.run(["bash", "-c", "kill -9 $$"]).returncode == -9


def test_a_test_that_fails_does_not_wait_for_its_programs(bed):
    with pytest.raises(ZeroDivisionError), bed.hosts[0].popen(["sleep", "600"]) as process:
        1 / 0
    assert process.returncode == -signal.SIGKILL


def test_programs_get_input_folder_user_and_variables(bed):
    command = ["bash", "-c", "cat; pwd; whoami; echo $GREETING"]
    done = bed.hosts[0].run(command, input="typed\n", cwd="/usr", variables={"GREETING": "hi"})
    assert done.stdout.split() == ["typed", "/usr", "user", "hi"]
    assert bed.hosts[0].run(["whoami"], user="root").stdout == "root\n"
    assert bed.hosts[0].run(["no-such-program"]).returncode == 127


def test_orphans_are_reaped(bed):
    before = len(bed.hosts[0].processes(system=True))
    bed.hosts[0].run(["bash", "-c", "(setsid sleep 0 &) ; exit 0"])
    eventually(lambda: len(bed.hosts[0].processes(system=True)) == before, "only what was there before")
    assert "Z" not in bed.hosts[0].run(["ps", "axo", "state="]).stdout.split()


def test_listening_sockets_have_owners(bed):
    code = "import socket, sys; s = socket.create_server(('127.0.0.1', 4000)); u = socket.socket(type=socket.SOCK_DGRAM); "
    code += "u.bind(('0.0.0.0', 4001)); print('bound', flush=True); sys.stdin.read()"
    assert not bed.hosts[3].listening_sockets()
    assert {(s.port, s.program) for s in bed.hosts[3].listening_sockets(system=True)} == {(22, "sshd")}
    with bed.hosts[3].popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "bound\n"
        found = {(s.protocol, s.address, s.port, s.pid) for s in bed.hosts[3].listening_sockets()}
        assert found == {("tcp", "127.0.0.1", 4000, process.pid), ("udp", "0.0.0.0", 4001, process.pid)}
        assert not bed.hosts[2].listening_sockets()
        process.stdin.close()


# What can be asked for


def test_what_is_hidden_is_empty_on_the_hosts_and_there_at_the_head(tmp_path):
    folder = TESTS / "testbed" / "inside"
    with Testbed(hosts=1, hide=[folder, __file__]) as bed:
        assert bed.hosts[0].run(["ls", folder]).stdout == ""
        assert bed.hosts[0].run(["cat", __file__]).stdout == ""
        assert "init.py" in bed.head.run(["ls", folder]).stdout.split()


def test_what_lies_in_a_closed_folder_can_be_shown(tmp_path):
    closed, shown = tmp_path / "closed", tmp_path / "closed" / "shown"
    shown.mkdir(parents=True)
    (shown / "data").write_text("of the machine")
    (closed / "secret").write_text("of the machine")
    closed.chmod(0o700)
    shown.chmod(0o755)
    with Testbed(hosts=1, visible=[shown]) as bed:
        assert bed.hosts[0].run(["cat", shown / "data"]).stdout == "of the machine"
        assert bed.hosts[0].run(["ls", closed], user="root").stdout.split() == ["shown"]


def test_homes_without_execution_and_without_space():
    copy = "cp /bin/true program && ./program"
    with Testbed([HostSpec(tmpfs={HOME: "noexec"}), HostSpec(tmpfs={HOME: "size=64k"}), HostSpec()]) as bed:
        assert "Permission denied" in ssh(bed, "s1", copy).stderr
        assert "No space left on device" in ssh(bed, "s2", "head -c 1000000 /dev/zero > file").stderr
        assert ssh(bed, "s3", copy).returncode == 0


def test_a_shared_home_is_everybodys():
    with Testbed(hosts=2, shared_home=True) as bed:
        assert ssh(bed, "s1", "echo text > file").returncode == 0
        assert ssh(bed, "s2", "cat file; touch of-s2").stdout == "text\n"
        assert bed.head.path(f"{HOME}/of-s2").exists()


def test_a_second_network_joins_the_hosts_only():
    with Testbed(hosts=2, networks=(ETHERNET, INFINIBAND)) as bed:
        assert bed.hosts[1].addresses == {"eth0": "10.77.0.2", "ib0": "10.78.0.2"}
        assert list(bed.head.addresses) == ["eth0"]
        bed.hosts[1].cut_network("eth0")
        code = "import socket; print(socket.create_connection(('s2-ib0', 22)).recv(3))"
        assert bed.hosts[0].run(["/usr/bin/python3", "-c", code]).stdout == "b'SSH'\n"


def test_decoys():
    with Testbed(hosts=2, decoys=True) as bed:
        addresses = bed.hosts[0].run(["ip", "-br", "-4", "addr"]).stdout
        assert "172.17.0.1/16" in addresses and "192.168.122.1/24" in addresses
        assert bed.hosts[0].run(["getent", "ahostsv4", "s1"]).stdout.split()[0] == "127.0.1.1"
        assert bed.hosts[0].run(["getent", "ahostsv4", "s2"]).stdout.split()[0] == "10.77.0.2"


def test_another_port_and_a_line_for_sshd():
    with Testbed(hosts=1, port=2222, sshd_config="Banner /etc/hosts") as bed:
        done = ssh(bed, "s1", "true", "-p", "2222")
        assert done.returncode == 0 and "10.77.0.1 s1" in done.stderr
        assert "Connection refused" in ssh(bed, "s1", "true").stderr


# Faults


def test_a_cut_network_is_silent_and_comes_back():
    with Testbed(hosts=1) as bed:
        host = bed.hosts[0]
        assert ssh(bed, "s1", "true").returncode == 0
        host.cut_network()
        done = ssh(bed, "s1", "true", "-o", "ConnectTimeout=1")
        assert done.returncode == 255 and ("timed out" in done.stderr or "No route" in done.stderr)
        host.restore_network()
        assert ssh(bed, "s1", "true").returncode == 0


def test_a_connection_outlives_a_cut():
    """Nothing was said at the cut, so both ends are where they were."""
    with Testbed(hosts=1) as bed:
        command = ["ssh", "-o", "BatchMode=yes", "s1", "cat"]
        with bed.head.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
            process.stdin.write("before\n")
            assert process.stdout.readline() == "before\n"
            bed.hosts[0].cut_network()
            process.stdin.write("meanwhile\n")
            bed.hosts[0].restore_network()
            assert process.stdout.readline() == "meanwhile\n"
            process.stdin.close()


def test_a_dropped_port_does_not_answer():
    with Testbed(hosts=1) as bed:
        bed.hosts[0].drop_port(22)
        assert "timed out" in ssh(bed, "s1", "true", "-o", "ConnectTimeout=1").stderr
        bed.hosts[0].drop_nothing()
        assert ssh(bed, "s1", "true").returncode == 0


def test_sshd_can_be_stopped_and_started():
    with Testbed(hosts=1) as bed:
        host = bed.hosts[0]
        with bed.head.popen(["ssh", "s1", "echo in; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout.readline() == "in\n"
            host.stop_sshd()
            assert "Connection refused" in ssh(bed, "s1", "true").stderr
            host.start_sshd()
            assert ssh(bed, "s1", "true").returncode == 0
            session.stdin.write("still in\n")
            session.stdin.close()
            assert session.stdout.read() == "still in\n"
        with bed.head.popen(["ssh", "s1", "echo in; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout.readline() == "in\n"
            host.stop_sshd(sessions=True)
            assert session.wait() == 255


def test_shaping_has_a_shaper_at_both_ends():
    with Testbed(hosts=1) as bed:
        bed.hosts[0].shape_network("100mbit")
        shaper = "qdisc tbf .* rate 100Mbit"
        assert re.search(shaper, bed.hosts[0].run(["tc", "qdisc", "show", "dev", "eth0"]).stdout)
        assert ssh(bed, "s1", "true").returncode == 0
        bed.hosts[0].unshape_network()
        assert "tbf" not in bed.hosts[0].run(["tc", "qdisc", "show", "dev", "eth0"]).stdout


def test_packets_of_a_delayed_host_take_longer_whatever_their_size():
    with Testbed(hosts=2) as bed:
        bed.hosts[0].delay_network(0.02)
        with bed.head.popen(["ssh", "s1", "echo in; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout.readline() == "in\n"
            round_trips = re.findall(r"minrtt:([0-9.]+)", bed.head.run(["ss", "-tin", "state", "established"]).stdout)
            assert len(round_trips) == 1 and float(round_trips[0]) >= 40
        assert len(ssh(bed, "s1", "head -c 3000000 /dev/zero").stdout) == 3000000  # in segments for the network card
        assert ssh(bed, "s2", "true").returncode == 0


def test_a_host_without_power_is_gone_and_nobody_is_told():
    with Testbed(hosts=2) as bed:
        with bed.head.popen(["ssh", "s1", "echo in; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdout.readline() == "in\n"
            inside = bed.hosts[0].popen(["sleep", "600"])
            bed.hosts[0].kill()
            assert inside.returncode == -signal.SIGKILL
            assert session.poll() is None, "the connection was closed"
            session.kill()
        assert ssh(bed, "s2", "true").returncode == 0
        with pytest.raises(TestbedError, match="s1 is off"):
            bed.hosts[0].run(["true"])


# The end

OWNER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from testbed import Testbed
with Testbed(hosts=3) as bed:
    started = bed.head.popen(["ssh", "s1", "exec setsid sleep 600"])
    bed.hosts[1].popen(["sleep", "600"])
    print(bed.keeper.pid, *bed.keeper.pids, flush=True)
    started.wait()
"""


def processes_in(namespaces):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        for kind in ("net", "pid", "mnt"):
            try:
                if os.readlink(f"/proc/{entry}/ns/{kind}") in namespaces:
                    found.append((entry, pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("killed", ["owner", "keeper"])
def test_nothing_is_left_after_kill_9(root, killed):
    with subprocess.Popen([sys.executable, "-c", OWNER, TESTS], stdout=subprocess.PIPE, text=True) as owner:
        pids = [int(word) for word in owner.stdout.readline().split()]
        namespaces = {os.readlink(f"/proc/{pid}/ns/{kind}") for pid in pids for kind in ("net", "pid", "mnt")}
        namespaces -= {os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "mnt")}
        assert len(namespaces) == 2 + 3 * 4, "the keeper has the machine's PIDs, the hosts and the head nothing of it"
        assert processes_in(namespaces)
        os.kill(owner.pid if killed == "owner" else pids[0], signal.SIGKILL)
        if killed == "keeper":
            owner.wait()  # what it waited for was killed too
    eventually(lambda: not processes_in(namespaces), "no process in any of the namespaces")


def test_nothing_is_left_after_an_exception():
    with pytest.raises(ZeroDivisionError), Testbed(hosts=2) as bed:
        namespaces = {os.readlink(f"/proc/{pid}/ns/pid") for pid in bed.keeper.pids}
        bed.hosts[0].popen(["sleep", "600"])
        1 / 0
    assert not processes_in(namespaces)


def test_a_host_that_cannot_be_made_is_an_error_that_says_why(root):
    with pytest.raises(TestbedError, match=r"s2: FileNotFoundError: .*/no/such/folder"):
        Testbed([HostSpec(), HostSpec(hide=["/no/such/folder"])]).__enter__()


# Without what it needs


def test_what_the_user_may_not_read_is_an_error_that_says_so(root, tmp_path):
    tmp_path.chmod(0o700)
    with pytest.raises(TestbedError, match=f"may not read {tmp_path}; chmod"):
        Testbed(visible=[tmp_path]).__enter__()


def test_without_root_the_message_says_so():
    code = "import os, sys; sys.path.insert(0, sys.argv[1]); os.getuid() or os.setuid(65534); from testbed import Testbed; Testbed().__enter__()"
    done = subprocess.run(["/usr/bin/python3", "-c", code, TESTS], capture_output=True, text=True, check=False, cwd="/")
    assert done.stderr.splitlines()[-1].endswith("which needs root; run the tests as root")


def test_without_a_program_the_message_names_its_package(root, monkeypatch):
    monkeypatch.setattr(requirements, "PATH", "/nowhere")
    with pytest.raises(TestbedError, match="needs ip; install the package iproute2"):
        Testbed().__enter__()


def test_without_the_right_to_make_namespaces_the_message_says_so(root):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from testbed import Testbed; Testbed().__enter__()"
    done = subprocess.run(
        ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", code, TESTS], capture_output=True, text=True, check=False
    )
    assert "needs CAP_SYS_ADMIN" in done.stderr.splitlines()[-1], done.stderr
