"""Which network the ranks of several hosts get: decoys, two networks, broken ones, filters, and what they do with it."""

import json
import sys

import pytest
from remote_jobs import ROOT, Running, python, run
from testbed import ETHERNET, INFINIBAND, HostSpec, Testbed

NAMES = ("RUNJOB_ADDRESS", "MASTER_ADDR", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY")
SHOW = f"import json, os; print(json.dumps({{n: os.environ.get(n) for n in {NAMES}}}))"


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=3, networks=(ETHERNET, INFINIBAND), decoys=True) as bed:
        yield bed


@pytest.fixture
def no_data_over_ethernet(bed):
    """Nothing but SSH reaches s2 there: other packets are swallowed."""
    rules = "add table inet t\nadd chain inet t i { type filter hook input priority 0; }\nadd rule inet t i iifname eth0 tcp dport != 22 drop\n"
    bed.hosts[1].run(["nft", "-f", "-"], user="root", input=rules, check=True)
    yield
    bed.hosts[1].run(["nft", "delete", "table", "inet", "t"], user="root", check=True)


def variables(bed, *options, hosts="s1,s2,s3", **more):
    """What the ranks see, by rank."""
    done = run(bed, "-H", hosts, *options, *python(SHOW), **more)
    assert (done.returncode, done.stderr) == (0, "")
    lines = sorted(line.partition("]<stdout>:") for line in done.stdout.splitlines())
    return [json.loads(text) for _, _, text in lines]


def addresses(bed, *options, **more):
    return [each["RUNJOB_ADDRESS"] for each in variables(bed, *options, **more)]


def error_of(bed, *arguments, status=125):
    done = run(bed, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("runjob: error: ") and done.stderr.count("\n") == 1
    return done.stderr[len("runjob: error: ") : -1]


def test_ranks_get_the_common_network_and_no_decoy(bed):
    for number, each in enumerate(variables(bed), 1):
        assert each == {
            "RUNJOB_ADDRESS": f"10.77.0.{number}", "MASTER_ADDR": "10.77.0.1", "GLOO_SOCKET_IFNAME": "eth0",
            "TP_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "=eth0", "NCCL_SOCKET_FAMILY": None,
        }  # fmt: skip


@pytest.mark.parametrize("words", ["ib0", "ib", "=ib0", "10.78.0.0/16", "^eth0", "^10.77.0.0/24,::/0"])
def test_a_filter_chooses_the_other_network(bed, words):
    assert addresses(bed, "--network-interface", words) == ["10.78.0.1", "10.78.0.2", "10.78.0.3"]


def test_ipv6_is_handed_to_everybody(bed):
    for number, each in enumerate(variables(bed, "--network-interfaces", "fd78::/16"), 1):
        assert (each["RUNJOB_ADDRESS"], each["MASTER_ADDR"], each["NCCL_SOCKET_FAMILY"]) == (f"fd78::{number}", "fd78::1", "AF_INET6")


def test_nccl_may_use_all_that_are_named_and_gloo_one(bed):
    (first, *_) = variables(bed, "--network-interface", "eth0", "--network-interface", "ib0")
    assert (first["NCCL_SOCKET_IFNAME"], first["GLOO_SOCKET_IFNAME"]) == ("=eth0,ib0", "eth0")


def test_the_option_may_come_from_the_environment(bed):
    assert addresses(bed, variables={"RUNJOB_NETWORK_INTERFACES": "ib0"}, hosts="s1,s2") == ["10.78.0.1", "10.78.0.2"]


def test_what_the_user_has_set_stays(bed):
    (first, _) = variables(bed, "-x", "NCCL_SOCKET_IFNAME=^lo", hosts="s1,s2", variables={"GLOO_SOCKET_IFNAME": "mine"})
    assert (first["NCCL_SOCKET_IFNAME"], first["GLOO_SOCKET_IFNAME"], first["TP_SOCKET_IFNAME"]) == ("^lo", "mine", "eth0")


def test_a_network_that_swallows_packets_is_not_taken(bed, no_data_over_ethernet):
    assert addresses(bed) == ["10.78.0.1", "10.78.0.2", "10.78.0.3"]


def test_a_cable_that_is_out_is_not_taken_either(bed):
    bed.hosts[2].cut_network("ib0")
    try:
        assert addresses(bed) == ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
        message = error_of(bed, "--network-interface", "10.78.0.0/24", "-H", "s1,s2,s3", "true")
        assert message.startswith("s3 cannot reach s1: tried 10.78.0.1 (")
        assert message.endswith("), and one more such pair; open the network between them or choose another with --network-interface")
    finally:
        bed.hosts[2].restore_network("ib0")


def test_an_address_that_every_host_has_is_nobodys(bed):
    message = error_of(bed, "--network-interface", "docker0,virbr0", "-H", "s1,s2", "true")
    assert message.startswith("s2 cannot reach s1: tried ")
    assert "172.17.0.1 (Connection refused)" in message and "192.168.122.1 (Connection refused)" in message


def test_a_filter_that_allows_nothing_says_what_there_is(bed):
    message = error_of(bed, "--network-interface", "wlan", "-H", "s1,s2", "true", status=2)
    assert message.startswith("s1 has no address that --network-interface wlan allows; its addresses: lo 127.0.0.1, ")
    assert "eth0 10.77.0.1" in message and "docker0 172.17.0.1" in message


def test_interfaces_may_have_another_name_on_each_host(bed):
    def rename(old, new):
        keep = f"ip -6 address add {host.addresses6['ib0']}/64 dev {new} nodad"  # the kernel drops IPv6 addresses with the link
        host.run(["sh", "-ec", f"ip link set {old} down; ip link set {old} name {new}; ip link set {new} up; {keep}"], user="root", check=True)

    host = bed.hosts[1]
    rename("ib0", "fast7")
    try:
        seen = variables(bed, "--network-interface", "10.78.0.0/24")
        assert [each["GLOO_SOCKET_IFNAME"] for each in seen] == ["ib0", "fast7", "ib0"]
        assert [each["NCCL_SOCKET_IFNAME"] for each in seen] == ["=ib0", "=fast7", "=ib0"]
    finally:
        rename("fast7", "ib0")


def test_a_host_under_several_names_is_found_to_be_one(bed):
    assert addresses(bed, hosts="s1,s1-ip4") == ["127.0.0.1", "127.0.0.1"]


def test_a_single_host_gets_loopback_unless_a_network_is_named(bed):
    (alone,) = variables(bed, hosts="s1")
    assert alone["RUNJOB_ADDRESS"] == alone["MASTER_ADDR"] == "127.0.0.1"
    assert alone["GLOO_SOCKET_IFNAME"] is alone["NCCL_SOCKET_IFNAME"] is None
    for host in ("s1", "localhost"):
        (named,) = variables(bed, "--network-interface", "eth0", hosts=host)
        assert (named["RUNJOB_ADDRESS"], named["GLOO_SOCKET_IFNAME"]) == ("10.77.0.1" if host == "s1" else "10.77.0.253", "eth0")


def test_hosts_with_one_family_and_nothing_in_common():
    with Testbed(hosts=[HostSpec(networks=("eth0", "ib0")), HostSpec()], networks=(ETHERNET, INFINIBAND)) as bed:
        bed.hosts[0].run(["ip", "-4", "address", "flush", "dev", "ib0"], user="root", check=True)
        assert addresses(bed, "--network-interface", "ib0", hosts="s1,s2") == ["fd78::1", "fd78::2"]
        bed.hosts[1].run(["ip", "-6", "address", "flush", "dev", "ib0"], user="root", check=True)
        message = error_of(bed, "--network-interface", "ib0", "-H", "s1,s2", "true")
        assert "cannot reach" in message and "fd78::1" in message


RANK = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "python")!r})
from runjob import basics
basics.init()
print("together", basics.size())
time.sleep(600)
"""


@pytest.mark.parametrize("words, prefix", [("eth0", "10.77.0."), ("fd78::/16", "fd78::"), ("10.78.0.0/24", "10.78.0.")])
def test_the_ranks_data_goes_over_the_chosen_network(bed, words, prefix):
    with Running(bed, "--network-interfaces", words, "-H", "s1,s2,s3", "--grace-period", "2", *python(RANK)) as job:
        assert sorted(line.rstrip() for line in job.wait_for_lines(3)) == [f"[{rank}]<stdout>:together 3" for rank in range(3)]
        for host in bed.hosts:
            lines = host.run(["ss", "-Htn", "state", "established"], check=True).stdout.splitlines()
            ends = [end.strip("[") for line in lines for end in line.split()[2:4] if ":22 " not in line]
            assert ends and all(end.startswith(prefix) for end in ends)
            assert all(socket.address.startswith(prefix) for socket in host.listening_sockets())


TORCH = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(x)
print("sum", x.item(), flush=True)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # leaves out Python's end, in which PyTorch may abort: docs/ddp.md
"""


@pytest.mark.parametrize("words", ["eth0", "10.78.0.0/24"])
def test_a_plain_script_of_torch_distributed_runs_over_two_hosts(bed, words):
    pytest.importorskip("torch.distributed")  # tests/python/torch is a package of that name for Python
    done = run(bed, "--network-interface", words, "-H", "s1:1,s2:1", sys.executable, "-c", TORCH)
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:sum 3.0", "[1]<stdout>:sum 3.0"], done.stderr
