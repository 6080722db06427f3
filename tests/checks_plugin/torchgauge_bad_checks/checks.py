"""Checks that end in every way a check may end."""

from __future__ import annotations

import os
import time

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "bad"


@check("os.abort")
def aborts(context: CheckContext) -> None:
    """The process dies of a signal."""
    os.abort()


@check("os._exit")
def leaves(context: CheckContext) -> None:
    """The process ends without a word."""
    os._exit(3)


@check("time.sleep")
def hangs(context: CheckContext) -> None:
    """The check never returns."""
    while True:
        time.sleep(60)


@check("torch.add")
def wrong(context: CheckContext) -> None:
    """The numbers differ from the host's."""
    context.same(context.send(torch.ones(3)) + 1e-3, torch.ones(3))


@check("SystemExit")
def quits(context: CheckContext) -> None:
    """The check asks the interpreter to end."""
    raise SystemExit(7)


@check("BaseException")
def raises_base(context: CheckContext) -> None:
    """Some libraries raise what is no Exception."""
    raise BaseException("checkpoint")  # noqa: TRY002  as torch.distributed.checkpoint does


@check("NotImplementedError")
def not_there(context: CheckContext) -> None:
    """The dispatcher has no kernel."""
    raise NotImplementedError("Could not run 'aten::frobnicate' with arguments from the backend")


@check("unsupported")
def refused(context: CheckContext) -> None:
    """PyTorch says that it does not have it."""
    context.unsupported("PyTorch has no flux capacitor")


@check("torch.ones", tier="smoke")
def fine(context: CheckContext) -> None:
    """All is well, also after what ran before."""
    context.same(context.send(torch.ones(3)), torch.ones(3))
