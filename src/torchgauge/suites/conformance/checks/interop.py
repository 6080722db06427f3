"""Interoperation: handing memory to other libraries and processes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from torchgauge.suites.conformance.check_context import CheckContext, brief, check

GROUP = "interop"


@check("torch.utils.dlpack")
def dlpack(context: CheckContext) -> None:
    """A tensor goes through DLPack and shares its memory."""
    there = context.send(context.numbers(4))
    try:
        found = torch.from_dlpack(there)
    except (BufferError, NotImplementedError, RuntimeError, ValueError) as error:
        context.unsupported(f"DLPack does not support this device: {brief(error)}")
    found.add_(1)
    context.same(there, context.numbers(4) + 1)


@check("torch.sparse_coo_tensor")
def sparse(context: CheckContext) -> None:
    """A sparse tensor is made, multiplied and made dense."""
    places, values = torch.tensor([[0, 1, 2], [1, 0, 2]]), context.numbers(3)
    host = torch.sparse_coo_tensor(places, values, (3, 3))
    with context.unless_refused("the device has no sparse tensors"):
        there = torch.sparse_coo_tensor(
            context.send(places), context.send(values), (3, 3), device=context.device
        )
        found = there @ context.send(context.numbers(3, 2))
        dense = there.to_dense()
    context.same(found, host @ context.numbers(3, 2))
    context.same(dense, host.to_dense())


@check("numpy")
def numpy(context: CheckContext) -> None:
    """An array reaches the device; a tensor there gives an array over the host only."""
    try:
        import numpy as np
    except ImportError:
        context.unsupported("numpy is not installed")
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = torch.as_tensor(array, device=context.device)
    context.same(there + 1, torch.from_numpy(array + 1))
    context.expect((there.cpu().numpy() == array).all(), "the array copied back differs")
    if not context.on_host:
        context.raises((TypeError, RuntimeError), there.numpy, "numpy() of a tensor on the device")


@check("safetensors.torch")
def safetensors(context: CheckContext) -> None:
    """A file of safetensors loads straight to the device."""
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        context.unsupported("safetensors is not installed")
    with tempfile.TemporaryDirectory(prefix="torchgauge-safetensors-") as folder:
        path = str(Path(folder, "x.safetensors"))
        save_file({"x": context.send(context.numbers(4))}, path)
        try:
            found = load_file(path, device=str(context.device))["x"]
        except Exception as error:  # noqa: BLE001  its own exception types, one per version
            context.unsupported(f"safetensors cannot load to {context.device}: {brief(error)}")
    context.same(found, context.numbers(4))
