#!/usr/bin/env python3
"""Every collective over a transport, each element checked: collectives.py RONDO TRANSPORT [--ranks LIST] [--end BYTES]
[--adapters COUNT]

A case is a collective and a number of ranks: nothing wrong, and all ranks hold the same bytes. With several adapters
the ranks take them in turn; over multi two ranks after the other play that they share a host. In one of two guests
(GUEST is set) the ranks are dealt out to both; the first one reports.
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

parser = argparse.ArgumentParser()
parser.add_argument("rondo", type=pathlib.Path)
parser.add_argument("transport")
parser.add_argument("--ranks", default="2,3,4,5")
parser.add_argument("--end", default="64K", help="largest size")
parser.add_argument("--adapters", type=int, default=1)
parser.add_argument("--seconds", type=int, default=120, help="limit of a number of ranks")
options = parser.parse_args()

collectives = ("all_reduce reduce_scatter all_gather broadcast reduce all_to_all gather scatter barrier "
               "send_receive").split()
guest, guests = int(os.environ.get("GUEST", "0")), 2 if "GUEST" in os.environ else 1
folder = tempfile.TemporaryDirectory()


def start(rank, ranks, report):
    """One rank, which measures all collectives; rank 0 writes the report."""
    who = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": str(29500 + ranks), "RONDO_TOKEN": "of a test",
           "MASTER_ADDR": "10.9.0.1" if guests > 1 else "127.0.0.1"}
    if options.adapters > 1:
        who["RONDO_IB_HCA"] = f"=rxe{rank % options.adapters}"
    if options.transport == "multi":
        who["RONDO_HOSTID"] = str(rank // 2)
    command = [options.rondo, "perf", "--transport", options.transport, "--collective", ",".join(collectives),
               "-e", options.end, "-f", "64", "-n", "2", "-w", "1", "--no-pin", "--no-limit", "-T", "30"]
    if rank == 0:
        command += ["--json", report]
    return subprocess.Popen(command, env={**os.environ, **who}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


@functools.cache
def rows(ranks):
    """What rank 0 has measured, and what went wrong with any rank of this guest."""
    report = pathlib.Path(folder.name) / f"{ranks}.json"
    jobs = [(rank, start(rank, ranks, report)) for rank in range(ranks) if rank % guests == guest]
    until, complaint = time.monotonic() + options.seconds, ""
    for rank, job in jobs:
        try:
            said, _ = job.communicate(timeout=max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            job.kill()
            said = job.communicate()[0] + f"it ran for more than {options.seconds} seconds"
        if job.returncode != 0:
            complaint += f"rank {rank} of {ranks}: exit {job.returncode}\n{said}\n"
    return json.loads(report.read_text()) if report.exists() else [], complaint


def collective(name, ranks):
    measured, complaint = rows(ranks)
    mine = [row for row in measured if row["collective"] == name]
    if not mine:
        return complaint or "nothing was measured\n"
    return "".join(f"{json.dumps(row)}\n" for row in mine if row["wrong"] or not row["checked"] or
                   not row["hashes_equal"])


numbers = [int(number) for number in options.ranks.split(",")]
if guest == 0:
    checks.report([(f"{name} over {options.transport}, {ranks} ranks",
                    lambda name=name, ranks=ranks: collective(name, ranks))
                   for ranks in numbers for name in collectives]
                  + [(f"{ranks} ranks end well", lambda ranks=ranks: rows(ranks)[1]) for ranks in numbers],
                  parallel=False)
checks.report([(f"{ranks} ranks end well", lambda ranks=ranks: rows(ranks)[1]) for ranks in numbers], parallel=False)
