"""Optimizers: one tensor at a time, on lists of tensors, fused."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.check_context import CheckContext, brief, check

GROUP = "optim"
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SGD", {"momentum": 0.9}),
    ("Adam", {}),
    ("AdamW", {"weight_decay": 0.1}),
    ("RMSprop", {}),
)


def _trained(start: torch.Tensor, kind: str, options: dict[str, Any]) -> torch.Tensor:
    """A parameter that starts at ``start``, after three steps towards zero."""
    weight = torch.nn.Parameter(start.clone())
    optimizer = getattr(torch.optim, kind)([weight], lr=0.05, **options)
    for _ in range(3):
        optimizer.zero_grad()
        (weight.square().sum() + weight.sum()).backward()
        optimizer.step()
    return weight.detach()


def _compare(context: CheckContext, kind: str, options: dict[str, Any], **how: bool) -> None:
    host = _trained(context.numbers(6), kind, {**options, "foreach": False})
    found = _trained(context.send(context.numbers(6)), kind, {**options, **how})
    context.same(found, host, f"{kind} {how}", rtol=1e-4, atol=1e-5)


@check("torch.optim (foreach=False)", tier="smoke")
def steps(context: CheckContext) -> None:
    """Optimizers step one tensor at a time as on the host."""
    for kind, options in KINDS:
        _compare(context, kind, options, foreach=False)


@check("torch.optim (foreach=True)")
def foreach(context: CheckContext) -> None:
    """Optimizers step lists of tensors as on the host."""
    for kind, options in KINDS:
        _compare(context, kind, options, foreach=True)


@check("torch.optim (fused=True)")
def fused(context: CheckContext) -> None:
    """Fused optimizers step as on the host."""
    for kind, options in KINDS[:3]:
        with context.unless_refused(f"no fused {kind}"):
            _compare(context, kind, options, fused=True)


@check("torch.optim (capturable=True)")
def capturable(context: CheckContext) -> None:
    """An optimizer keeps its step count on the device, as graphs need."""
    try:
        _compare(context, "Adam", {}, capturable=True)
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        if "capturable" not in str(error):
            raise
        context.unsupported(f"PyTorch does not list the device as capturable: {brief(error)}")


@check("torch.nn.utils.clip_grad_norm_", tier="smoke")
def clipping(context: CheckContext) -> None:
    """Gradients are clipped to the same norm."""

    def clipped(x: torch.Tensor) -> torch.Tensor:
        weight = torch.nn.Parameter(x.clone())
        (weight * weight).sum().backward()
        total = torch.nn.utils.clip_grad_norm_([weight], 0.5)
        assert weight.grad is not None
        return torch.cat((weight.grad, total.view(1)))

    context.compare(clipped, context.numbers(7))


@check("torch.optim.lr_scheduler, swa_utils")
def schedules(context: CheckContext) -> None:
    """A schedule and an averaged model follow the host's."""

    def averaged(x: torch.Tensor) -> torch.Tensor:
        module = torch.nn.Linear(3, 1, bias=False).to(x.device)
        with torch.no_grad():
            module.weight.copy_(x)
        mean = torch.optim.swa_utils.AveragedModel(module)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            module(torch.ones(1, 3, device=x.device)).square().sum().backward()
            optimizer.step()
            schedule.step()
            mean.update_parameters(module)
        return mean.module.weight.detach()

    context.compare(averaged, context.numbers(1, 3))
