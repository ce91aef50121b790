#!/usr/bin/env python3
"""PyTorch's own tests of a backend, as TAP: distributed.py BACKEND[:NAME] [TEST …]

Runs those of torch.testing._internal.distributed.distributed_test that need no GPU, or only the named ones, with four
ranks. They skip a call where its backend is not one that they know to offer it, by name; so rondo:gloo and rondo:mpi
run the tests of what they keep for gloo or for MPI, with rondo under that name. What is still skipped is reported with
their words. Written for PyTorch 1.13.
"""

import dataclasses
import inspect
import logging
import os
import re
import sys
import tempfile
import types
import unittest

backend, _, name_to_bear = sys.argv[1].partition(":")
wanted = sys.argv[2:]
folder = tempfile.TemporaryDirectory()
os.environ.update(BACKEND=name_to_bear or backend, INIT_METHOD=f"file://{folder.name}/store", WORLD_SIZE="4",
                  MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="60", TEMP_DIR="")

# The package that holds assertExpectedInline is not in Debian, and these tests only inherit from it.
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)

# Python 3.11 refuses a default value in a data class of PyTorch 1.13 because it cannot be hashed.
plain_dataclass = dataclasses.dataclass


def dataclass(cls=None, **options):
    if cls is None:
        return lambda it: dataclass(it, **options)
    if cls.__name__ == "TensorProperties":
        options["unsafe_hash"] = True
    return plain_dataclass(cls, **options)


dataclasses.dataclass = dataclass

if backend == "rondo":
    import rondo_torch  # makes the backend known
import torch
from torch.testing._internal.common_distributed import DistTestCases

logging.disable(logging.WARNING)


def bear(name):
    """Makes groups that are asked for by this name groups of the backend."""
    from torch.distributed import distributed_c10d

    def renamed(call):
        def under_another_name(*args, **options):
            if options.get("backend") == name:
                options["backend"] = backend
            return call(*args, **options)
        return under_another_name

    torch.distributed.init_process_group = renamed(torch.distributed.init_process_group)
    torch.distributed.new_group = renamed(torch.distributed.new_group)
    distributed_c10d.get_backend = lambda group=None: name  # monitored_barrier() asks for it


if name_to_bear:
    bear(name_to_bear)
for feature in ("ddp", "subgroup", "plugin"):
    DistTestCases.backend_feature[feature].add(backend)
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

# What fails though the backend does what the manual says: name -> reason. docs/reference/torch.md has the list.
words = "expects the words of gloo's monitoredBarrier; rondo names the rank that is missing in its own"
known = {
    "test_monitored_barrier_failure_order": words,
    "test_monitored_barrier_gloo": words,
    "test_monitored_barrier_gloo_rank_0_timeout": words,
    "test_monitored_barrier_gloo_subgroup": words,
    "test_monitored_barrier_wait_all_ranks": words,
    "test_sparse_all_reduce_sum": "sparse tensors are refused",
} if backend == "rondo" else {}


class Distributed(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


def is_wanted(name):
    """Does it need no GPU, nor say so in its name or in what decorates it? Is it kept for the borne name?"""
    head = inspect.getsource(inspect.unwrap(getattr(Distributed, name))).split("def " + name)[0]
    if re.search("cuda|nccl", name) or "gpu" in head:
        return False
    return not name_to_bear or re.search(name_to_bear, name + head, re.I)


class Tap(unittest.TestResult):
    count = failed = 0

    def say(self, good, test, more=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {test._testMethodName}{more}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(True, test, f" # SKIP {reason}")

    def addError(self, test, error):
        super().addError(test, error)
        self.complain(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.complain(test, error)

    def complain(self, test, error):
        if reason := known.get(test._testMethodName):
            return self.say(True, test, f" # SKIP {reason}")
        self.failed += 1
        self.say(False, test)
        for line in self._exc_info_to_string(error, test).splitlines():
            print(f"# {line}")


names = wanted or [name for name in unittest.TestLoader().getTestCaseNames(Distributed) if is_wanted(name)]
print(f"1..{len(names)}", flush=True)
result = Tap()
Distributed.setUpClass()
for name in names:
    Distributed(name).run(result)
sys.exit(result.failed > 0)
