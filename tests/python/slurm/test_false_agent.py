"""A process that has learned the key of a job's agents, and connects to the launcher in the name of another node."""

import re

from slurm_jobs import RUNJOB, python, salloc, wait_until_gone
from testbed import HOME

# Keeps a copy of what the agents read, which has the key.
SRUN = f"#!/bin/sh\ncat >{HOME}/call\nexec /usr/bin/srun \"$@\" <{HOME}/call\n"

RANK = f"""
import os, subprocess
if os.environ["RUNJOB_RANK"] == "1":
    agent = subprocess.run([{RUNJOB.rpartition("/")[0] + "/runjob-agent"!r}, "--called"], stdin=open("{HOME}/call"),
                           env={{"SLURMD_NODENAME": "s1"}}, capture_output=True, text=True, timeout=60)
    print("the false agent has ended")
"""


def test_a_second_agent_of_a_node_is_refused_with_its_address_and_the_job_goes_on(slurm):
    slurm.head.write(f"{HOME}/programs/srun", SRUN, mode=0o755)
    done = salloc(slurm, "-N2 -n2 --ntasks-per-node=1", *python(RANK), variables={"PATH": f"{HOME}/programs:/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    assert "the false agent has ended" in done.stdout
    warning = r"runjob: warning: a second agent in the name of node s1, whose agent is connected, was refused; it came from \S+ port \d+\n"
    assert re.fullmatch(warning, done.stderr), done.stderr
    wait_until_gone(slurm)
