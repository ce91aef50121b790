#!/usr/bin/env python3
"""Trains asynchronously as a user does: parameter_server.py RONDO PARAMETER_SERVER [--whole]

--whole: with all images, which takes minutes."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

launcher, trainer = sys.argv[1:3]
whole = "--whole" in sys.argv
images = pathlib.Path("/usr/share/datasets/fashion-mnist")
size = ["--epochs", "4"] if whole else ["--epochs", "1", "--limit", "6000"]
accuracy_loss = 1 if whole else 5  # points; short runs scatter


def command(ranks, *options, size=size):
    """With a grace that outlasts the job: a worker that is killed must not end the others."""
    return [launcher, "launch", "-n", str(ranks), "--grace", "100", "--", trainer, *size, *map(str, options)]


class run:
    def __init__(self, *options):
        self.said = subprocess.run(command(4, *options), capture_output=True, text=True, timeout=500)
        workers = re.findall(r"worker (\d): \d+ steps, ([\d.]+) steps/s, test accuracy ([\d.]+)", self.said.stdout)
        self.rate = {int(number): float(rate) for number, rate, _ in workers}
        self.accuracy = max((float(accuracy) for _, _, accuracy in workers), default=0)
        self.lead, self.delay = (max(map(int, re.findall(rf"{name} up to (\d+)", self.said.stdout)), default=-1)
                                 for name in ("lead", "delay"))


def others_go_on(bound, limit):
    """Three workers, the last of which takes 5 times as long: in step, and within a bound."""

    def case():
        slow = ["--step", 6, "--slow", 5]
        in_step, apart = run(*slow, "--lead", 0), run(*slow, f"--{bound}", limit)
        gain = min(apart.rate.get(w, 0) / in_step.rate.get(w, 1e9) for w in (0, 1))
        fine = (gain >= 3 and in_step.lead == 0 and 0 <= getattr(apart, bound) <= limit
                and apart.accuracy > in_step.accuracy - accuracy_loss)
        said = "".join(r.said.stdout + r.said.stderr for r in (in_step, apart))
        return "" if fine else f"{gain:.2f} times as fast\n{said}"

    return f"the others of a slow worker are three times as fast as in step, with a {bound} of {limit}", case


def survives_a_death():
    """Worker 1 of 3 is killed; the others take over what it would have done, on two servers."""
    some_seconds = ["--epochs", "8", "--limit", "6000", "--step", "30"]
    job = subprocess.Popen(command(5, "--servers", 2, "--lead", 3, "--lease", 5000, size=some_seconds),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    os.kill(checks.processes_of_ranks(job.pid)[3], signal.SIGKILL)
    said, complaints = job.communicate(timeout=500)
    finished = set(re.findall(r"worker (\d): \d+ steps", said))
    lost = re.findall(r"server (\d): worker 1 was lost", said)
    return "" if finished == {"0", "2"} and sorted(lost) == ["0", "1"] else said + complaints


if not images.is_dir():
    print("1..0 # SKIP needs the Debian package dataset-fashion-mnist")
    sys.exit()

checks.report([others_go_on("delay", 16), ("a killed worker does not stop the rest", survives_a_death)], parallel=False)
