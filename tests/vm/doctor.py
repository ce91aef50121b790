#!/usr/bin/env python3
"""What rondo doctor says of two adapters on one wire: doctor.py RONDO"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks


def doctor(before="", wrapper="", **environment):
    """What it says after a command of the shell, which lasts for the cases that follow."""
    return subprocess.run(["bash", "-c", f'{before}\nexec {wrapper} "$0" doctor', sys.argv[1]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}).stdout


def lacks(text, *patterns):
    return "".join(f"{pattern} is missing in:\n{text}\n" for pattern in patterns if not re.search(pattern, text))


def as_it_is():
    return lacks(doctor(), r"note +rxe0 .*emulated by the kernel \(net0\)", r"ok +rxe0 port 1 .*ACTIVE.*Ethernet",
                 r"ok +rxe1 port 1 +GID 0: fe80::\S+ \(RoCE v2 on net1\), taken",
                 r"note +rxe0 port 1 .*same wire.*\n +fix: give net0 an IPv4 address",
                 r"ok +locked memory .*there is no limit")


def left_out():
    return lacks(doctor(RONDO_IB_HCA="=rxe1"), r"ok +rxe0 port 1 .*left out by '=rxe1'", r"rxe1 port 1 +GID 0: .*taken")


def filter_that_means_nothing():
    return lacks(doctor(RONDO_IB_HCA="rxe0:x"), r"problem +devices .*\"rxe0:x\" cannot be read")


def other_gid():
    return lacks(doctor(RONDO_IB_GID_INDEX="7"), r"problem +rxe0 port 1 .*asks for GID 7.*\n +fix: set RONDO_IB_GID_")


def little_memory():
    said = doctor("ulimit -l 8192", "setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock")
    return lacks(said, r"problem +locked memory .*8 MiB may be: enough for 8 peers",
                 "fix: ulimit -l unlimited")


def small_packets():
    return lacks(doctor("ip link set net0 mtu 1500"), r"note +rxe0 port 1 .*MTU of 1500 on net0")


def better_address():
    said = doctor("ip addr add 10.9.0.1/24 dev net0")
    return lacks(said, r"rxe0 port 1 +GID 1: ::ffff:10\.9\.0\.1 \(RoCE v2 on net0\), taken") + (
        said if re.search(r"rxe0 port 1 +GID 0: .*taken", said) else "")


def link_down():
    return lacks(doctor("ip link set net1 down"), r"problem +rxe1 port 1 .*DOWN.*\n +fix: bring its network inter")


checks.report([
    ("two adapters on one wire", as_it_is),
    ("one that the environment leaves out", left_out),
    ("a filter that means nothing", filter_that_means_nothing),
    ("a GID that is not there", other_gid),
    ("a limit on locked memory", little_memory),
    ("a small MTU", small_packets),
    ("an IPv4 address is taken before a link-local one", better_address),
    ("a link that is down", link_down),
], parallel=False)
