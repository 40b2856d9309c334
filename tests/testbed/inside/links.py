"""Network devices, addresses and routes, through `ip -batch`: one program for all of them."""

import subprocess


def run_ip(lines):
    """Carries out `lines` in the network namespace of the caller; RuntimeError with ip's words when one fails."""
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


def use_addresses_at_once():
    """For devices made later. Otherwise an IPv6 address waits a second for the detection of duplicates."""
    for name in ("all", "default"):
        with open(f"/proc/sys/net/ipv6/conf/{name}/accept_dad", "w", encoding="ascii") as file:
            file.write("0")
