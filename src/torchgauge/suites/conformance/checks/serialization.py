"""Serialization: saving, loading elsewhere, checkpoints of training."""

from __future__ import annotations

import io
import tempfile

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check
from torchgauge.suites.suite import HOST

GROUP = "serialization"


def _through_file(value: object, **how: object) -> object:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **how)


@check("torch.save, torch.load", tier="smoke")
def round_trip(context: CheckContext) -> None:
    """A tensor comes back equal and on the device."""
    there = context.send(context.numbers(3, 4))
    found = _through_file({"x": there, "view": there[1:]})
    assert isinstance(found, dict)
    context.same(found["x"], context.numbers(3, 4))
    found["view"].zero_()
    context.expect(float(found["x"][1:].abs().sum()) == 0, "a loaded tensor and its view do not share memory")


@check("torch.load(map_location)", tier="smoke")
def map_location(context: CheckContext) -> None:
    """What was saved on the device loads on the host, and the other way round."""
    host = context.numbers(5)
    here = _through_file(context.send(host), map_location=HOST)
    assert isinstance(here, torch.Tensor)
    context.expect(here.device.type == HOST and torch.equal(here, host), "the copy on the host differs")
    context.same(_through_file(host, map_location=context.device), host)


@check("torch.nn.Module.state_dict, torch.optim.Optimizer.state_dict")
def training_state(context: CheckContext) -> None:
    """Training goes on from its saved state as if it had not stopped."""

    def step(module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        module(context.send(context.numbers(4, 3))).square().mean().backward()
        optimizer.step()

    torch.manual_seed(0)
    module = context.send(torch.nn.Linear(3, 2))
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
    step(module, optimizer)
    kept = _through_file({"module": module.state_dict(), "optimizer": optimizer.state_dict()})
    assert isinstance(kept, dict)
    other = context.send(torch.nn.Linear(3, 2))
    other.load_state_dict(kept["module"])
    again = torch.optim.AdamW(other.parameters(), lr=0.1)
    again.load_state_dict(kept["optimizer"])
    step(module, optimizer)
    step(other, again)
    context.same(other.weight, module.weight)


@check("torch.distributed.checkpoint", tier="full")
def distributed_checkpoint(context: CheckContext) -> None:
    """A checkpoint of one process is written and read back in place."""
    from torch.distributed import checkpoint

    there = {"x": context.send(context.numbers(4))}
    with tempfile.TemporaryDirectory(prefix="torchgauge-dcp-") as folder:
        try:
            checkpoint.save(there, checkpoint_id=folder, no_dist=True)
            found = {"x": torch.zeros(4, device=context.device)}
            checkpoint.load(found, checkpoint_id=folder, no_dist=True)
        except BaseException as error:  # its own exception is no Exception and hides what each process raised
            for cause, *_ in getattr(error, "failures", {}).values():
                raise cause from error
            raise
    context.same(found["x"], context.numbers(4))
