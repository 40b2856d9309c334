"""What a test may ask for: the hosts and the networks between them."""

import dataclasses

USER = "user"
USER_ID = 20077
HOME = f"/home/{USER}"


@dataclasses.dataclass(frozen=True)
class HostSpec:
    """One host. Every field has the value of an ordinary one."""

    sshd: bool = True
    port: int = 22  # of sshd
    max_startups: str | None = None  # sshd's MaxStartups; None: its own default
    sshd_config: str = ""  # more lines for sshd_config
    hide: tuple = ()  # folders that are empty here, files that are /dev/null; root may write into the folders
    tmpfs: dict = dataclasses.field(default_factory=dict)  # path -> options: {HOME: "noexec"}, {HOME: "size=64k"}
    decoys: bool = False  # docker0 and virbr0 with the addresses they have everywhere, and the 127.0.1.1 line in /etc/hosts
    networks: tuple | None = None  # the interface names of the networks that it is on; None: as each network says


@dataclasses.dataclass(frozen=True)
class Network:
    """One bridge. Host sN has the address {prefix}.N and {prefix6}::N on it, the head {prefix}.253 and {prefix6}::fd."""

    interface: str = "eth0"  # what the hosts call it
    prefix: str = "10.77.0"
    prefix6: str = "fd77"
    head: bool = True  # whether the head is on it

    @property
    def gateway(self):
        return f"{self.prefix}.254"


ETHERNET = Network()
INFINIBAND = Network("ib0", "10.78.0", "fd78", head=False)  # a second network, between the hosts only
MOST_HOSTS = 250
HEAD_NUMBER = 253
