"""Processes of a group that a check starts by itself, each with the same words; none of them is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torchgauge.counted import counted
from torchgauge.processes.kept_process import KeptProcess
from torchgauge.suites.check import TOO_FEW, NotOnThisDeviceError
from torchgauge.suites.suite import HOST

_RANK = "import sys; sys.path[:] = {path!r}; from {module} import main; main(sys.argv[1], int(sys.argv[2]))"


@contextmanager
def rank_group(module: str, words: str, count: int) -> Iterator[list[KeptProcess]]:
    """``count`` processes, each calling the ``main`` of ``module`` with ``words`` and its rank."""
    code = _RANK.format(path=sys.path, module=module)
    group: list[KeptProcess] = []
    with ExitStack() as ending:  # those that began are ended, whatever raises
        for rank in range(count):
            one = KeptProcess([sys.executable, "-c", code, words, str(rank)], os.environ)
            ending.callback(one.end)
            group.append(one)
        yield group


def need_devices(kind: str, count: int) -> None:
    """Raise :class:`NotOnThisDeviceError` for fewer than ``count`` devices of torch type ``kind``."""
    if kind == HOST:
        return
    import torch

    there = torch.get_device_module(kind).device_count()
    if there < count:
        raise NotOnThisDeviceError(f"{counted(count, 'process')} {TOO_FEW}: there are {there}")
