#!/usr/bin/env python3
"""Ranks started by every launcher that is installed: launchers.py HELLO [--openmpi PROGRAM] [--mpich PROGRAM]
[--rondo COMMAND]

HELLO is the example; the programs join by rondo/adapters/mpi.hpp.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks
import slurm

parser = argparse.ArgumentParser()
parser.add_argument("hello", type=pathlib.Path)
for name in ("openmpi", "mpich", "rondo"):
    parser.add_argument(f"--{name}", type=pathlib.Path)
programs = parser.parse_args()

# Whatever has launched this script must not look like what launches the ranks.
of_launchers = ("RONDO_", "OMPI_", "PMIX_", "PMI_", "MPI_", "SLURM_", "TORCHELASTIC_", "MASTER_", "RANK", "WORLD_SIZE",
                "LOCAL_")
plain = {name: value for name, value in os.environ.items() if not name.startswith(of_launchers)}
root_may = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

open_mpi = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"]
mpich = ["mpirun.mpich", "-launcher", "fork", "-n"]

running = set()


class job:
    """A command in a process group of its own."""

    def __init__(self, command, environment={}, seconds=60):
        self.process = subprocess.Popen(list(map(str, command)), env={**plain, **environment}, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.seconds = seconds
        running.add(self)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def differs(self, expected):
        """'' if it ends well, having printed these lines in any order, else what it did."""
        late = ""
        try:
            said, _ = self.process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            said, _ = self.process.communicate()
            late = f"it ran for more than {self.seconds} seconds, "
        running.discard(self)
        if self.process.returncode == 0 and sorted(said.splitlines()) == sorted(expected):
            return ""
        return f"{late}exit {self.process.returncode}, printed:\n{said}\nexpected:\n" + "\n".join(expected) + "\n"


def end(*_):
    for left in list(running):
        left.kill()
    os._exit(1)


def sum_of(ranks):
    return ranks * (ranks - 1) // 2


def greetings(ranks):
    return [f"rank {rank} of {ranks}: {sum_of(ranks)}" for rank in range(ranks)]


def joined_by_mpi(ranks):
    """What join_mpi.cpp prints: each half counts its ranks from behind."""
    lines = greetings(ranks)
    for rank in range(ranks):
        half = [other for other in range(ranks) if other % 2 == rank % 2]
        lines.append(f"{rank}, in its half rank {half[::-1].index(rank)} of {len(half)}: {sum_of(len(half))}")
    needs = "rondo: join_mpi needs MPI to be running: call it between MPI_Init and MPI_Finalize"
    none = "rondo: join_mpi was given MPI_COMM_NULL: this rank is not part of that communicator"
    return lines + [needs, needs, none]


def torchrun_agent():
    """Listens at a port with a free one behind it, below those that the system gives to whoever asks for any."""
    for port in range(29500, 32000, 2):
        with contextlib.suppress(OSError):
            socket.create_server(("127.0.0.1", port + 1)).close()
            return socket.create_server(("127.0.0.1", port))
    raise RuntimeError("no port from 29500 to 32000 is free")


def by_torchrun(ranks):
    """With the variables that torchrun sets. Its agent holds MASTER_PORT, as this script does."""
    with torchrun_agent() as agent:
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(agent.getsockname()[1]), "WORLD_SIZE": str(ranks),
                  "LOCAL_WORLD_SIZE": str(ranks), "GROUP_RANK": "0", "ROLE_RANK": "0", "TORCHELASTIC_RUN_ID": "none",
                  "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"}
        jobs = [job([programs.hello], {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]
        return "".join(started.differs([line]) for started, line in zip(jobs, greetings(ranks)))


class two_networks:
    """Network name spaces on one wire: ranks in them share a host and no address, as in two containers."""

    names = [f"rondo-{os.getpid()}-{end}" for end in (0, 1)]

    @classmethod
    def missing(cls):
        if not shutil.which("ip"):
            return "ip (iproute2) is not installed"
        refused = checks.run(["ip", "netns", "add", cls.names[0]])
        return "network name spaces are not permitted" if refused else checks.run(["ip", "netns", "del", cls.names[0]])

    def __enter__(self):
        self.ending = contextlib.ExitStack()
        wires = [f"rondo{os.getpid() % 10**6}.{end}" for end in (0, 1)]
        for name in self.names:
            self.ip("netns", "add", name)
            self.ending.callback(self.ip, "netns", "del", name)
        self.ip("link", "add", wires[0], "netns", self.names[0], "type", "veth", "peer", "name", wires[1], "netns",
                self.names[1])
        for number, (name, wire) in enumerate(zip(self.names, wires), 1):
            self.ip("-n", name, "addr", "add", f"10.9.8.{number}/24", "dev", wire)
            for link in ("lo", wire):
                self.ip("-n", name, "link", "set", link, "up")
        for name, wire in zip(self.names, wires):  # a second may pass until the kernel calls it running
            self.until_running(name, wire)
        return self

    def __exit__(self, *_):
        self.ending.close()

    @staticmethod
    def until_running(name, wire):
        for _ in range(100):
            said = subprocess.run(["ip", "-n", name, "link", "show", wire], stdout=subprocess.PIPE, text=True).stdout
            if "state UP" in said:
                return
            time.sleep(0.05)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)


def across_networks(ranks):
    """Hydra hands its ranks a descriptor, so they need no network to find each other by MPI."""
    within = "exec ip netns exec $0-$((PMI_RANK % 2)) $1"
    with two_networks() as networks:
        prefix = networks.names[0].removesuffix("-0")
        return job([*mpich, ranks, "sh", "-c", within, prefix, programs.mpich]).differs(joined_by_mpi(ranks))


def by_slurm(ranks):
    try:
        with slurm.cluster() as environment:
            return job(["srun", "-n", ranks, "--overcommit", programs.hello], environment).differs(greetings(ranks))
    except RuntimeError as why:
        return str(why)


def cases():
    def case(name, missing, function, *arguments):
        return (f"{name} # SKIP {missing}", lambda: "") if missing else (name, lambda: function(*arguments))

    def launched(command, expected, environment={}):
        return job(command, environment).differs(expected)

    def absent(command):
        return "" if shutil.which(command[0]) else f"{command[0]} is not installed"

    for ranks in (2, 4, 8):
        for mpi, command, program in (("Open MPI", open_mpi, programs.openmpi), ("MPICH", mpich, programs.mpich)):
            yield case(f"{ranks} ranks by mpirun of {mpi}", absent(command), launched,
                       [*command, ranks, programs.hello], greetings(ranks), root_may)
            yield case(f"{ranks} ranks that join by a communicator of {mpi}",
                       absent(command) or ("" if program else f"{mpi} has no headers here"), launched,
                       [*command, ranks, program], joined_by_mpi(ranks), root_may)
        yield case(f"{ranks} ranks by the variables of torchrun", "", by_torchrun, ranks)
        yield case(f"{ranks} ranks by rondo launch", "" if programs.rondo else "the rondo command is not built",
                   launched, [programs.rondo, "launch", "--no-prefix", "-n", ranks, "--", programs.hello],
                   greetings(ranks))
    yield case("4 ranks in two networks that join by a communicator of MPICH",
               absent(mpich) or ("" if programs.mpich else "MPICH has no headers here") or two_networks.missing(),
               across_networks, 4)
    yield case("4 ranks by srun", slurm.missing(), by_slurm, 4)


signal.signal(signal.SIGTERM, end)
checks.report(cases(), parallel=False)
