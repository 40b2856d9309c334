"""The OpenSSH server of a host: its configuration, and how to see that it listens."""

from . import requirements
from .ssh_keys import HOST_KEY_TYPES

CONFIG = "/etc/ssh/sshd_config"


def config(spec):
    """Without PAM, whose modules need the machine's; StrictModes, MaxStartups and all else as OpenSSH has them."""
    lines = [f"Port {spec.port}", "ListenAddress 0.0.0.0", "ListenAddress ::", "UsePAM no", "PasswordAuthentication no"]
    lines += [f"HostKey /etc/ssh/ssh_host_{kind}_key" for kind in HOST_KEY_TYPES]
    lines += ["LogLevel VERBOSE", "Subsystem sftp internal-sftp"]  # verbose: one line for each connection
    lines += [f"MaxStartups {spec.max_startups}"] if spec.max_startups else []
    return "\n".join([*lines, spec.sshd_config]) + "\n"


def command():
    return [requirements.program("sshd"), "-D", "-e", "-f", CONFIG]


def listening_patterns(port):
    return [rf"Server listening on {address} port {port}\." for address in (r"0\.0\.0\.0", "::")]
