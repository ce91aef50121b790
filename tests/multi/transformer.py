#!/usr/bin/env python3
"""Trains a transformer in stages as a user does, and compares: transformer.py RONDO TRANSFORMER"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

launcher, trainer = sys.argv[1:3]
compare = checks.root / "examples/trainers/fashion_mnist/compare_losses.py"


def command(ranks, *options):
    return [launcher, "launch", "-n", str(ranks), "--", trainer, "--steps", "20", "--blocks", "4", *map(str, options)]


def same_curve(ranks, *options):
    """The losses of some ranks are those of one with the same global batch."""

    def case():
        with tempfile.TemporaryDirectory() as folder:
            logs = [f"{folder}/{n}.log" for n in (1, ranks)]
            complaint = (checks.run(command(1, "--loss-log", logs[0]))
                         or checks.run(command(ranks, *options, "--loss-log", logs[1])))
            return complaint or checks.run([sys.executable, compare, *logs, "--tolerance", "1e-3"])

    return f"{ranks} ranks lose what one does: {' '.join(map(str, options))}", case


def refuses(ranks, options, sentence):
    def case():
        done = subprocess.run(command(ranks, *options), capture_output=True, text=True)
        return "" if done.returncode == 1 and sentence in done.stderr else done.stdout + done.stderr

    return f"{' '.join(map(str, options))} on {ranks} ranks is refused", case


checks.report(
    [
        same_curve(4, "--stages", 4, "--transport", "tcp"),
        same_curve(4, "--stages", 2, "--microbatches", 2),
        refuses(3, ["--stages", 2], "start a multiple"),
        refuses(2, ["--stages", 2, "--microbatches", 3], "must be a multiple of 3"),
        refuses(2, ["--stages", 2, "--sharded"], "leave out --stages"),
    ],
    parallel=False,
)
