"""Backend ``optim``: the model as it is, trained by an optimizer of torchao.

The optimizer compiles its own step, once for each shape of a parameter: that is what the first step takes.
That its state is small is its whole promise, so it is weighed beside AdamW's: one that is no smaller is
degraded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchgauge.harness.backends.backend import BackendDescriptor, options_of, passed_on
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.own_words import in_own_words, offer_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.records import Configuration, Scalar, Workload

TORCHAO, MODE = "torchao", "loss_curve"


@dataclass(frozen=True)
class OptimizerOptions:
    """``config`` is the word for an optimizer of torchao; every other option is an argument of its class."""

    config: str = ""


@dataclass(frozen=True)
class _LowBitOptimizer(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """Inductor, by which the optimizers compile themselves."""
        return "inductor"

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """Other scenarios have an optimizer of their own, or none."""
        if workload.mode == MODE:
            return None
        return f"scenario {workload.mode} does not accept an optimizer from a configuration; use {MODE}"


BACKEND = _LowBitOptimizer(
    name="optim",
    doc="eager with an optimizer of torchao that keeps its state in few bits",
    implementation=__name__,
    packages=(TORCHAO,),
    install_hint="pip install 'torchgauge[quant]'",
    options=OptimizerOptions,
    named=True,
    passes_on=True,
)


@dataclass(eq=False)
class Optimized:
    """The module as it is, which says which optimizer trains it."""

    module: Any
    optimizer: Callable[..., Any]
    arguments: Mapping[str, Scalar]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns."""
        return self.module(*args, **kwargs)

    def make_optimizer(self, parameters: Any, rate: float) -> Any:
        """A new optimizer of ``parameters`` with the learning rate ``rate``."""
        with in_own_words(TORCHAO):
            return self.optimizer(parameters, lr=rate, **self.arguments)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The module with its optimizer, which has compiled itself in a first step.

    Raises :class:`NotOfferedError` for an optimizer that this torchao does not have, or refuses here.
    """
    from torchgauge.suites.quant import offered

    word = options_of(BACKEND, configuration).config
    found = offer_named(word, offered.optimizers(), f"torchao {offered.version()} offers no optimizer")
    call = Optimized(subject.module, found, passed_on(BACKEND, configuration))
    stage = CompileStage(
        lambda: call, configuration, session, count=lambda prepared: _weigh(prepared, call, session)
    )
    with in_own_words(TORCHAO):
        prepared = stage.prepare()
    prepared.entries = None  # configurations share torchao's compiled functions: calls are counted instead
    prepared.evidence["optimizer"] = f"{offered.OPTIMIZERS}.{found.__name__}"
    return prepared


def _weigh(prepared: Prepared, call: Optimized, session: BackendSession) -> None:
    """Say how large the state is beside AdamW's, of the same parameters."""
    prepared.look = None  # it asks how much of the model is compiled: nothing is
    own, plain = (_state(session.step(each), session) for each in (call, call.module))
    prepared.evidence["optimizer_state_share"] = round(own / plain, 4)
    if own >= plain:
        prepared.degraded.append(
            f"optimizer state: {own:,} bytes; that of torch.optim.AdamW: {plain:,} bytes"
        )


def _state(step: Any, session: BackendSession) -> int:
    """Bytes of the state of the optimizer that ``step`` has, after one step."""
    from torchgauge.harness.scenarios.loss_curve_steps import state_bytes

    step()
    kind = session.device.torch_device.type
    step.optimizer.zero_grad(set_to_none=True)
    return state_bytes(step.optimizer, kind)
