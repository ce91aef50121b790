"""A Slurm cluster of one node in a temporary folder, without systemd, for as long as a test needs it."""

import contextlib
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time

daemons = ("munged", "slurmctld", "slurmd")


def missing():
    """Why there can be no cluster here; '' if there can."""
    for program in (*daemons, "srun"):
        if not shutil.which(program, path=search_path):
            return f"{program} is not installed"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


search_path = os.environ["PATH"] + ":/usr/sbin"


def configuration(folder, node, ports):
    return f"""
ClusterName=rondo
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/linear
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    """Ports that nobody holds just now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def cluster(patience=20):
    """Gives the environment for srun once the node is idle. Throws RuntimeError with the logs if it never is."""
    node = socket.gethostname().split(".")[0]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ending:
        folder = pathlib.Path(name)
        (folder / "state").mkdir()
        (folder / "spool").mkdir()
        (folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (folder / "munge.key").chmod(0o400)
        (folder / "slurm.conf").write_text(configuration(folder, node, free_ports(2)))
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\nIgnoreSystemd=yes\n")
        environment = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": search_path}

        def start(*command):
            log = ending.enter_context(open(folder / f"{command[0]}.out", "w"))
            daemon = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=subprocess.STDOUT)
            ending.callback(lambda: (daemon.kill(), daemon.wait()))

        start("munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
              f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munged.seed", f"--log-file={folder}/munged.log")
        start("slurmctld", "-D", "-c", "-f", folder / "slurm.conf")
        start("slurmd", "-D", "-c", "-f", folder / "slurm.conf", "-N", node)
        until = time.monotonic() + patience
        while "idle" not in subprocess.run(["sinfo", "-h", "-o", "%T"], env={**os.environ, **environment}, text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.split():
            if time.monotonic() > until:
                raise RuntimeError("no node of Slurm became idle:\n" + "\n".join(
                    f"{path.name}: {path.read_text()}" for path in sorted(folder.glob("*.*"))
                    if path.suffix in (".out", ".log")))
            time.sleep(0.2)
        yield environment
