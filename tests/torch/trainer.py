#!/usr/bin/env python3
"""The trainer of the manual, in short: the same results over rondo and over gloo."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

trainer = checks.root / "examples/trainers/pytorch_ddp/train.py"


def case(ranks):
    command = [sys.executable, trainer, "--ranks", str(ranks), "--epochs", "3"]
    return f"{ranks} ranks", lambda: checks.run(command, timeout=120)


checks.report([case(2), case(4)], parallel=False)
