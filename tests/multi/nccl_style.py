#!/usr/bin/env python3
"""The trainer that knows only NCCL's calls loses the same on any number of ranks: nccl_style.py RONDO NCCL_STYLE"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

launcher, trainer = sys.argv[1:3]


def losses(ranks, stage):
    """The loss of each step; the complaint if it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([launcher, "launch", "-n", str(ranks), "--no-prefix", "--", trainer, f"{folder}/id", "40",
                               str(stage)], capture_output=True, text=True, timeout=100)
    found = [float(loss) for loss in re.findall(r"^\d+ (\S+)$", done.stdout, re.M)]
    if done.returncode != 0 or len(found) != 40:
        raise RuntimeError(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return found


def case(ranks, stage):
    def run():
        alone, together = losses(1, 0), losses(ranks, stage)
        if not alone[-1] < alone[0] / 2:
            return f"nothing is learnt: {alone[0]} to {alone[-1]}"
        return "".join(f"step {step}: {a} and {b}\n" for step, (a, b) in enumerate(zip(alone, together), 1)
                       if not math.isclose(a, b, rel_tol=1e-10))

    return f"{ranks} ranks lose what one does, stage {stage}", run


checks.report([case(1, 1), case(2, 0), case(2, 1), case(3, 1), case(4, 0), case(4, 1)], parallel=False)
