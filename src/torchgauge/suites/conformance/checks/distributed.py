"""Distributed: collectives on one host, in processes of one or two."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import torch

from torchgauge.processes.python_command import OFF_THE_PATH
from torchgauge.suites.conformance.check_context import CHILD_S, CheckContext, check

GROUP = "distributed"
_RANK = """
import os, sys, torch
import torch.distributed as dist
kind, backend = sys.argv[1:3]
dist.init_process_group(backend, world_size=2, rank=int(os.environ["RANK"]))
x = torch.full((3,), float(dist.get_rank() + 1), device=kind)
if sys.argv[3] == "staged":
    host = x.to(torch.empty(0).device)
    dist.all_reduce(host)
    x.copy_(host)
else:
    dist.all_reduce(x)
    parts = [torch.zeros_like(x) for _ in range(2)]
    dist.all_gather(parts, torch.full_like(x, float(dist.get_rank())))
    assert parts[1].tolist() == [1.0] * 3, parts
    net = torch.nn.Linear(2, 1, bias=False).to(kind)
    with torch.no_grad():
        net.weight.fill_(1.0)
    wrapped = torch.nn.parallel.DistributedDataParallel(net)
    wrapped(torch.full((1, 2), float(dist.get_rank()), device=kind)).sum().backward()
    assert net.weight.grad.tolist() == [[0.5, 0.5]], net.weight.grad
assert x.tolist() == [3.0] * 3, x
dist.destroy_process_group()
print("done")
"""


def _two_processes(context: CheckContext, backend: str, how: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", OFF_THE_PATH + _RANK, context.type, backend, how],
            env={**variables, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for number, rank in enumerate(ranks):
            said, problem = rank.communicate(timeout=CHILD_S)
            last = (problem.strip().splitlines() or ["no output on stderr"])[-1]
            context.expect(rank.returncode == 0 and "done" in said, f"process {number} of 2: {last}")
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def _host_backend(context: CheckContext) -> str:
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_gloo_available():
        context.unsupported("this torch is built without gloo")
    return "gloo"


@check("torch.distributed.get_default_backend_for_device", tier="smoke")
def default_backend(context: CheckContext) -> None:
    """PyTorch knows which backend serves the device's collectives."""
    import torch.distributed as dist

    ask = getattr(dist, "get_default_backend_for_device", None)
    if ask is None:
        context.unsupported(f"torch {torch.__version__} has no get_default_backend_for_device")
    try:
        found = ask(context.device)
    except ValueError as error:
        context.unsupported(f"no collectives backend is registered for the device: {error}")
    context.facts["backend"] = str(found)


@check("torch.distributed.all_reduce, all_gather, DistributedDataParallel", tier="full")
def collectives(context: CheckContext) -> None:
    """Two processes on this host sum, gather and average gradients over the device's own backend."""
    backend = context.session.distributed_backend
    if not backend:
        context.unsupported(f"no collectives backend is known for {context.type}")
    count = 2 if context.on_host else int(context.need(context.module, "device_count")())
    if count < 2:
        context.unsupported(f"two processes need two devices: there is {count}")
    _two_processes(context, backend, "device")


@check("torch.distributed over the host", tier="full")
def staged_through_host(context: CheckContext) -> None:
    """Two processes sum tensors of the device that are fetched to the host and sent back."""
    _two_processes(context, _host_backend(context), "staged")


@check("torch.distributed.device_mesh")
def device_mesh(context: CheckContext) -> None:
    """A mesh of one device is made and says its shape."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh

    if dist.is_initialized():
        context.unsupported("a process group is already initialized")
    store = dist.HashStore()
    dist.init_process_group(_host_backend(context), store=store, rank=0, world_size=1)
    try:
        mesh = DeviceMesh(context.type, [0])
        context.expect(mesh.size() == 1 and mesh.device_type == context.type, f"the mesh is {mesh}")
    finally:
        dist.destroy_process_group()
