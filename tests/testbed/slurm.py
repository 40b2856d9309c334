"""A real SLURM cluster: slurmctld at the head of a testbed, one slurmd on each host, munged on all of them.

    from testbed.slurm import Slurm

    with Slurm(nodes=2, cpus=4) as slurm:
        done = slurm.run(["srun", "-N2", "hostname"])

The nodes are hosts, called s1 to sN, with sshd too; a job's tasks on different nodes are on different networks. Home is one
directory for all, as on a cluster, so that sbatch's output can be found. SLURM's packages must be installed; that they are
not configured on the machine, or are and run there, makes no difference.
"""

import dataclasses
import secrets

from . import requirements
from .eventually import eventually
from .specs import HostSpec
from .testbed import Testbed

HIDDEN = ("/etc/slurm", "/etc/munge")  # of the machine's own SLURM, if it has one; on the hosts, the cluster's own
STATE = "/run/slurm"
CONFIG = f"""ClusterName=testbed
SlurmctldHost=head
SlurmUser=root
StateSaveLocation={STATE}/state
SlurmdSpoolDir={STATE}/spool
SlurmctldPidFile={STATE}/slurmctld.pid
SlurmdPidFile={STATE}/slurmd.pid
MailProg=/bin/true
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SchedulerParameters=batch_sched_delay=0
"""


class Slurm:
    def __init__(self, nodes=2, cpus=4, config="", specs=None, gpus=0, **options):
        """
        cpus     of each node, whatever the machine has; so gpus, which are only names and numbers.
        specs    of the nodes, where one differs from an ordinary host.
        config   more lines for slurm.conf; the last one about a thing counts.
        options  of Testbed; `head` and `hosts` are made here.
        """
        hosts = [dataclasses.replace(spec, hide=(*spec.hide, *HIDDEN)) for spec in specs or [HostSpec()] * nodes]
        self.bed = Testbed(hosts, **{"head": HostSpec(hide=HIDDEN, sshd=False), "shared_home": True, **options})
        devices = f" Gres=gpu:{gpus}\nGresTypes=gpu" if gpus else ""
        machines = f"PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE\nNodeName=s[1-{nodes}] CPUs={cpus} State=UNKNOWN{devices}\n"
        self._gpus = gpus
        self._config = CONFIG + machines + config + "\n"
        self.nodes = self.bed.hosts
        self.head = self.bed.head

    def __enter__(self):
        slurmctld = requirements.program("slurmctld", "slurm-wlm")
        slurmd = requirements.program("slurmd", "slurm-wlm")
        munged = requirements.program("munged", "munge")
        self.bed.__enter__()
        try:
            self._write_files()
            everywhere = [*self.nodes, self.head]
            self.bed.start_services(everywhere, "munged", [munged, "--foreground", f"--seed-file={STATE}/seed"], "Created socket")
            self.bed.start_services([self.head], "slurmctld", [slurmctld, "-D"], "Running as primary controller")
            self.bed.start_services(self.nodes, "slurmd", [slurmd, "-D"], "slurmd started on")
            eventually(lambda: self.states() == {"idle"}, "every node is idle")
        except BaseException:
            self.bed.close()
            raise
        return self

    def __exit__(self, *_):
        self.bed.close()

    def run(self, argv, **options):
        """Host.run at the head."""
        return self.head.run(argv, **options)

    def jobs(self):
        """Ids of the jobs that wait or run."""
        return self.run(["squeue", "--noheader", "--format=%i"], check=True).stdout.split()

    def states(self):
        return set(self.run(["sinfo", "--noheader", "--Node", "--format=%t"]).stdout.split())

    def _write_files(self):
        key = secrets.token_hex(64)
        for host in (*self.nodes, self.head):
            host.write("/etc/munge/munge.key", key, 0o600, "root")
            host.write("/etc/slurm/slurm.conf", self._config, user="root")
            for folder in ("/run/munge", f"{STATE}/state", f"{STATE}/spool"):
                host.path(folder).mkdir(parents=True)
            for number in range(self._gpus):
                host.run(["mknod", f"{STATE}/gpu{number}", "c", "1", "3"], user="root", check=True)  # another /dev/null
            if self._gpus:
                host.write("/etc/slurm/gres.conf", f"Name=gpu File={STATE}/gpu[0-{self._gpus - 1}]\n", user="root")
