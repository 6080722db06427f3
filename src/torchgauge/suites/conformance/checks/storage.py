"""Storage: the bytes under tensors."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "storage"


@check("torch.Tensor.untyped_storage", tier="smoke")
def of_tensor(context: CheckContext) -> None:
    """A tensor's storage is on the device, of its size, and shared by its views."""
    there = context.send(context.numbers(6))
    storage = there.untyped_storage()
    context.expect(storage.device.type == context.type, f"the storage is on {storage.device}")
    context.expect(storage.nbytes() == 24, f"the storage of 6 values of 4 B has {storage.nbytes()} B")
    context.expect(
        there[2:].untyped_storage().data_ptr() == storage.data_ptr(),
        "a view does not share its base's storage",
    )


@check("torch.UntypedStorage")
def make(context: CheckContext) -> None:
    """A storage is made on the device, filled from the host's, cloned and fetched."""
    host = context.numbers(4).untyped_storage()
    there = torch.UntypedStorage(16, device=context.device)
    there.copy_(host)
    context.expect(there.device.type == context.type, f"the new storage is on {there.device}")
    context.expect(bytes(there.cpu().tolist()) == bytes(host.tolist()), "the copied storage differs")
    context.expect(bytes(there.clone().cpu().tolist()) == bytes(host.tolist()), "its clone differs")


@check("torch.UntypedStorage.resize_")
def resize(context: CheckContext) -> None:
    """A storage grows and is emptied, as sharded training does to free parameters."""
    there = context.send(context.numbers(4))
    storage = there.untyped_storage()
    storage.resize_(64)
    context.expect(storage.nbytes() == 64, f"after resize_(64) the storage has {storage.nbytes()} B")
    context.same(there, context.numbers(4), "the values after resize_(64)")
    storage.resize_(0)
    context.expect(storage.nbytes() == 0, f"after resize_(0) the storage has {storage.nbytes()} B")
