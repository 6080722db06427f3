"""Looks at single steps on the simulated device; prints what was found, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

os.environ["TORCHGAUGE_NPUSIM_FAULT"] = "fallback_ops=aten::topk+aten::sort"

import torch

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.harness.worker.fallbacks import look
from torchgauge_npusim import fallback

SESSION = AcceleratorSession("npusim")
NUMBERS = torch.linspace(0.0, 1.0, 64).to(SESSION.torch_device).requires_grad_()


def to_the_host_and_back() -> None:
    """A copy that the model asks for is no fallback."""
    (NUMBERS.cpu() + 1).to(SESSION.torch_device)


def overwritten() -> None:
    """Autograd keeps a clone of what an operator overwrites."""
    torch.nn.functional.hardtanh_(NUMBERS * 2).sum().backward()


def autocast() -> None:
    """What autocast converts stays on the device."""
    with torch.autocast(SESSION.torch_device.type, torch.bfloat16):
        NUMBERS.reshape(8, 8) @ NUMBERS.reshape(8, 8)


def hidden() -> None:
    """Two calls of an operator whose fallback copies there and back in its own way."""
    NUMBERS.detach().erf()
    NUMBERS.detach().erf()


def hide(run: Callable[..., Any]) -> Callable[..., Any]:
    """What runs an operator for the device, but for one that now really goes to the host."""

    def instead(call: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if str(call.op) != "aten.erf.out":
            return run(call, args, kwargs)
        return kwargs["out"].copy_(args[0].cpu().erf())

    return instead


def backward() -> None:
    """One fallback in the thread that called, and one below it."""
    values = NUMBERS.topk(3).values
    values.sort(descending=True).values.sum().backward()


def raises() -> None:
    """A step that does not end well."""
    NUMBERS.topk(3)
    raise ValueError("no more")


def said(found: object) -> object:
    """As JSON holds it."""
    return found if isinstance(found, str) else {**found.facts, "text": found.text}  # type: ignore[attr-defined]


fallback._Call.run = hide(fallback._Call.run)  # type: ignore[method-assign]
print(
    json.dumps(
        {
            "plain": said(look(lambda: NUMBERS.exp().sum(), SESSION)),
            "overwritten": said(look(overwritten, SESSION)),
            "autocast": said(look(autocast, SESSION)),
            "hidden": said(look(hidden, SESSION)),
            "copied": said(look(to_the_host_and_back, SESSION)),
            "backward": said(look(backward, SESSION)),
            "raises": said(look(raises, SESSION)),
            "again": said(look(backward, SESSION)),
        }
    )
)
