#!/usr/bin/env python3
"""Ranks on several hosts, which are network namespaces joined by a switch: net.py RANK [--speed [TRANSFORMER]]

--speed compares a hierarchical all_reduce over multi with a ring over TCP behind links of 1 Gbit/s instead; with the
transformer, what a step of that waits for with and without overlap, which an idle machine can tell."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

program, *trainer = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:] if path != "--speed")
port = 29500


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


class host:
    """A network namespace without a name: it ends with the process that holds it, and that with this script, however
    it ends."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo && exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = self.holder.stdout.readline()
        if said != b"\n":
            self.close()
            raise RuntimeError(said.decode().strip() or "unshare --net failed")
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--", *words]

    def run(self, *words):
        return output_of(*self.command(*words))

    def link_down(self, interface="eth0"):
        self.run("ip", "link", "set", interface, "down")

    def sent(self, interface):
        return int(re.search(r"TX:.*\n\s*(\d+)", self.run("ip", "-s", "link", "show", interface)).group(1))

    def dropped(self):
        return sum(map(int, re.findall(r"dropped (\d+)", self.run("tc", "-s", "qdisc", "show", "dev", "eth0"))))

    def close(self):
        self.holder.stdin.close()
        self.holder.wait(10)


class network:
    """Hosts with an interface eth0 on one switch; host i has the addresses 10.77.0.i+1 and fd77::i+1."""

    def __init__(self, hosts, families=(4, 6)):
        self.stack = contextlib.ExitStack()
        try:
            self.switch = self.add_host()
            self.switch.run("ip", "link", "add", "switch", "type", "bridge")
            self.switch.run("ip", "link", "set", "switch", "up")
            self.hosts = [self.add_host() for _ in range(hosts)]
            self.address = "10.77.0.1" if 4 in families else "fd77::1"
            self.connect("eth0", "p", "77", families)
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def add_host(self):
        h = host()
        self.stack.callback(h.close)
        return h

    def connect(self, interface, prefix, subnet, families=(4,), switched=True):
        """Gives every host one more interface, on the switch or with nobody at its other end."""
        for i, h in enumerate(self.hosts):
            far = self.switch if switched else h
            self.switch.run("ip", "link", "add", interface, "netns", str(h.holder.pid), "type", "veth", "peer", "name",
                            f"{prefix}{i}", "netns", str(far.holder.pid))
            if switched:
                far.run("ip", "link", "set", f"{prefix}{i}", "master", "switch")
            far.run("ip", "link", "set", f"{prefix}{i}", "up")
            h.run("ip", "link", "set", interface, "up")
            if 4 in families:
                h.run("ip", "addr", "add", f"10.{subnet}.0.{i + 1}/24", "dev", interface)
            if 6 in families:
                h.run("ip", "addr", "add", f"fd{subnet}::{i + 1}/64", "dev", interface, "nodad")

    def shape(self, *discipline):
        for h in self.hosts:
            h.run("tc", "qdisc", "replace", "dev", "eth0", "root", *discipline)


class job:
    """Ranks on hosts: layout[i] of them, one after the other, on host i."""

    def __init__(self, net, layout, *arguments, program=program, **environment):
        self.size = sum(layout)
        self.ranks = []
        for h, count in zip(net.hosts, layout):
            for local in range(count):
                variables = {"RONDO_RANK": len(self.ranks), "RONDO_WORLD_SIZE": self.size, "RONDO_LOCAL_RANK": local,
                             "RONDO_LOCAL_WORLD_SIZE": count, "RONDO_ADDR": net.address, "RONDO_PORT": port,
                             "RONDO_TOKEN": "secret", **environment}
                self.ranks.append(subprocess.Popen(
                    h.command(program, *arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env={**os.environ, **{name: str(value) for name, value in variables.items()}}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for r in self.ranks:
            r.kill()
            r.communicate()

    def finish(self, limit):
        """What each rank has printed; None for one that did not end in time."""
        until = time.monotonic() + limit
        said = []
        for r in self.ranks:
            try:
                said.append(r.communicate(timeout=max(0.1, until - time.monotonic()))[0])
            except subprocess.TimeoutExpired:
                said.append(None)
        return said


def run(net, layout, *arguments, limit=60, **environment):
    with job(net, layout, *arguments, **environment) as ranks:
        return ranks.finish(limit)


def lacks(said, *patterns):
    return "".join(f"rank {r}: {pattern!r} is missing in: {text}\n" for r, text in enumerate(said)
                   for pattern in patterns if not re.search(pattern, text or "(it did not end)", re.M))


def right_on(layout, **environment):
    """All collectives over multi are right, and each pair is connected as its hosts say."""
    with network(len(layout)) as net:
        said = run(net, layout, "multi", "check", **environment)
    complaints = lacks(said, "^right$", *(["^chosen hierarchical$"] if len(layout) == 2 else []))
    first = 0
    for count in layout:
        for r in range(first, first + count):
            if count > 1:
                complaints += lacks([said[r]], r"with ranks? [\d, -]+ by shm$")
            complaints += lacks([said[r]], r"with ranks? [\d, -]+ by tcp \(shm does not reach so far\)$")
        first += count
    return complaints


def over_ipv6_only():
    with network(2, families=(6,)) as net:
        return lacks(run(net, (2, 1), "multi", "check"), "^right$")


def over_the_chosen_interface():
    with network(2) as net:
        net.connect("eth1", "q", "78")
        before = [h.sent("eth0") for h in net.hosts]
        said = run(net, (1, 1), "tcp", "check", RONDO_SOCKET_IFNAME="eth1")
        over_eth0 = max(h.sent("eth0") - b for h, b in zip(net.hosts, before))
        over_eth1 = min(h.sent("eth1") for h in net.hosts)
    # Ranks find each other over eth0, which takes some KiB; the collectives move MiB.
    return lacks(said, "^right$") + (f"{over_eth0} bytes over eth0, {over_eth1} over eth1\n"
                                     if over_eth0 > 300_000 or over_eth1 < 5_000_000 else "")


def past_an_unreachable_address():
    with network(2) as net:
        net.connect("aaa0", "z", "10", switched=False)  # seems to be one subnet, comes first, and leads nowhere
        start = time.monotonic()
        said = run(net, (2, 1), "multi", "check")
        took = time.monotonic() - start
    return lacks(said, "^right$") + (f"took {took:.0f} s\n" if took > 30 else "")


def nowhere_to_go():
    """Each rank knows within its deadline that it cannot reach the others, and says by which addresses."""
    with network(2) as net:
        net.connect("aaa0", "z", "10", switched=False)
        said = run(net, (1, 1), "tcp", "check", limit=55, RONDO_SOCKET_IFNAME="aaa0")
    return lacks(said, r"^error \d rondo: rank 1 cannot reach rank 0 by TCP: tried 10\.10\.0\.1:\d+ \(")


def link_goes_down():
    with network(2) as net, job(net, (2, 2), "multi", "until-error", "4000") as ranks:
        for r in ranks.ranks:
            line = ""
            while line != "running\n":
                line = r.stdout.readline()
                if not line:
                    return "a rank ended before the link went down\n"
        start = time.monotonic()
        net.hosts[1].link_down()
        said = ranks.finish(20)
        took = time.monotonic() - start
    # Each side waits for the other one; that of rank 0 has the coordinator.
    return (lacks(said[:2], r"^error [23] rondo: ") + lacks(said[2:], r"^error [01] rondo: ")
            + (f"took {took:.0f} s\n" if took > 12 else ""))


def packets_are_lost():
    with network(2) as net:
        try:
            net.shape("netem", "loss", "1%")
        except RuntimeError:  # this kernel has no netem: a short queue in front of a slow link drops them as well
            net.shape("tbf", "rate", "400mbit", "burst", "16kb", "limit", "64kb")
        said = run(net, (2, 1), "multi", "check")
        dropped = [h.dropped() for h in net.hosts]
    return lacks(said, "^right$") + ("no packet was dropped\n" if not any(dropped) else "")


@contextlib.contextmanager
def before_all_other_work():
    """Ranks that are started inside go first, so that a busy machine will do for measurements."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def overlap_hides_communication():
    """Two ranks of the transformer with 1 Gbit/s between them. Behind the backward pass the time that a step waits for
    communication falls by 40 % at least, and the parts of a report add up to what the step took. Not before all other
    work: among threads of real time the one that communicates waits until the one that computes has had its slice."""
    step = re.compile(r"step \d+ .*?([\d.]+) ms = compute ([\d.]+) \+ exposed ([\d.]+) \+ update ([\d.]+)")
    shape = "--width 256 --heads 4 --blocks 4 --batch 8 --steps 9 --every 1 --transport tcp"
    buckets = f"--first-bucket {1 << 20} --bucket {2 << 20}"
    exposed, complaints = {}, ""
    with network(2) as net:
        net.shape("tbf", "rate", "1gbit", "burst", "256kb", "latency", "400ms")
        for how in ("--no-overlap", "--overlap"):
            said = run(net, (1, 1), *f"{shape} {buckets} {how}".split(), limit=140, program=trainer[0])
            steps = [tuple(map(float, found)) for found in step.findall(said[0] or "")][1:]
            complaints += lacks(said[:1], "^replicas identical$")
            if len(steps) != 8:
                return complaints + f"{len(steps)} steps: {said}\n"
            for wall, *parts in steps:
                if not 0.95 * wall <= sum(parts) <= 1.05 * wall:
                    complaints += f"{' + '.join(map(str, parts))} is not {wall} ms\n"
            exposed[how] = statistics.median(parts[2] for parts in steps)
            compute = statistics.median(parts[1] for parts in steps)
            print(f"# {how}: {compute:.0f} ms of computation, {exposed[how]:.1f} ms of exposed communication")
    if exposed["--overlap"] > 0.6 * exposed["--no-overlap"]:
        complaints += "overlap hides too little\n"
    return complaints


def speed():
    """Median times of an all_reduce of 25 MiB with 1 Gbit/s between the hosts: hierarchical, which is what the library
    chooses, has to be faster than a ring over TCP, and half as fast again on 2 x 4 ranks."""
    fast_enough = True
    for layout, least in (((2, 2), 1), ((3, 1), 1), ((1, 4), 1), ((4, 4), 1.5)):
        with network(2) as net, before_all_other_work():
            net.shape("tbf", "rate", "1gbit", "burst", "256kb", "latency", "400ms")
            ms = []
            for transport, how in (("tcp", "ring"), ("multi", "ring"), ("multi", "automatic")):
                said = run(net, layout, transport, "time", how, str(25 << 20), limit=120)[0]
                found = re.match(r"(\w+) ([\d.]+) ms$", said or "(it did not end)")
                if not found:
                    print(said)
                    return False
                ms.append(float(found[2]))
        print(f"{' + '.join(map(str, layout))} ranks: ring over tcp {ms[0]:.0f} ms, over multi {ms[1]:.0f} ms; "
              f"automatic over multi is {found[1]}: {ms[2]:.0f} ms, {ms[0] / ms[2]:.2f} x as fast as over tcp",
              flush=True)
        fast_enough &= found[1] == "hierarchical" and ms[0] / ms[2] >= least
    return fast_enough


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for tool in ("ip", "tc", "unshare", "nsenter"):
        if not shutil.which(tool):
            skip(f"the hosts of this test are network namespaces, and {tool} is not installed")
    try:
        with network(1):
            pass
    except RuntimeError as problem:
        skip(f"the hosts of this test are network namespaces, and making them failed ({problem})")
    if "--speed" in sys.argv:
        if trainer:
            checks.report([("overlap hides communication", overlap_hides_communication)])
        sys.exit(not speed())
    checks.report([
        ("2 + 2 ranks on two hosts", lambda: right_on((2, 2))),
        ("3 + 1 ranks", lambda: right_on((3, 1))),
        ("1 + 4 ranks", lambda: right_on((1, 4))),
        ("2 + 1 + 1 + 2 ranks on four hosts", lambda: right_on((2, 1, 1, 2))),
        ("IPv6 is enough", over_ipv6_only),
        ("an interface can be chosen", over_the_chosen_interface),
        ("an unreachable address among good ones", past_an_unreachable_address),
        ("no address is reachable", nowhere_to_go),
        ("a link that goes down is an error that names a rank", link_goes_down),
        ("packets are dropped", packets_are_lost),
    ], parallel=False)


main()
