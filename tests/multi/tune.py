#!/usr/bin/env python3
"""rondo tune writes a policy that rondo compare uses: tune.py RONDO"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks

command = str(pathlib.Path(sys.argv[1]).resolve())
folder = tempfile.TemporaryDirectory()
policy = pathlib.Path(folder.name) / "test.policy"


def rondo(*arguments, status=0, **environment):
    """What the command prints on both streams; complains about another exit status."""
    done = subprocess.run([command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          cwd=folder.name, env={**os.environ, **environment}, timeout=120)
    if done.returncode != status:
        raise AssertionError(f"exit {done.returncode} instead of {status}: {done.stdout}")
    return done.stdout


def lacks(text, *patterns):
    return "".join(f"{pattern} is missing in: {text}\n" for pattern in patterns if not re.search(pattern, text))


def tunes():
    said = rondo("tune", "--collective", "reduce,all_gather", "--transport", "in_process", "--ranks", "2", "-e", "4K",
                 "--minutes", "0.05", "-o", str(policy))
    return lacks(said, "8 lines in ", "built-in choice") + lacks(
        policy.read_text(), r"# machine: \S", r"# date: 20\d\d-", "# command: rondo tune --minutes", "# round trip",
        r"\nreduce in_process 2 8 22 \w+ [\d.]+ \w+ [\d.]+\n", r"\nall_gather in_process 2 4096 \* \w+ ")


def is_used():
    said = rondo("compare", "--collective", "reduce", "--transport", "in_process", "--ranks", "2", "-e", "512",
                 "--model", "none", "--minutes", "0.05", RONDO_POLICY=str(policy))
    return lacks(said, rf"automatic: the policy {policy} \(RONDO_POLICY\)", r"Regret of the choice by the policy .* "
                 r"over 3 sizes x ranks x transports: [\d.]+ % geometric mean, \d+ % at worst \(in_process, 2 ranks")


def is_explained():
    return lacks(rondo("doctor", RONDO_POLICY=str(policy)), "Which algorithm, by the policy", "by the model: ")


def is_refused():
    broken = pathlib.Path(folder.name) / "broken.policy"
    broken.write_text("reduce in_process two 8 * tree 1 ring 2\n")
    said = rondo("perf", "--transport", "in_process", "-e", "8", status=1, RONDO_POLICY=str(broken))
    return lacks(said, f"line 1 of {broken} has 'two' as word 3")


def makes_sense():
    return lacks(rondo("tune", "--collective", "barrier", status=2), "one algorithm only for barrier") + lacks(
        rondo("tune", "--ranks", "1", status=2), "One rank has nothing to choose")


checks.report([
    ("tune writes what it measured, and where", tunes),
    ("compare uses the policy of the environment and prints its regret", is_used),
    ("doctor names it", is_explained),
    ("a policy that is wrong is refused by line", is_refused),
    ("what cannot be tuned is refused", makes_sense),
], parallel=False)
