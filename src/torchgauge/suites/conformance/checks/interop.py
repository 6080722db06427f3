"""Interoperation: handing memory to other libraries and processes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from torchgauge.suites.conformance.bench import Bench, brief, check

GROUP = "interop"


@check("torch.utils.dlpack")
def dlpack(bench: Bench) -> None:
    """A tensor goes through DLPack and shares its memory."""
    there = bench.send(bench.numbers(4))
    try:
        found = torch.from_dlpack(there)
    except (BufferError, NotImplementedError, RuntimeError, ValueError) as error:
        bench.unsupported(f"DLPack has no such device: {brief(error)}")
    found.add_(1)
    bench.same(there, bench.numbers(4) + 1)


@check("torch.sparse_coo_tensor")
def sparse(bench: Bench) -> None:
    """A sparse tensor is made, multiplied and made dense."""
    places, values = torch.tensor([[0, 1, 2], [1, 0, 2]]), bench.numbers(3)
    host = torch.sparse_coo_tensor(places, values, (3, 3))
    with bench.unless_refused("the device has no sparse tensors"):
        there = torch.sparse_coo_tensor(bench.send(places), bench.send(values), (3, 3), device=bench.device)
        found = there @ bench.send(bench.numbers(3, 2))
        dense = there.to_dense()
    bench.same(found, host @ bench.numbers(3, 2))
    bench.same(dense, host.to_dense())


@check("numpy")
def numpy(bench: Bench) -> None:
    """An array reaches the device; a tensor there gives an array over the host only."""
    try:
        import numpy as np
    except ImportError:
        bench.unsupported("numpy is not installed")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = torch.as_tensor(array, device=bench.device)
    bench.same(there + 1, torch.from_numpy(array + 1))
    bench.expect((there.cpu().numpy() == array).all(), "the array that came back differs")
    if not bench.on_host:
        bench.raises((TypeError, RuntimeError), there.numpy, "numpy() of a tensor on the device")


@check("safetensors.torch")
def safetensors(bench: Bench) -> None:
    """A file of safetensors loads straight to the device."""
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        bench.unsupported("safetensors is not installed")
    with tempfile.TemporaryDirectory(prefix="torchgauge-safetensors-") as folder:
        path = str(Path(folder, "x.safetensors"))
        save_file({"x": bench.send(bench.numbers(4))}, path)
        try:
            found = load_file(path, device=str(bench.device))["x"]
        except Exception as error:  # noqa: BLE001  its own exception types, one per version
            bench.unsupported(f"safetensors loads nothing to {bench.device}: {brief(error)}")
    bench.same(found, bench.numbers(4))
