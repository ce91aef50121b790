#!/usr/bin/env python3
"""Every call of the rondo backend against values that another way of counting gives: backend.py"""

import copy
import datetime
import itertools
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks
import ranks
import rondo_torch  # makes the backend known
import torch
import torch.distributed as dist

floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
integers = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
complexes = (torch.complex64, torch.complex128)
every_type = (torch.bool, *integers, *floats, *complexes)
op = dist.ReduceOp


def values(rank, count, dtype, seed=0):
    """What a rank brings: small whole numbers, so that every sum and product is exact."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    whole = torch.randint(1 if dtype == torch.uint8 else -2, 3, (count,), generator=generator)
    if dtype.is_complex:
        return torch.complex(whole.double(), whole.flip(0).double()).to(dtype)
    return whole.to(dtype)


def folded(all_values, operation):
    """The result by wider types, one rank after the other."""
    dtype = all_values[0].dtype
    if dtype == torch.bool:
        result = all_values[0]
        for v in all_values[1:]:
            result = (result ^ v if operation == op.BXOR else result & v if operation in (op.PRODUCT, op.MIN, op.BAND)
                      else result | v)
        return result
    wide = [v.to(torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else torch.int64)
            for v in all_values]
    result = wide[0].clone()
    for v in wide[1:]:
        result = {op.SUM: torch.add, op.AVG: torch.add, op.PRODUCT: torch.mul, op.MIN: torch.minimum,
                  op.MAX: torch.maximum, op.BAND: torch.bitwise_and, op.BOR: torch.bitwise_or,
                  op.BXOR: torch.bitwise_xor}[operation](result, v)
    if operation == op.AVG:
        if dtype.is_complex:  # as two numbers: a quotient of complex ones may be rounded twice
            result = torch.view_as_complex(torch.view_as_real(result) / len(wide))
        else:
            result = torch.div(result, len(wide), rounding_mode=None if dtype.is_floating_point else "trunc")
    return result.to(dtype)


def operations(dtype):
    if dtype.is_complex:
        return (op.SUM, op.AVG)
    if dtype == torch.bool:
        return (op.SUM, op.PRODUCT, op.MIN, op.MAX, op.BAND, op.BOR, op.BXOR)
    ordinary = (op.SUM, op.PRODUCT, op.MIN, op.MAX, op.AVG)
    return ordinary if dtype.is_floating_point else (*ordinary, op.BAND, op.BOR, op.BXOR)


def same(found, expected, what=""):
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, not {expected.dtype}"
    assert torch.equal(found, expected), f"{what}: {found}, not {expected}"


def pg():
    """The backend itself, whose calls do not pass through checks of Python."""
    group = dist.distributed_c10d._get_default_group()
    return group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group


def reduced_types(n):
    def body(rank):
        for dtype, count in itertools.product(every_type, (1, 7, 1001)):
            brought = [values(r, count, dtype) for r in range(n)]
            for operation in operations(dtype):
                what = f"{dtype} {operation} {count}"
                expected = folded(brought, operation)
                options = dist.AllreduceOptions()
                options.reduceOp = operation
                mine = brought[rank].clone()
                pg().allreduce([mine], options).wait()
                same(mine, expected, f"allreduce {what}")
                options = dist.ReduceOptions()
                options.reduceOp, options.rootRank = operation, n - 1
                mine = brought[rank].clone()
                pg().reduce([mine], options).wait()
                same(mine, expected if rank == n - 1 else brought[rank], f"reduce {what}")
                options = dist.ReduceScatterOptions()
                options.reduceOp = operation
                blocks = [torch.cat([values(r, count, dtype, seed=q) for q in range(n)]) for r in range(n)]
                mine = torch.zeros(count, dtype=dtype)
                pg()._reduce_scatter_base(mine, blocks[rank], options).wait()
                same(mine, folded([values(r, count, dtype, seed=rank) for r in range(n)], operation),
                     f"reduce_scatter {what}")

    return body


def moved_types(n):
    def body(rank):
        for dtype, count in itertools.product(every_type, (1, 7, 1001)):
            mine, theirs = values(rank, count, dtype), [values(r, count, dtype) for r in range(n)]
            what = f"{dtype} {count}"
            for root in range(n):
                data = mine.clone()
                dist.broadcast(data, root)
                same(data, theirs[root], f"broadcast {what}")
                out = [torch.zeros_like(mine) for _ in range(n)] if rank == root else None
                dist.gather(mine, out, root)
                for r in range(n if rank == root else 0):
                    same(out[r], theirs[r], f"gather {what}")
                data = torch.zeros_like(mine)
                dist.scatter(data, theirs if rank == root else None, root)
                same(data, mine, f"scatter {what}")
            out = [torch.zeros_like(mine) for _ in range(n)]
            pg().allgather([out], [mine]).wait()
            for r in range(n):
                same(out[r], theirs[r], f"all_gather {what}")
            whole = torch.zeros(n * count, dtype=dtype)
            pg()._allgather_base(whole, mine).wait()
            same(whole, torch.cat(theirs), f"all_gather_into_tensor {what}")
            sent = [values(rank, count, dtype, seed=q) for q in range(n)]
            out = [torch.zeros_like(mine) for _ in range(n)]
            pg().alltoall(out, sent).wait()
            for r in range(n):
                same(out[r], values(r, count, dtype, seed=rank), f"all_to_all {what}")

    return body


def blocks_of_several_sizes(n):
    def body(rank):
        sizes = [3 * r + (r == 1) for r in range(n)]  # rank 0 has nothing
        out = [torch.zeros(size) for size in sizes]
        pg().allgather([out], [torch.full((sizes[rank],), float(rank))]).wait()
        for r in range(n):
            same(out[r], torch.full((sizes[r],), float(r)), "all_gather")
        mine = torch.zeros(sizes[rank])
        pg().reduce_scatter([mine], [[torch.full((size,), float(rank + q)) for q, size in enumerate(sizes)]],
                            dist.ReduceScatterOptions()).wait()
        same(mine, torch.full((sizes[rank],), float(sum(r + rank for r in range(n)))), "reduce_scatter")
        to, back = [rank + q for q in range(n)], [rank + q for q in range(n)]
        out = torch.zeros(sum(back), 2, dtype=torch.int64)
        rows = torch.cat([torch.full((count, 2), 10 * rank + q) for q, count in enumerate(to)])
        dist.all_to_all_single(out, rows, back, to)
        same(out, torch.cat([torch.full((count, 2), 10 * q + rank) for q, count in enumerate(back)]), "all_to_all")

    return body


def odd_layouts(rank):
    """Strides and views: what is around a view stays as it was."""
    n = dist.get_world_size()
    base = torch.arange(24.0).reshape(4, 6) + rank
    around = base.clone()
    view = base[1:3, ::2]
    expected = sum(view - rank + r for r in range(n))
    dist.all_reduce(view)
    same(view.contiguous(), expected.contiguous(), "a view with steps")
    around[1:3, ::2] = expected
    same(base, around, "around the view")
    turned = (torch.arange(6.0).reshape(2, 3) * (rank + 1)).t()
    dist.broadcast(turned, 1)
    same(turned.contiguous(), (torch.arange(6.0).reshape(2, 3) * 2).t().contiguous(), "transposed")
    last = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    out = torch.zeros(n, *last.shape)
    pg().allgather([list(out.unbind(0))], [last]).wait()
    same(out[rank], last.contiguous(), "channels last")
    scalar = torch.tensor(float(rank))
    dist.all_reduce(scalar, op.MAX)
    same(scalar, torch.tensor(float(n - 1)), "without dimensions")
    leaf = torch.full((2, 2), float(rank), requires_grad=True)
    dist.all_reduce(leaf.t())
    same(leaf.detach(), torch.full((2, 2), float(sum(range(n)))), "a leaf")
    nothing = torch.zeros(0)
    dist.all_reduce(nothing)
    whole = torch.zeros(n * 5)
    own = whole[rank * 5:rank * 5 + 5].fill_(rank)
    pg()._allgather_base(whole, own).wait()
    same(whole, torch.arange(float(n)).repeat_interleave(5), "in place")


def several_at_once(rank):
    n = dist.get_world_size()
    data = [torch.full((size,), float(rank)) for size in (1, 100_000, 7, 1_000_000, 3) * 8]
    handles = [dist.all_reduce(t, async_op=True) for t in data]
    for handle in reversed(handles):
        handle.wait()
        assert handle.is_completed()
    for t in data:
        same(t, torch.full_like(t, float(sum(range(n)))), "in flight")


def coalesced(rank):
    n = dist.get_world_size()
    data = [torch.full((size,), rank + size) for size in (3, 1, 20)]
    pg().allreduce_coalesced(data).wait()
    for t in data:
        same(t, torch.full_like(t, sum(r + len(t) for r in range(n))), "allreduce_coalesced")
    out = [[torch.zeros(2), torch.zeros(3)] for _ in range(n)]
    pg().allgather_coalesced(out, [torch.full((2,), float(rank)), torch.full((3,), 10.0 + rank)]).wait()
    for r in range(n):
        same(torch.cat(out[r]), torch.tensor([r, r, 10 + r, 10 + r, 10 + r], dtype=torch.float32), "allgather")
    if hasattr(pg(), "allgather_into_tensor_coalesced"):
        outs = [torch.zeros(2 * n), torch.zeros(3 * n)]
        ins = [torch.full((2,), float(rank)), torch.full((3,), 10.0 + rank)]
        pg().allgather_into_tensor_coalesced(outs, ins).wait()
        same(outs[1], torch.arange(10.0, 10 + n).repeat_interleave(3), "allgather_into_tensor_coalesced")


def futures(rank):
    n = dist.get_world_size()
    data = torch.ones(5)
    future = dist.all_reduce(data, async_op=True).get_future()
    then = future.then(lambda f: f.value()[0] / n)
    same(then.wait(), torch.ones(5), "then()")

    def launch_and_wait(f):
        inner = torch.full((2,), float(rank))
        dist.all_reduce(inner, async_op=True).wait()  # on the thread that would have to run it
        return inner

    nested = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(launch_and_wait)
    same(nested.wait(), torch.full((2,), float(sum(range(n)))), "a call within then()")
    gathered = [torch.zeros(1) for _ in range(n)]
    value = dist.all_gather(gathered, torch.tensor([float(rank)]), async_op=True).get_future().wait()
    same(torch.cat(value), torch.arange(float(n)), "all_gather")


def messages(rank):
    n = dist.get_world_size()
    big = 2_000_000
    sent = [dist.isend(torch.full((big,), float(10 * rank + q)), q) for q in range(n) if q != rank]
    received = {q: torch.zeros(big) for q in range(n) if q != rank}
    handles = [dist.irecv(t, q) for q, t in received.items()]
    for handle in handles + sent:
        handle.wait()
    for q, t in received.items():
        same(t, torch.full((big,), float(10 * q + rank)), "to and from everybody")
    right, left = (rank + 1) % n, (rank - 1) % n
    for tag in range(5):
        sent.append(dist.isend(torch.tensor([tag], dtype=torch.int32), right, tag=tag))
    for tag in reversed(range(5)):
        t = torch.zeros(1, dtype=torch.int32)
        dist.recv(t, left, tag=tag)
        same(t, torch.tensor([tag], dtype=torch.int32), "tags")
    if rank != 0:
        dist.send(torch.tensor([rank]), 0, tag=9)
    else:
        who = set()
        for _ in range(n - 1):
            t = torch.zeros(1, dtype=torch.int64)
            source = dist.recv(t, tag=9)
            assert source == t.item()
            who.add(source)
        assert who == set(range(1, n))
    if rank < 2:
        t = torch.zeros(4, 3)[:, 1]
        if rank == 0:
            dist.send(torch.arange(8.0)[::2], 1)
        else:
            dist.recv(t, 0)
            same(t.contiguous(), torch.tensor([0.0, 2, 4, 6]), "with steps")
    ops = [dist.P2POp(dist.isend, torch.full((big,), float(rank)), right),
           dist.P2POp(dist.irecv, received[left], left)]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    same(received[left], torch.full((big,), float(left)), "batch")


def groups_of_some(rank):
    n = dist.get_world_size()
    some = dist.new_group([n - 1, 0], backend="rondo")
    if rank in (0, n - 1):
        t = torch.tensor([rank + 1.0])
        dist.all_reduce(t, group=some)
        same(t, torch.tensor([n + 1.0]), "a group of two")
    alone = [dist.new_group([r], backend="rondo") for r in range(n)]
    t = torch.tensor([5.0])
    dist.all_reduce(t, op.AVG, group=alone[rank])
    same(t, torch.tensor([5.0]), "alone")
    found = [None] * n
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert [f["rank"] for f in found] == list(range(n))
    mixed = dist.new_group(backend="gloo")
    dist.all_reduce(t, group=mixed)
    dist.barrier()


def throws(pattern, call):
    try:
        call()
    except (RuntimeError, ValueError) as wrong:
        assert re.search(pattern, str(wrong)), f"said {wrong}, not {pattern}"
        return
    raise AssertionError(f"nothing said {pattern}")


def wrong_arguments(rank):
    """Refused at once, on one rank alone, and the group goes on."""
    n = dist.get_world_size()
    if rank == 1:
        throws("sparse", lambda: pg().allreduce([torch.eye(3).to_sparse()]))
        throws("copy the tensor instead", lambda: pg().send([torch.ones(1)], 1, 0))
        throws(f"root {n} among", lambda: pg().broadcast(torch.ones(1), n))
        options = dist.AllreduceOptions()
        options.reduceOp = op.BAND
        throws("bitwise", lambda: pg().allreduce([torch.ones(1)], options))
        options.reduceOp = op.AVG
        throws("a mean", lambda: pg().allreduce([torch.ones(1, dtype=torch.bool)], options))
        throws("output", lambda: pg()._allgather_base(torch.zeros(2), torch.zeros(2)))
        throws("one type", lambda: pg()._allgather_base(torch.zeros(2 * n, dtype=torch.int32), torch.zeros(2)))
        throws("rows", lambda: pg().alltoall_base(torch.zeros(n + 1), torch.zeros(n + 1), [], []))
        throws("1 tensor a call", lambda: pg().allreduce([torch.zeros(1), torch.zeros(1)]))
    t = torch.ones(3)
    dist.all_reduce(t)
    same(t, torch.full((3,), float(n)), "after all this")


def ranks_that_disagree(rank):
    """Every rank is told who called what, at once and later."""
    pattern = "float32 x 3.*float32 x 4|float32 x 4.*float32 x 3"
    throws(pattern, lambda: dist.all_reduce(torch.ones(3 if rank else 4)))
    throws(pattern, lambda: dist.barrier())


def rank_that_is_late(rank):
    if rank == 0:
        time.sleep(3)
    begin = time.monotonic()
    throws("barrier.*longer timeout", lambda: dist.barrier())
    assert time.monotonic() - begin < 10


def rank_that_dies(rank):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    throws("rank 1", lambda: dist.all_reduce(torch.ones(1000)))
    assert time.monotonic() - begin < 10


def rank_that_dies_owing_a_message(rank):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    throws("rank 1", lambda: dist.recv(torch.ones(1000), 1))


def factor(rank):
    n = dist.get_world_size()
    if not hasattr(dist, "_make_nccl_premul_sum"):
        return
    t = torch.ones(5)
    dist.all_reduce(t, dist._make_nccl_premul_sum(1.0 / n))
    torch.testing.assert_close(t, torch.ones(5))


def hooks(compression, max_norm, error):
    """Gradients of a model in several buckets, against those that one process has of all ranks' samples."""

    def body(rank):
        n = dist.get_world_size()
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(40, 50), torch.nn.Tanh(), torch.nn.Linear(50, 7))
        alone = copy.deepcopy(net)
        spread = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.004)
        hook = rondo_torch.Hook(compression, max_norm)
        spread.register_comm_hook(hook, rondo_torch.hook)
        for step in range(4):
            samples = torch.randn(n, 8, 40)
            for it in (net, alone):
                it.zero_grad()
            spread(samples[rank]).square().mean().backward()
            alone(samples).square().mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(alone.parameters(), max_norm)
            if max_norm < float("inf"):
                assert norm > max_norm and abs(hook.norm / norm - 1) < error + 1e-5, f"{hook.norm}, not {norm}"
            found, expected = (torch.cat([p.grad.flatten() for p in it.parameters()]) for it in (net, alone))
            apart = ((found - expected).norm() / expected.norm()).item()
            assert apart <= error + 1e-5, f"{apart} apart in step {step}"
            everywhere = [torch.zeros_like(found) for _ in range(n)]
            dist.all_gather(everywhere, found)
            for other in everywhere:
                same(other, found, "the same on all ranks")
        assert bool(compression) == (hook.ratio > 1.5), hook.ratio

    return body


def wrong_hooks(rank):
    gloo = dist.new_group(backend="gloo")
    throws("group of the backend rondo", lambda: rondo_torch.Hook(group=gloo))
    throws("no compression gzip", lambda: rondo_torch.Hook("gzip"))
    throws("above 0", lambda: rondo_torch.Hook(max_norm=0))
    throws("float32 only", lambda: rondo_torch.Hook().reduce(torch.zeros(3, dtype=torch.float64), 0, True))


def case(name, size, body, **how):
    return f"{name}, {size} ranks", lambda: ranks.run(size, body, **how)


checks.report([
    *(case("sums and their like of every type", n, reduced_types(n)) for n in (2, 3)),
    *(case("every type is moved", n, moved_types(n)) for n in (2, 3)),
    *(case("blocks of several sizes", n, blocks_of_several_sizes(n)) for n in (2, 3, 5)),
    *(case("tensors of any layout", n, odd_layouts) for n in (2, 3)),
    case("several calls in flight", 3, several_at_once),
    case("lists of tensors in one call", 3, coalesced),
    case("futures", 3, futures),
    *(case("messages", n, messages) for n in (2, 3, 5)),
    case("groups of some ranks", 4, groups_of_some),
    case("a sum with a factor", 3, factor),
    *(case(f"a hook: {what or 'no compression'}, norm {norm}", 3, hooks(what, norm, error))
      for what, norm, error in (("", float("inf"), 0), ("", 0.01, 0), ("bfloat16", 0.01, 0.01),
                                ("int8", float("inf"), 0.04))),
    case("wrong hooks", 2, wrong_hooks),
    case("wrong arguments", 3, wrong_arguments),
    case("ranks that disagree", 3, ranks_that_disagree),
    case("a rank that is late", 3, rank_that_is_late, timeout=1),
    case("a rank that dies", 3, rank_that_dies, ends={1: -9}),
    case("a rank that dies owing a message", 3, rank_that_dies_owing_a_message, ends={1: -9}),
], parallel=False)
