#!/usr/bin/env python3
"""Who may include whom. Each header looks down only; no cycles; third-party headers stay where they belong."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import checks

# From the bottom up. A header belongs to the entry with the longest start of its name after rondo/, and may include its
# own layer and those below. A header in detail/ lies where what it includes puts it.
layers = [
    ("base", "config version types algorithm element float16 bfloat16 float8 error wait options"),
    ("concepts", "transport. pollable memory registered_ device reduce_op schedule. group fingerprint reconnect"),
    ("diagnostics", "diagnostics/"),
    ("algorithms", "ops fold schedule/ direct/ fused/"),
    ("run", "run/"),
    ("select", "select policy explain run/choices"),
    ("communicator", "communicator collectives/ work run/dispatcher"),
    ("training", "gradient/ async/ pipeline/ fused/sync_and_step"),
    ("adapters", "adapters/"),
    ("umbrella", "rondo."),
]
rank = {name: number for number, (name, _) in enumerate(layers)}

# What the other two roots see of root 1: a transport's entry points hand out communicators, kernels run schedules.
ceiling = {"transports/": "communicator", "cuda/": "run"}

# The one place that may include a library.
libraries = {
    "rondo/transports/ucx": ("ucp/", "ucs/", "uct/"),
    "rondo/transports/verbs": ("infiniband/", "rdma/"),
    "rondo/transports/cuda_ipc": ("cuda",),
    "rondo/adapters/nccl.h": ("nccl", "cuda"),
    "rondo/adapters/torch": ("torch/", "ATen/", "c10/"),
    "rondo/adapters/nccl": ("cuda",),
    "rondo/adapters/mpi.hpp": ("mpi.h",),
    "rondo/cuda/": ("cuda", "cooperative_groups", "nvtx3/"),
}
posix = re.compile(r"(sys|net|netinet|arpa|linux)/\w+\.h|(unistd|fcntl|poll|sched|spawn|signal|semaphore|pthread|netdb"
                   r"|ifaddrs|dirent|time|errno|immintrin|cpuid|arm_neon|dlfcn)\.h")
unwelcome = {"iostream": "brings static initialisers", "ranges": "breaks nvcc 12.0 and 12.1"}




class tree:
    """The headers of the three roots and what they include."""

    def __init__(self):
        self.paths = [(path.relative_to(base).as_posix(), path) for base in checks.include_roots
                      for path in sorted(base.rglob("*.*")) if path.suffix in (".hpp", ".h", ".cuh")]
        self.includes = {name: re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', path.read_text(), re.M)
                         for name, path in self.paths}

    def layer(self, name):
        """The number of the header's layer; None if it has none."""
        local = name.removeprefix("rondo/")
        if local.startswith("detail/"):
            return max((self.layer(it) or 0 for it in self.includes[name] if it in self.includes), default=0)
        return max(((len(start), number) for number, (_, starts) in enumerate(layers) for start in starts.split()
                    if local.startswith(start)), default=(0, None))[1]

    def look(self, name):
        """What is wrong with the includes of one header."""
        if not folder_of(name) and self.layer(name) is None:
            return "belongs to no layer: name it in tests/headers/layers.py"
        return "\n".join(filter(None, (self.complaint(name, it) for it in self.includes[name])))

    def complaint(self, name, included):
        if not included.startswith("rondo/"):
            if included in unwelcome:
                return f"<{included}> {unwelcome[included]}"
            own = next((starts for where, starts in libraries.items() if name.startswith(where)), ())
            standard = "." not in included and "/" not in included
            return "" if standard or posix.fullmatch(included) or included.startswith(own) else (
                f"<{included}> is neither standard C++ nor POSIX")
        if included not in self.includes:
            return f"<{included}> does not exist"
        here, there = folder_of(name), folder_of(included)
        if there:
            bridge = name.startswith(("rondo/transports/cuda_ipc", "rondo/adapters/"))
            return "" if here == there or bridge else f"<{included}> lies in another root"
        top = rank[ceiling[here]] if here else self.layer(name)
        bottom = self.layer(included)
        if bottom is None or bottom <= top:
            return ""
        return f"<{included}> ({layers[bottom][0]}) lies above {layers[top][0]}"

    def detour(self):
        """A cycle of includes."""
        done, path = set(), []

        def visit(name):
            if name in path:
                return " -> ".join(path[path.index(name):] + [name])
            if name in done or name not in self.includes:
                return ""
            path.append(name)
            found = next(filter(None, map(visit, self.includes[name])), "")
            path.pop()
            done.add(name)
            return found

        return next(filter(None, map(visit, self.includes)), "")

    def hidden(self):
        """Paths that two roots share: one would overwrite the other when they are installed."""
        return "\n".join(sorted({name for number, (name, _) in enumerate(self.paths)
                                 if name in dict(self.paths[:number])}))


def folder_of(name):
    """'transports/', 'cuda/' or '' (root 1) for rondo/…"""
    return next((folder for folder in ceiling if name.startswith("rondo/" + folder)), "")


def main():
    house = tree()
    if house.detour():  # layers are not defined then
        checks.report([("no header includes itself by a detour", house.detour)])
    checks.report([(f"{name} includes only what lies below it", lambda name=name: house.look(name))
                   for name in house.includes]
                  + [("no header includes itself by a detour", house.detour),
                     ("no path lies in two roots", house.hidden)])


main()
