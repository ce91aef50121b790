#!/usr/bin/env python3
"""Trains on real images as a user does, and compares: fashion_mnist.py RONDO FASHION_MNIST"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

launcher, trainer = sys.argv[1:3]
compare = checks.root / "examples/trainers/fashion_mnist/compare_losses.py"
images = pathlib.Path("/usr/share/datasets/fashion-mnist")


def command(ranks, *options):
    return [launcher, "launch", "-n", str(ranks), "--", trainer, *map(str, options)]


def same_curve(ranks, tolerance, *options):
    """The losses of some ranks are those of one with the same global batch, and their replicas stay identical."""

    def case():
        with tempfile.TemporaryDirectory() as folder:
            logs = [f"{folder}/{n}.log" for n in (1, ranks)]
            for n, log in zip((1, ranks), logs):
                complaint = checks.run(command(n, *options, "--epochs", 2, "--loss-log", log))
                if complaint:
                    return complaint
            return checks.run([sys.executable, compare, *logs, "--tolerance", str(tolerance)])

    return f"{ranks} ranks lose what one does: {' '.join(map(str, options))}", case


def learns():
    """Chance is 10 %; every epoch finds the replicas identical."""
    done = subprocess.run(command(2, "--epochs", 3, "--limit", 3000), capture_output=True, text=True)
    accuracies = [float(found) for found in re.findall(r"accuracy ([\d.]+) %.*replicas identical", done.stdout)]
    if done.returncode == 0 and len(accuracies) == 3 and accuracies[-1] > 70:
        return ""
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def names_the_problem():
    done = subprocess.run(command(2, "--data", "/nowhere"), capture_output=True, text=True)
    return "" if done.returncode == 1 and "install the Debian package" in done.stderr else done.stdout + done.stderr


def survives_a_death(transport, victim):
    """The other three say who died and end within 2 s, and no file of theirs is left."""

    def case():
        shared = set(os.listdir("/dev/shm"))
        with tempfile.TemporaryDirectory() as folder:
            job = subprocess.Popen(
                command(4, "--transport", transport, "--epochs", 1000, "--limit", 2000),
                env=os.environ | {"TMPDIR": folder},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            job.stdout.readline()  # an epoch is over: all are in the midst of training
            os.kill(checks.processes_of_ranks(job.pid)[victim], signal.SIGKILL)
            start = time.monotonic()
            said = job.communicate(timeout=60)[1]
            took = time.monotonic() - start
            left = os.listdir(folder) + sorted(set(os.listdir("/dev/shm")) - shared)
        blamed = set(re.findall(rf"^\[(\d)\] .*rank {victim} .*died", said, re.M))
        expected = {str(rank) for rank in range(4) if rank != victim}
        if job.returncode != 0 and blamed == expected and took < 2 and not left:
            return ""
        return f"exit {job.returncode} after {took:.1f} s, left {left}\n{said}"

    return f"rank {victim} of 4 is killed over {transport}", case


if not images.is_dir():
    print("1..0 # SKIP needs the Debian package dataset-fashion-mnist")
    sys.exit()

checks.report(
    [
        same_curve(2, 1e-12, "--type", "double", "--limit", 1000),
        same_curve(3, 1e-12, "--type", "double", "--limit", 1000),
        same_curve(4, 1e-12, "--type", "double", "--limit", 1000),
        same_curve(2, 1e-12, "--type", "double", "--limit", 1000, "--transport", "tcp"),
        same_curve(3, 1e-12, "--type", "double", "--limit", 500, "--model", "conv"),
        same_curve(4, 1e-12, "--type", "double", "--limit", 50, "--batch", 3),
        same_curve(2, 1e-3, "--limit", 1000),
        same_curve(4, 1e-3, "--limit", 500, "--model", "conv"),
        ("a net learns on 2 ranks", learns),
        ("a directory without images is named", names_the_problem),
        survives_a_death("shm", 2),
        survives_a_death("tcp", 0),
    ],
    parallel=False,
)
