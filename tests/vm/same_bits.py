#!/usr/bin/env python3
"""One program over every transport gives the same bits, where sums are ordered: same_bits.py PROGRAM"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks


def said(ranks, *arguments):
    """What rank 0 prints, and what went wrong with any rank."""
    command, jobs = [sys.argv[1], *arguments], []
    for rank in range(1 if arguments[0] == "in_process" else ranks):
        who = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29600",
               "RONDO_TOKEN": "of a test"}
        if arguments[0] == "multi":
            who["RONDO_HOSTID"] = str(rank // 2)
        jobs.append(subprocess.Popen(command, env={**os.environ, **who}, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True))
    texts = [job.communicate(timeout=100)[0] for job in jobs]
    wrong = "".join(f"exit {job.returncode}: {text}\n" for job, text in zip(jobs, texts) if job.returncode)
    return texts[0], wrong


def case(ranks, *arguments):
    (expected, broken), (text, wrong) = said(ranks, "in_process", str(ranks)), said(ranks, *arguments)
    if broken or wrong:
        return broken + wrong
    return "" if len(expected.split()) == 3 and text == expected else f"{text} instead of {expected}"


checks.report([(" ".join(filter(None, (name, how))) + f" gives the bits of in_process, {ranks} ranks",
                lambda ranks=ranks, arguments=(name, how): case(ranks, *arguments))
               for ranks in (2, 3, 4) for name in ("shm", "tcp", "ucx", "verbs", "multi") for how in ("", "any")
               if ranks == 3 or not how], parallel=False)
