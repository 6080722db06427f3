"""Storage: the bytes under tensors."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "storage"


@check("torch.Tensor.untyped_storage", tier="smoke")
def of_tensor(bench: Bench) -> None:
    """A tensor's storage is on the device, of its size, and shared by its views."""
    there = bench.send(bench.numbers(6))
    storage = there.untyped_storage()
    bench.expect(storage.device.type == bench.type, f"the storage is on {storage.device}")
    bench.expect(storage.nbytes() == 24, f"6 numbers of 4 B lie in {storage.nbytes()} B")
    bench.expect(
        there[2:].untyped_storage().data_ptr() == storage.data_ptr(),
        "a view has another storage than its base",
    )


@check("torch.UntypedStorage")
def make(bench: Bench) -> None:
    """A storage is made on the device, filled from the host's, cloned and fetched."""
    host = bench.numbers(4).untyped_storage()
    there = torch.UntypedStorage(16, device=bench.device)
    there.copy_(host)
    bench.expect(there.device.type == bench.type, f"the new storage is on {there.device}")
    bench.expect(bytes(there.cpu().tolist()) == bytes(host.tolist()), "what was copied there differs")
    bench.expect(bytes(there.clone().cpu().tolist()) == bytes(host.tolist()), "its clone differs")


@check("torch.UntypedStorage.resize_")
def resize(bench: Bench) -> None:
    """A storage grows and is emptied, as sharded training does to free parameters."""
    there = bench.send(bench.numbers(4))
    storage = there.untyped_storage()
    storage.resize_(64)
    bench.expect(storage.nbytes() == 64, f"after growing to 64 B it has {storage.nbytes()} B")
    bench.same(there, bench.numbers(4), "the numbers before the growth")
    storage.resize_(0)
    bench.expect(storage.nbytes() == 0, f"after emptying it has {storage.nbytes()} B")
