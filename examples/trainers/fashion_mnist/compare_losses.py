#!/usr/bin/env python3
"""Compares logs that fashion_mnist --loss-log wrote, step by step, with the first of them."""

import argparse
import math
import sys


def losses(path):
    with open(path) as log:
        return [float(line.split()[1]) for line in log]


def difference(a, b):
    """The greatest relative difference of a step, and where it is; infinite where no comparison makes sense."""
    if len(a) != len(b) or not a:
        return math.inf, min(len(a), len(b)) + 1

    def apart(x, y):
        return abs(x - y) / max(abs(x), abs(y), sys.float_info.min) if math.isfinite(x + y) else math.inf

    return max((apart(x, y), step) for step, (x, y) in enumerate(zip(a, b), 1))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("reference", help="a log, usually of one rank")
parser.add_argument("others", nargs="+", help="logs of other runs with the same options")
parser.add_argument("--tolerance", type=float, default=math.inf, help="fail if a step differs by more, relatively")
options = parser.parse_args()

reference = losses(options.reference)
worst = 0.0
for path in options.others:
    apart, step = difference(reference, losses(path))
    print(f"{path}: {len(reference)} steps, greatest relative difference {apart:.2g} at step {step}")
    worst = max(worst, apart)
sys.exit(not worst <= options.tolerance)
