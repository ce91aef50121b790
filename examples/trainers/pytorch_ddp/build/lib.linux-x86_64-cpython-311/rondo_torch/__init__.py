"""rondo as a backend of torch.distributed, which importing this makes known, and a communication hook for it.

    import rondo_torch
    dist.init_process_group("rondo")
    model = DistributedDataParallel(model)
    model.register_comm_hook(rondo_torch.Hook(compression="int8", max_norm=1.0), rondo_torch.hook)
"""

import torch
import torch.distributed as dist

from . import _backend


class Hook(_backend.Hook):
    """What hook() does with gradients of float32 besides averaging them, in one pass.

    compression: float16, bfloat16, int8, float8, one_bit, top_k:RATIO or powersgd:RANK, with error feedback
    max_norm: of the gradient of the whole model; the attribute norm says what it was in the last backward pass
    """

    def __init__(self, compression="", max_norm=float("inf"), group=None):
        group = group or dist.distributed_c10d._get_default_group()
        self.backend = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
        super().__init__(self.backend, compression, max_norm)


def hook(state, bucket):
    """For DistributedDataParallel.register_comm_hook(Hook(…), hook)."""
    work = state.reduce(bucket.buffer(), bucket.index(), bucket.is_last())
    return work.get_future().then(lambda future: future.value()[0])
