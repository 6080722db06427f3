"""Backend ``compile``: the whole model through ``torch.compile``, by whichever of its back ends is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchgauge.harness.backends.backend import COMPILE, BackendDescriptor
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.inductor_knobs import INDUCTOR, knobs_of
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.harness.worker import compilation
from torchgauge.records import Configuration


@dataclass(frozen=True)
class _Compile(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """The one that the configuration names."""
        return configuration.backend


BACKEND = _Compile(
    name=COMPILE,
    doc="torch.compile of the whole model, with any backend of torch.compile",
    implementation=__name__,
    options=dict,
    takes=("mode", "dynamic", "fullgraph", "memory_format"),
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The compiled module, its first call made."""
    settings = dict(configuration.options)
    whole = subject.built.compiled(subject) if subject.built is not None else subject.module
    return CompileStage(
        lambda: compilation.compiled(
            compilation.own_frame(subject.module) if session.foreign else whole, configuration
        ),
        configuration,
        session,
        knobs=knobs_of(session, configuration, settings) if configuration.backend == INDUCTOR else None,
    ).prepare()
