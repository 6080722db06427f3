"""Backend ``compiled_autograd``: the whole model compiled, and its way back captured when it runs.

``torch._dynamo.config.compiled_autograd`` reaches only what goes back *inside* of a compiled function; loss
and ``backward()`` of a scenario are outside of the model. So the context that this setting enters is entered
around whole steps. What it captured is counted: it may capture nothing without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Configuration, Workload
from torchgauge.suites.capabilities import LOSS, wanted


@dataclass(frozen=True)
class CompiledAutogradOptions:
    """``backend`` is one of ``torch.compile``, for the model and for its way back."""

    backend: str = "inductor"


@dataclass(frozen=True)
class _CompiledAutograd(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """The one that the options name."""
        return str(dict(configuration.options).get("backend", CompiledAutogradOptions.backend))

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """Without a loss there is no way back."""
        return None if LOSS in wanted(workload) else "the mode has no backward pass to capture"


BACKEND = _CompiledAutograd(
    name="compiled_autograd",
    doc="torch.compile with compiled autograd: the backward pass is captured as a whole when it runs",
    implementation=__name__,
    options=CompiledAutogradOptions,
    takes=("mode", "dynamic", "fullgraph", "memory_format"),
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The compiled module, its first step made under compiled autograd.

    Raises :class:`NotOfferedError` for a torch without it.
    """
    import torch

    options = CompiledAutogradOptions(**dict(configuration.options))  # type: ignore[arg-type]  # checked
    told = compilation.arguments(configuration, options.backend)
    return CompileStage(
        lambda: torch.compile(subject.module, **told),
        configuration,
        session,
        around=_context(partial(torch.compile, **told), dynamic=bool(configuration.dynamic)),
        count=_count,
    ).prepare()


def _context(compiler: Callable[[Any], Any], *, dynamic: bool) -> Callable[[], AbstractContextManager[Any]]:
    """What makes the context in which autograd hands its graphs to ``compiler``."""
    import torch
    from torch._dynamo import compiled_autograd

    enable = getattr(compiled_autograd, "_enable", None)
    if enable is None:
        raise NotOfferedError(f"torch {torch.__version__} has no torch._dynamo.compiled_autograd._enable")
    return lambda: enable(compiler, dynamic=dynamic)


def _count(prepared: Prepared) -> None:
    """Say how many graphs of autograd were captured."""
    captures = compilation.counters().autograd_captures
    prepared.measurements.append(single("autograd_captures", captures, "dynamo compiled_autograd captures"))
    if captures == 0:
        prepared.degraded.append("compiled autograd captured nothing: the backward pass ran without it")
