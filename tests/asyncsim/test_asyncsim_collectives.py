"""Two processes of the asynchronous device compute together, and break as they are told to."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

pytestmark = pytest.mark.torch

RANK = """
import os, sys, time, torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
torch.accelerator.set_device_index(rank)
dist.init_process_group(rank=rank, world_size=2, device_id=torch.device("asyncsim", rank))
place = torch.device("asyncsim", rank)
ones = lambda value, n=4: torch.full((n,), float(value), device=place)
torch.asyncsim.plan_kernel("aten::mm", 0.3)
block = torch.ones(4, 4, device=place)
slow = torch.mm(block, block)[0]
total = slow * (rank + 1)
print('begun', flush=True)
dist.all_reduce(total)
found = {"all_reduce": total.tolist()}
parts = [ones(0) for _ in range(2)]
dist.all_gather(parts, ones(rank))
found["all_gather"] = [each.tolist()[0] for each in parts]
whole = ones(0, 8)
dist.all_gather_into_tensor(whole, ones(rank + 1))
found["all_gather_into_tensor"] = whole.tolist()
kept = ones(0)
dist.reduce_scatter_tensor(kept, ones(rank + 1, 8))
found["reduce_scatter_tensor"] = kept.tolist()[0]
sent = ones(rank)
dist.broadcast(sent, 1)
found["broadcast"] = sent.tolist()[0]
swapped = ones(0, 2)
dist.all_to_all_single(swapped, ones(rank, 2))
found["all_to_all_single"] = swapped.tolist()
if rank == 0:
    dist.send(ones(7), 1)
else:
    got = ones(0)
    dist.recv(got, 0)
    found["recv"] = got.tolist()[0]
torch.asyncsim.plan_kernel("c10d::allreduce", 0.5)
began = time.perf_counter()
work = dist.all_reduce(ones(1), async_op=True)
found["early"] = work.is_completed()
work.wait()
torch.asyncsim.synchronize()
found["took"] = time.perf_counter() - began >= 0.5 - 1e-4
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False).to(place))
net(ones(rank, 2).unsqueeze(0)).sum().backward()
found["gradient"] = net.module.weight.grad.tolist()
torch.asyncsim.set_fault("collective-wrong-sum")
wrong = ones(rank + 1)
dist.all_reduce(wrong)
found["wrong sum"] = wrong.tolist()[0]
torch.asyncsim.set_fault("collective-wrong-sum", False)
dist.barrier()
dist.destroy_process_group()
print(found)
"""


Ranks = "list[subprocess.Popen[str]]"


@pytest.fixture
def two_ranks(environment) -> Iterator[Callable[..., Ranks]]:
    """Return a function that starts both processes, which say when they have begun."""
    started: list[subprocess.Popen[str]] = []

    def start(**variables: str) -> list[subprocess.Popen[str]]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        for rank in range(2):
            given = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), **variables}
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen([sys.executable, "-c", RANK], env=environment(**given), **pipes))
        assert [each.stdout.readline() for each in started] == ["begun\n"] * 2
        return started

    yield start
    for each in started:
        each.kill()
        each.communicate()


def test_every_collective(two_ranks):
    """Every collective gives what it should in the order of streams, and twice the sum by a fault."""
    ended = [each.communicate(timeout=240) for each in two_ranks()]
    for rank, (output, errors) in enumerate(ended):
        found = ast.literal_eval(output) if output else {}
        expected = {
            "all_reduce": [12.0] * 4,
            "all_gather": [0.0, 1.0],
            "all_gather_into_tensor": [1.0] * 4 + [2.0] * 4,
            "reduce_scatter_tensor": 3.0,
            "broadcast": 1.0,
            "all_to_all_single": [0.0, 1.0],
            **({"recv": 7.0} if rank == 1 else {}),
            "early": False,
            "took": True,
            "gradient": [[0.5, 0.5]],
            "wrong sum": 6.0,
        }
        assert found == expected, errors


def test_a_collective_that_hangs(two_ranks):
    """Neither rank gets beyond its first collective."""
    started = two_ranks(TORCHGAUGE_ASYNCSIM_FAULT="collective-hangs")
    with pytest.raises(subprocess.TimeoutExpired):
        started[0].communicate(timeout=5)
    assert [each.poll() for each in started] == [None, None]
