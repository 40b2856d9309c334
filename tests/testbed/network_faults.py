"""What can go wrong with a host's network. `run` runs a program in a network namespace, as root: host's or switch's."""

FILTER = "testbed"  # the name of our table in nftables
SHAPER = ["root", "tbf", "latency", "50ms"]  # the one shaper besides htb that the kernels of our machines all have


def port_of_switch(host_name, interface):
    """What the switch calls its end of the cable: at most 15 characters."""
    return f"{host_name}.{interface}"


def cut(run_in_switch, host_name, interfaces):
    for interface in interfaces:
        run_in_switch(["ip", "link", "set", port_of_switch(host_name, interface), "down"])


def restore(run_in_switch, host_name, interfaces):
    for interface in interfaces:
        run_in_switch(["ip", "link", "set", port_of_switch(host_name, interface), "up"])


def drop_port(run_in_host, port, protocol):
    rules = f"""
        add table inet {FILTER}
        add chain inet {FILTER} input {{ type filter hook input priority 0; }}
        add rule inet {FILTER} input {protocol} dport {port} drop
    """
    run_in_host(["nft", "-f", "-"], input=rules)


def drop_direction(run_in_host, hook, interface):
    """`hook`: "input" for what comes to the host, "output" for what leaves it."""
    _filter(run_in_host, hook, interface, "drop")


def reset_connections(run_in_host, interface):
    """Every packet of TCP is answered by a reset, wherever it comes from."""
    for hook in ("input", "output"):
        _filter(run_in_host, hook, interface, "meta l4proto tcp reject with tcp reset")


def _filter(run_in_host, hook, interface, action):
    which = f"{'iif' if hook == 'input' else 'oif'}name {interface} " if interface else ""
    rules = f"""
        add table inet {FILTER}
        add chain inet {FILTER} {hook} {{ type filter hook {hook} priority 0; }}
        add rule inet {FILTER} {hook} {which}{action}
    """
    run_in_host(["nft", "-f", "-"], input=rules)


def drop_nothing(run_in_host):
    run_in_host(["nft", "-f", "-"], input=f"add table inet {FILTER}\ndelete table inet {FILTER}\n")


def shape(run_in_host, run_in_switch, host_name, interface, rate, burst):
    """In both directions: a shaper sits where packets leave."""
    words = [*SHAPER, "rate", rate, "burst", burst]
    run_in_host(["tc", "qdisc", "replace", "dev", interface, *words])
    run_in_switch(["tc", "qdisc", "replace", "dev", port_of_switch(host_name, interface), *words])


def unshape(run_in_host, run_in_switch, host_name, interface):
    run_in_host(["tc", "qdisc", "del", "dev", interface, "root"])
    run_in_switch(["tc", "qdisc", "del", "dev", port_of_switch(host_name, interface), "root"])


def limit_socket_buffers(run_in_host):
    least = 4608  # of SO_SNDBUF, in the kernel
    run_in_host(["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 4096 4096", f"net.core.wmem_max={least}"])


def set_congestion_control(run_in_host, name):
    run_in_host(["sysctl", "-qw", f"net.ipv4.tcp_congestion_control={name}"])


def make_late_cable(run_in_switch, host_name, interface, bridge):
    """The two interfaces in the switch between which a program must forward the host's frames."""
    near, inner, outer = port_of_switch(host_name, interface), f"{host_name}.late", f"{host_name}.later"
    run_in_switch(["ip", "link", "add", inner, "type", "veth", "peer", "name", outer])
    for words in ([near, "nomaster"], [outer, "master", bridge], [inner, "up"], [outer, "up"]):
        run_in_switch(["ip", "link", "set", *words])
    return near, inner
