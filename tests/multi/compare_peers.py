#!/usr/bin/env python3
"""rondo compare --peers with peers that misbehave: compare_peers.py RONDO RONDO_PEER LIMIT_PEER"""

import json
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks


def be_a_peer(behaviour, ranks, address, _):
    """Plays all ranks of a library, as bench/peers/protocol.hpp has it. The calls take no time at all."""
    if behaviour == "refuses":
        sys.exit("no such fabric")
    members = []
    for rank in range(int(ranks)):
        members.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        members[-1].connect("\0" + address)
        members[-1].send(struct.pack("ii56s", rank, int(ranks), f"The one that {behaviour}".encode()))
    while True:
        for member in members:
            if not member.recv(24):
                return
        if behaviour == "hangs":
            time.sleep(60)
        if behaviour == "dies":
            return
        trouble = b"the wire is cut." if behaviour == "throws" else b""
        for member in members:
            member.send(struct.pack("Q248s", behaviour == "errs", trouble))


class place:
    """A build folder in which the command finds the given peers."""

    def __init__(self, *peers):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name)
        self.command, self.rows = root / "release" / "bench" / "rondo", root / "rows.json"
        self.command.parent.mkdir(parents=True)
        for program, name in zip(programs, ("rondo", "rondo_peer", "limit_peer")):
            shutil.copy(program, self.command.parent / name)
        runs = root / "peers" / "run"
        runs.mkdir(parents=True)
        for peer in peers:
            start = f'exec {sys.executable} {__file__} --peer {peer} "$@"'
            if peer == "rondo":
                start = f'n=$1 && shift && exec "$RONDO" launch --no-prefix -n $n -- {programs[1]} tcp "$@"'
            (runs / f"{peer}-tcp").write_text(f"#!/bin/sh\n{start}\n")
            (runs / f"{peer}-tcp").chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def compare(self, *options):
        fixed = ["--peers", "--quick", "--end", "8", "--minutes", "0.02", "--json", self.rows]
        return subprocess.run([self.command, "compare", *fixed, *options], capture_output=True, text=True)


def says(done, status, *texts):
    if done.returncode == status and all(text in done.stdout + done.stderr for text in texts):
        return ""
    return f"exit {done.returncode}, expected {status} and {texts}\n{done.stdout}{done.stderr}"


def a_table():
    with place("rondo") as here:
        done = here.compare("--ranks", "2,3")
        complaint = says(done, 0, "2 ranks", "3 ranks", "round trip of a flag", "limit in place", "rondo / best peer",
                         "0 of them wrong")
        if complaint:
            return complaint
        rows = json.loads(here.rows.read_text())
    systems = ("limit", "limit, in place", "shm, registered", "shm", "tcp", "rondo-tcp")
    found = {(row["transport"], row["ranks"]) for row in rows}
    missing = {(name, ranks) for name in systems for ranks in (2, 3)} - found
    bad = [row for row in rows if row["wrong"] or not 0 < row["min_us"] <= row["p50_us"] <= row["p99_us"]]
    return f"missing {missing}, bad {bad}" if missing or bad else ""


def given_up(behaviour, *texts):
    """One that fails is left out with a sentence; the others are compared."""

    def case():
        with place(behaviour, "rondo") as here:
            done = here.compare("--transport", "shm", "--timeout", "10")
        return says(done, 0, "is given up", "rondo / best peer", *texts)

    return f"a peer that {behaviour} is given up", case


def wrong():
    with place("errs") as here:
        return says(here.compare("--transport", "shm"), 1, "WRONG", "1 of them wrong")


def alone():
    with place() as here:
        return says(here.compare("--transport", "shm"), 0, "There are no peers", "limit")


if sys.argv[1] == "--peer":
    be_a_peer(*sys.argv[2:])
else:
    programs = sys.argv[1:4]
    checks.report(
        [
            ("a table, and rows for programs", a_table),
            given_up("refuses", "its launcher ended before", "no such fabric"),
            given_up("hangs", "did not come back from 8 B in time"),
            given_up("dies", "ended in 8 B"),
            given_up("throws", "the wire is cut."),
            ("results that are wrong are shown", wrong),
            ("without peers there are rondo and the limit", alone),
        ],
        parallel=False,
    )
