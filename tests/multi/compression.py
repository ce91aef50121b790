#!/usr/bin/env python3
"""Trains with compressed gradients as a user does: compression.py RONDO FASHION_MNIST [--whole]

--whole: every compression, with all images, which takes minutes; prints the rows of docs/how-to/compress-gradients.md.
"""

import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

launcher, trainer = sys.argv[1:3]
whole = "--whole" in sys.argv
images = pathlib.Path("/usr/share/datasets/fashion-mnist")
size = ["--epochs", "5"] if whole else ["--epochs", "3", "--limit", "3000"]
allowed = 1 if whole else 4  # points of accuracy; short runs scatter


@functools.cache
def train(*options):
    """The accuracy at the end, if every epoch found identical replicas; how many times fewer bytes; the output."""
    done = subprocess.run([launcher, "launch", "-n", "3", "--", trainer, *size, *options],
                          capture_output=True, text=True, timeout=900)
    epochs = re.findall(r"accuracy ([\d.]+) %.*replicas identical", done.stdout)
    ratio = re.search(r"in ([\d.]+) times fewer bytes", done.stdout)
    good = done.returncode == 0 and len(epochs) == int(size[1])
    return float(epochs[-1]) if good else 0, float(ratio[1]) if ratio else 1, done.stdout + done.stderr


def learns_as_well(name, least_ratio, *options):
    """Compared with training that differs in nothing but the compression."""

    def case():
        plain = train(*options)[0]
        accuracy, ratio, said = train(*options, "--compress", name)
        if whole:
            print(f"# | `{' '.join(['--compress', name, *options])}` | {ratio} x | {accuracy} % | {plain} % |")
        if plain > 70 and accuracy >= plain - allowed and ratio >= least_ratio:
            return ""
        return f"accuracy {accuracy}, {plain} uncompressed; {ratio} times fewer bytes\n{said}"

    return f"{name}: at least {least_ratio} times fewer bytes, and the accuracy of uncompressed training", case


def refuses(options, sentence):
    said = train(*options)[2]
    return "" if sentence in said else said


if not images.is_dir():
    print("1..0 # SKIP needs the Debian package dataset-fashion-mnist")
    sys.exit()

gently = ("--momentum", "0", "--warm-up", "469")
checks.report(
    [
        learns_as_well("powersgd:4", 15),
        learns_as_well("int8", 3.8),
        *([learns_as_well("float16", 1.9), learns_as_well("bfloat16", 1.9), learns_as_well("float8", 3.8),
           learns_as_well("top_k:0.03", 11, *gently), learns_as_well("one_bit", 28, *gently)] if whole else []),
        ("an unknown compression is refused", lambda: refuses(["--compress", "gzip"], "no compression gzip")),
        ("doubles are not compressed", lambda: refuses(["--compress", "int8", "--type", "double"], "double")),
    ],
    parallel=False,
)
