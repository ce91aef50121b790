"""Trains a small net on scikit-learn's digits with DistributedDataParallel, or FSDP, by turns over several backends.

    train.py --ranks 2 --backend rondo,gloo          # starts its ranks itself
    torchrun --nproc-per-node 2 train.py --backend rondo,gloo

Every backend trains a net of its own from the same start, an epoch at a time in turn, so that all of them meet the same
machine. Rank 0 prints a line a backend: accuracy, a hash of the weights, the median time of a step. Fails if ranks end
with different weights, or backends with different accuracies; with two ranks also if backends differ in one bit.
"""

import argparse
import hashlib
import importlib
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--ranks", type=int, default=2, help="on this host, unless torchrun starts them")
parser.add_argument("--backend", default="rondo,gloo", help="names, separated by commas")
parser.add_argument("--epochs", type=int, default=16)
parser.add_argument("--batch", type=int, default=96, help="images of all ranks together")
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--fsdp", action="store_true", help="spread the weights over the ranks; needs PyTorch 2.6 or later")
options = parser.parse_args()


def shard(net, group):
    """Each layer is gathered for its passes; its gradients are scattered as sums."""
    try:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        sys.exit("--fsdp needs PyTorch 2.6 or later: leave it out, or name another Python in the variable PYTHON")

    mesh = DeviceMesh.from_group(group, "cpu")
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


class Learner:
    """A net in training over one backend."""

    def __init__(self, backend):
        self.backend = backend
        self.group = dist.new_group(backend=backend)
        torch.manual_seed(0)
        width = options.width
        self.net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 10))
        self.spread = shard(self.net, self.group) if options.fsdp else DistributedDataParallel(
            self.net, process_group=self.group)
        self.optimizer = torch.optim.SGD(self.spread.parameters(), lr=0.2, momentum=0.9)
        self.order = torch.Generator().manual_seed(1)
        self.seconds = []

    def epoch(self, images, labels):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        for batch in torch.randperm(len(images), generator=self.order).split(options.batch):
            begin = time.perf_counter()
            mine = batch[rank::ranks]
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.spread(images[mine]), labels[mine]).backward()
            self.optimizer.step()
            self.seconds.append(time.perf_counter() - begin)

    def digest(self):
        sha = hashlib.sha256()
        for weight in self.net.parameters():
            whole = weight.full_tensor() if options.fsdp else weight
            sha.update(whole.detach().numpy().tobytes())
        return sha.hexdigest()[:16]

    def accuracy(self, images, labels):
        with torch.no_grad():
            return (self.spread(images).argmax(1) == labels).double().mean().item()


def train(**place):
    torch.set_num_threads(1)
    backends = options.backend.split(",")
    if "rondo" in backends:
        importlib.import_module("rondo_torch")
    dist.init_process_group(backends[0], **place)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    learners = [Learner(backend) for backend in backends]
    for epoch in range(options.epochs):
        for learner in learners if epoch % 2 == 0 else reversed(learners):
            learner.epoch(images[:1440], labels[:1440])
    ranks, told = dist.get_world_size(), []
    for learner in learners:
        digests = [None] * ranks
        dist.all_gather_object(digests, learner.digest())
        if len(set(digests)) > 1:
            sys.exit(f"{learner.backend}: the ranks have different weights: {digests}")
        # The first epoch warms up. A step waits for the slowest rank, so one of them tells for all.
        step = statistics.median(learner.seconds[len(learner.seconds) // options.epochs:])
        told.append((learner.accuracy(images[1440:], labels[1440:]), digests[0], step))
    if dist.get_rank() == 0:
        for learner, (accuracy, digest, step) in zip(learners, told):
            print(f"{ranks} ranks, {learner.backend}: accuracy {accuracy:.4f}, weights {digest}, "
                  f"a step in {step * 1e6:.0f} us, {step / told[-1][2]:.2f} of {learners[-1].backend}'s")
        # More than two summands may be added up in several orders, and then the last bits differ.
        if max(a for a, _, _ in told) - min(a for a, _, _ in told) > (0 if ranks == 2 else 0.01):
            sys.exit("the accuracies differ")
        if ranks == 2 and len({digest for _, digest, _ in told}) > 1:
            sys.exit("the weights differ")
    dist.destroy_process_group()


def main():
    if "RANK" in os.environ:
        return train()
    with tempfile.TemporaryDirectory() as folder:
        place = {"init_method": f"file://{folder}/store", "world_size": options.ranks}
        ranks = [multiprocessing.get_context("fork").Process(target=train, kwargs={**place, "rank": rank})
                 for rank in range(options.ranks)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    return max(abs(process.exitcode) for process in ranks)


sys.exit(main())
