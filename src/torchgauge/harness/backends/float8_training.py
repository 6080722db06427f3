"""Backend ``float8``: linear layers whose products are in float8, forward and backward, by torchao.

The layers are exchanged in a copy that shares all parameters with the model, so that both are trained from
one state and no weight is held twice. A conversion that exchanged nothing, or a step in which no such product
ran, is degraded.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor, options_of
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.float8_products import MULTIPLE, refused
from torchgauge.harness.backends.inductor_knobs import INDUCTOR
from torchgauge.harness.backends.own_words import in_own_words, offer_named
from torchgauge.harness.backends.prepared import BackendSession, Look, Prepared, Step
from torchgauge.harness.worker.profiled_step import profiled
from torchgauge.records import Configuration, Scalar, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.quant.offered import COMPILED

TORCHAO = "torchao"
PRODUCT = "aten::_scaled_mm"


@dataclass(frozen=True)
class Float8Options:
    """``config`` is the word for a recipe of torchao; ``-inductor`` after it: the model is compiled."""

    config: str = ""

    @property
    def compiled(self) -> bool:
        """Whether inductor compiles the converted model."""
        return self.config.endswith(COMPILED)


@dataclass(frozen=True)
class _Float8Training(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """Inductor, where the configuration asks for it."""
        return INDUCTOR if options_of(self, configuration).compiled else ""

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """It is for training."""
        return None if LOSS in wanted(workload) else f"float8 requires training, not {workload.mode}"


BACKEND = _Float8Training(
    name="float8",
    doc="torchao's linear layers with float8 matmuls, forward and backward",
    implementation=__name__,
    packages=(TORCHAO,),
    install_hint="pip install 'torchgauge[quant]'",
    options=Float8Options,
    named=True,
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The converted module, its first step made.

    Raises :class:`NotOfferedError` for a recipe that this torchao does not have, or what it refuses here.
    """
    options = options_of(BACKEND, configuration)
    module, facts = _converted(subject.module, options.config.removesuffix(COMPILED))
    try:
        with in_own_words(TORCHAO):
            prepared = _run(module, options, configuration, session)
    except NotOfferedError:
        raise
    except Exception as error:
        if said := refused(session):
            raise NotOfferedError(said) from error
        raise
    prepared.evidence.update(facts)
    if not facts["float8_linears"]:
        prepared.degraded.append(f"none of {facts['linears']} linear layers was replaced")
    theirs = prepared.look
    prepared.look = Look("float8_unknown", lambda step, eager: _look(step, eager, session, theirs))
    return prepared


def _run(
    module: Any, options: Float8Options, configuration: Configuration, session: BackendSession
) -> Prepared:
    import torch

    if options.compiled:
        return CompileStage(lambda: torch.compile(module, backend=INDUCTOR), configuration, session).prepare()
    session.first_call(module)
    return Prepared(module)


def _converted(module: Any, word: str) -> tuple[Any, dict[str, Scalar]]:
    """``module`` with other linear layers and the same parameters, and how many of how many they are."""
    import torch
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    from torchao.float8.float8_linear import Float8Linear

    from torchgauge.suites.quant import offered

    recipe = offer_named(word, offered.recipes(), f"torchao {offered.version()} offers no recipe")
    kept = {id(each): each for each in (*module.parameters(), *module.buffers())}
    with in_own_words(TORCHAO):
        made = convert_to_float8_training(
            copy.deepcopy(module, kept),
            config=Float8LinearConfig.from_recipe_name(recipe),
            module_filter_fn=_fits,
        )
    linears = sum(isinstance(each, torch.nn.Linear) for each in module.modules())
    exchanged = sum(isinstance(each, Float8Linear) for each in made.modules())
    return made, {"float8_recipe": str(recipe.value), "linears": linears, "float8_linears": exchanged}


def _fits(layer: Any, _name: str) -> bool:
    return all(width % MULTIPLE == 0 for width in layer.weight.shape)


def _look(
    step: Step, eager_step: Step, session: BackendSession, theirs: Look | None
) -> tuple[dict[str, Scalar], str] | str:
    """How many products in float8 one step ran, and what the compiler's own look finds."""
    events, _ = profiled(step, session.device)
    if not events:
        return "the profiler recorded nothing"
    products = sum(each.name == PRODUCT for each in events)
    facts: dict[str, Scalar] = {"float8_products": products}
    missed = "" if products else f"no {PRODUCT} ran in a step"
    if theirs is not None:
        found = theirs.take(step, eager_step)
        more, said = ({theirs.unknown: found}, "") if isinstance(found, str) else found
        facts.update(more)
        missed = missed or said
    return facts, missed
