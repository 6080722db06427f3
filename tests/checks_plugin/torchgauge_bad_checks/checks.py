"""Checks that end in every way a check may end."""

from __future__ import annotations

import os
import time

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "bad"


@check("os.abort")
def aborts(bench: Bench) -> None:
    """The process dies of a signal."""
    os.abort()


@check("os._exit")
def leaves(bench: Bench) -> None:
    """The process ends without a word."""
    os._exit(3)


@check("time.sleep")
def hangs(bench: Bench) -> None:
    """The check never returns."""
    while True:
        time.sleep(60)


@check("torch.add")
def wrong(bench: Bench) -> None:
    """The numbers differ from the host's."""
    bench.same(bench.send(torch.ones(3)) + 1e-3, torch.ones(3))


@check("SystemExit")
def quits(bench: Bench) -> None:
    """The check asks the interpreter to end."""
    raise SystemExit(7)


@check("BaseException")
def raises_base(bench: Bench) -> None:
    """Some libraries raise what is no Exception."""
    raise BaseException("checkpoint")  # noqa: TRY002  as torch.distributed.checkpoint does


@check("NotImplementedError")
def not_there(bench: Bench) -> None:
    """The dispatcher has no kernel."""
    raise NotImplementedError("Could not run 'aten::frobnicate' with arguments from the backend")


@check("unsupported")
def refused(bench: Bench) -> None:
    """PyTorch says that it does not have it."""
    bench.unsupported("PyTorch has no flux capacitor")


@check("torch.ones", tier="smoke")
def fine(bench: Bench) -> None:
    """All is well, also after what ran before."""
    bench.same(bench.send(torch.ones(3)), torch.ones(3))
