"""How the hosts are joined and named: lines for ip, /etc/hosts and known_hosts."""

from .network_faults import port_of_switch


def networks_of(spec, networks, is_head):
    """The networks that a host is on."""
    if spec.networks is not None:
        return [network for network in networks if network.interface in spec.networks]
    return [network for network in networks if network.head or not is_head]


def switch(networks):
    """Lines for ip: one bridge per network, which is also the hosts' gateway, to nowhere."""
    lines = ["link set lo up"]
    for network in networks:
        bridge = bridge_of(network.interface)
        lines.append(f"link add {bridge} type bridge mcast_snooping 0")
        lines.append(f"addr add {network.gateway}/24 dev {bridge}")
        lines.append(f"link set {bridge} up")
    return lines


def cables(host):
    """Lines for ip in the switch; "{pid}" stands for the host's PID 1."""
    lines = []
    for interface in host.addresses:
        port = port_of_switch(host.name, interface)
        lines.append(f"link add {port} type veth peer name {interface} netns {{pid}}")
        lines.append(f"link set {port} master {bridge_of(interface)} up")
    return lines


def bridge_of(interface):
    """The name of a network's bridge in the switch."""
    return f"switch.{interface}"


def hosts_file(hosts):
    """sN means its addresses on its first network, sN-ip4 and sN-ip6 one of them, sN-ib0 the one on the network ib0."""
    lines = []
    for host in hosts:
        for number, (interface, address) in enumerate(host.addresses.items()):
            address6 = host.addresses6[interface]
            names = (host.name, f"{host.name}-ip4", f"{host.name}-ip6") if number == 0 else (f"{host.name}-{interface}",) * 3
            lines.append(" ".join(dict.fromkeys((address, names[0], names[1]))))
            lines.append(" ".join(dict.fromkeys((address6, names[0], names[2]))))
    return lines


def known_hosts(host, keys):
    """The lines for all its keys, under every name and address that it has."""
    names = [host.name, f"{host.name}-ip4", f"{host.name}-ip6"]
    names += [f"{host.name}-{interface}" for interface in list(host.addresses)[1:]]
    names += [*host.addresses.values(), *host.addresses6.values()]
    if host.port != 22:
        names = [f"[{name}]:{host.port}" for name in names]
    return "".join(f"{','.join(names)} {pair.public_words}\n" for pair in keys.values())
