"""The host on which runjob was started is known by all of its names and addresses, and needs no SSH server."""

import os
import sys

import pytest
from remote_jobs import RUNJOB, python, run
from testbed import HOME, Testbed

WHERE = "import os, socket; print(os.environ['RUNJOB_HOSTNAME'], socket.gethostname(), os.environ['RANK'], os.environ['WORLD_SIZE'])"
SUM = """
import sys
sys.path.insert(0, {python!r})
import runjob.numpy as hvd
hvd.init()
print('sum', int(hvd.allreduce([hvd.rank() + 1.0], op=hvd.Sum)[0]), hvd.local_size(), hvd.cross_size())
"""
CONFIG = f"{HOME}/.ssh/config"


@pytest.fixture(scope="module")
def bed():
    """The head has no SSH server; s1 has one."""
    with Testbed(hosts=1, visible=[sys.prefix]) as bed:
        yield bed


@pytest.fixture
def config(bed):
    """Writes ssh's configuration of the head's user."""
    yield lambda text: bed.head.write(CONFIG, text, mode=0o600)
    bed.head.write(CONFIG, "", mode=0o600)


def names(head):
    return [head.address, head.address6, "head-ip4", "head-ip6"]


@pytest.mark.parametrize("number", range(4))
def test_a_name_or_an_address_of_this_host_needs_no_ssh(bed, number):
    name = names(bed.head)[number]
    listed = f"[{name}]" if ":" in name else name
    done = run(bed, "-H", f"{listed}:2", *python(WHERE))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]<stdout>:{name} {bed.head.name} {rank} 2" for rank in range(2)]
    told = run(bed, "-H", listed, "--verbose", "true")
    assert f"{name} is this host (" in told.stderr and "and needs no SSH" in told.stderr


def test_two_names_of_it_stay_two_entries_and_their_ranks_reach_each_other(bed):
    code = SUM.format(python=str(os.path.join(os.path.dirname(RUNJOB), "../../../python")))
    for hosts in (f"{bed.head.address}:2,head-ip6:1", f"localhost:1,{bed.head.address}:2"):
        done = run(bed, "-H", hosts, sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr
        sums = sorted(line.partition(">:")[2] for line in done.stdout.splitlines())
        assert [line.split()[1] for line in sums] == ["6"] * 3, done.stdout


def test_it_can_be_one_of_several_hosts(bed):
    done = run(bed, "-H", f"{bed.head.address}:1,s1:1", *python(WHERE))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"[0]<stdout>:{bed.head.address} head 0 2", "[1]<stdout>:s1 s1 1 2"]


def test_the_status_signals_and_the_input_are_those_of_any_host(bed):
    assert run(bed, "-H", bed.head.address, "sh", "-c", "exit 7").returncode == 7
    done = run(bed, "-H", f"{bed.head.address}:2", "cat", input="hello\n")
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:hello\n")
    limited = run(bed, "-H", bed.head.address, "--timeout", "1", "sleep", "600")
    assert limited.returncode == 124
    assert not [process for process in bed.head.processes() if process.name in ("sleep", "runjob-agent")]


@pytest.mark.parametrize("where, text", [
    ("user@{0}:1", ""),
    ("{0}:1", "Port 2222\n"),
    ("{0}:1", "User other\n"),
    ("{0}:1", "ProxyJump s1\n"),
    ("alias:1", "Host alias\n  HostName {0}\n  Port 2222\n"),
])  # fmt: skip
def test_a_user_a_port_or_the_configuration_leads_to_an_ssh_server(bed, config, where, text):
    config(text.format(bed.head.address))
    done = run(bed, "-H", where.format(bed.head.address), "true")
    assert done.returncode == 125, "nothing listens there"
    assert "runjob: error: " in done.stderr
    assert run(bed, "-p", "2222", "-H", bed.head.address, "true").returncode == 125


def test_the_configuration_may_lead_here_and_elsewhere(bed, config):
    config(f"Host here\n  HostName {bed.head.address}\nHost {bed.head.address}\n  HostName {bed.hosts[0].address}\n")
    assert run(bed, "-H", "here", *python(WHERE)).stdout == "[0]<stdout>:here head 0 1\n"
    assert run(bed, "-H", bed.head.address, *python(WHERE)).stdout == f"[0]<stdout>:{bed.head.address} s1 0 1\n"


def test_a_name_that_no_server_knows_is_an_error_within_the_time_to_connect(bed):
    done = run(bed, "--connect-timeout", "2", "-H", f"{bed.head.address},no-such-host", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("runjob: error: no-such-host: ")


def test_there_is_nothing_to_clean(bed):
    done = run(bed, "--clean-cache", "-H", bed.head.address)
    assert (done.returncode, done.stderr) == (0, "")
