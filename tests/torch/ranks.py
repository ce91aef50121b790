"""Ranks of a process group as forked processes, for the tests of the backend."""

import datetime
import multiprocessing
import os
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

torch.set_num_threads(1)
fork = multiprocessing.get_context("fork")


def run(size, body, timeout=30, limit=90, ends=None):
    """'' if body(rank) returns on every rank of a group, each a process, else what they said.

    ends: rank -> exit code of those that end otherwise; -9 for one that kills itself.
    """
    ends = ends or {}
    with tempfile.TemporaryDirectory() as folder:

        def rank_main(rank):
            code = 1
            try:
                dist.init_process_group("rondo", init_method=f"file://{folder}/store", rank=rank, world_size=size,
                                        timeout=datetime.timedelta(seconds=timeout))
                body(rank)
                dist.destroy_process_group()
                code = 0
            except BaseException:
                with open(f"{folder}/{rank}", "w") as file:
                    traceback.print_exc(file=file)
            finally:
                os._exit(code)

        ranks = [fork.Process(target=rank_main, args=(rank,)) for rank in range(size)]
        for process in ranks:
            process.start()
        end = time.monotonic() + limit
        for process in ranks:
            process.join(max(0, end - time.monotonic()))
        said = ""
        for rank, process in enumerate(ranks):
            if process.is_alive():
                process.kill()
                process.join()
                said += f"rank {rank} did not end within {limit} s\n"
            elif process.exitcode != ends.get(rank, 0):
                said += f"rank {rank} ended with {process.exitcode}\n"
            if os.path.exists(f"{folder}/{rank}"):
                with open(f"{folder}/{rank}") as file:
                    said += file.read()
        return said
