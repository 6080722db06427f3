"""``torch.compile`` with its counters: what was captured, what broke, and what fell back silently."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.records import Configuration, Scalar

_FALLBACK_MARKS = ("hit config.", "WON'T CONVERT", "falling back to eager")


@dataclass
class CompileCounters:
    """Dynamo's and inductor's own counts since the last compiler reset."""

    graphs: int = 0
    breaks: int = 0
    recompiles: int = 0
    cache_hits: int = 0
    break_reasons: tuple[str, ...] = ()


class FallbackWatch(logging.Handler):
    """Charges the compiler's warnings that it runs eager instead to the case that runs now."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._account: list[str] = []

    def charge(self, account: list[str]) -> None:
        """Write what is announced from now on into ``account``, each text once."""
        self._account = account

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the beginning of a warning that announces a fallback."""
        text = " ".join(record.getMessage().split())[:300]
        if any(mark in text for mark in _FALLBACK_MARKS) and text not in self._account:
            self._account.append(text)

    def install(self) -> FallbackWatch:
        """Listen to the compiler's loggers, which do not always propagate to the root."""
        for name in ("torch._dynamo", "torch._inductor"):
            logging.getLogger(name).addHandler(self)
        return self


def use_cache(group_cache: str, configuration: Configuration) -> None:
    """Make the compiler keep its caches in the folder of ``configuration`` below the group's."""
    folder = f"{group_cache}/{configuration.name}"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"


def probe_vector_isa() -> None:
    """Let inductor find this machine's vector instructions once, before workers are forked.

    It compiles and loads a test program for each instruction set and keeps the answer in the process, so
    every fork would pay for it again inside its cold compilation; the answer is the machine's, not the
    case's.
    """
    try:
        from torch._inductor.cpu_vec_isa import pick_vec_isa
    except ImportError:
        return
    pick_vec_isa()


def reset() -> None:
    """Forget all compiled code of this process; caches on disk stay."""
    import torch._dynamo.utils
    from torch._inductor.utils import clear_caches

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    clear_caches()


def compiled(module: Any, configuration: Configuration) -> Callable[..., Any]:
    """The callable that runs ``module`` under ``configuration``."""
    if not configuration.compiled:
        return module  # type: ignore[no-any-return]
    import torch

    options: dict[str, Scalar] = dict(configuration.options)
    return torch.compile(  # type: ignore[no-any-return]
        module,
        backend=configuration.backend,
        mode=configuration.compile_mode or None,
        dynamic=configuration.dynamic,
        fullgraph=configuration.fullgraph,
        options=options or None,
    )


def timed_call(call: Callable[[], Any], session: DeviceSession) -> float:
    """Seconds of one synchronised call."""
    session.synchronize()
    start = time.perf_counter()
    call()
    session.synchronize()
    return time.perf_counter() - start


def counters() -> CompileCounters:
    """What the compiler counted since the last :func:`reset`."""
    from torch._dynamo import convert_frame
    from torch._dynamo.utils import counters as table

    compile_counts = getattr(convert_frame, "FRAME_COMPILE_COUNTER", {})
    breaks = table.get("graph_break", {})
    hits = table["inductor"]["fxgraph_cache_hit"] + table["aot_autograd"]["autograd_cache_hit"]
    return CompileCounters(
        graphs=int(table["stats"]["unique_graphs"]),
        breaks=int(sum(breaks.values())),
        recompiles=sum(max(0, count - 1) for count in compile_counts.values()),
        cache_hits=int(hits),
        break_reasons=tuple(" ".join(str(reason).split())[:300] for reason in list(breaks)[:5]),
    )
