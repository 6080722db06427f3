"""Backend ``torchao``: a copy of the model, quantised by a configuration of torchao, compiled by inductor.

What is measured is compared with the compiled model that is not quantised, which is planned beside it. What
comes out is judged by the bits that were asked for (``quantised_quality.py``), and what ran is read back: how
many layers hold quantised weights, and which products the compiled graphs have.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor, options_of, passed_on
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.float8_products import refused_of
from torchgauge.harness.backends.inductor_knobs import INDUCTOR, knobs_of
from torchgauge.harness.backends.own_words import in_own_words, offer_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.harness.scenarios.scenario import RemadeCall
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Configuration, Scalar, Workload
from torchgauge.suites.capabilities import LOSS, wanted

TORCHAO = "torchao"
COMPILERS = ("torch._dynamo.", "torch._inductor.")
"""Where the types are defined by which torch.compile says that it does not take a model, or is broken."""
INSTALL = "pip install 'torchgauge[quant]'"
SCALE, STEP = "act_quant_scale", "step"
"""Fields of a configuration whose activations have a fixed scale, found with inputs of the case."""
PREPARE, CONVERT = "prepare", "convert"
PRODUCT = re.compile(r"\b(?:extern_kernels|torch\.ops\.\w+)\.(\w*(?:mm|linear)\w*)(?:\.\w+)*\(")
"""A call of an operator that multiplies matrices in inductor's code."""
FUSED = re.compile(r"\b(?:aten|quantized|onednn|torchao)\.(\w*(?:mm|linear)\w*)\b")
"""The same where a kernel of inductor's own does it: comments say of which operators that was made."""
LEAST_SHARE = 0.5
"""Share of a model's weights, embeddings left out, below which a quantised model is not one."""
FLOATING = re.compile(r"(?:add|badd|b)?mm|linear|_linear_pointwise|_mkl_linear")
"""Those that multiply numbers in floating point as they are."""


@dataclass(frozen=True)
class TorchaoOptions:
    """``config`` is the word for a configuration; every other option is an argument of its class."""

    config: str = ""


@dataclass(frozen=True)
class _Torchao(BackendDescriptor):
    named: bool = True
    beside: tuple[str, ...] = (INDUCTOR,)
    install_hint: str = INSTALL

    def compiler(self, configuration: Configuration) -> str:
        """Inductor."""
        return INDUCTOR

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """Quantised weights have no gradients."""
        return "a quantised model cannot be trained" if LOSS in wanted(workload) else None


BACKEND = _Torchao(
    name=TORCHAO,
    doc="a copy of the model that torchao has quantised, compiled by inductor (inference)",
    implementation=__name__,
    packages=(TORCHAO,),
    options=TorchaoOptions,
    passes_on=True,
)


@dataclass
class Quantised:
    """The copy, and what became of its layers; ``settings`` are those of inductor that torchao wants.

    ``share`` is that of the numbers in weights of two dimensions and more that are quantised now.
    """

    module: Any
    linears: int
    changed: int
    share: float
    tensors: str
    settings: dict[str, Any] = field(default_factory=dict)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The quantised copy, compiled, its first call made.

    Raises :class:`NotOfferedError` with the words of torchao where that refuses, and what else is raised.
    """
    from torchgauge.harness.worker.quantised_quality import Quality

    options = options_of(BACKEND, configuration)
    kind, arguments = _asked(options.config, passed_on(BACKEND, configuration))
    seen = Inputs.of(subject, session)
    quality = Quality.of(kind, arguments, seen.shapes())
    made = _quantised(subject, kind, arguments, session, seen)
    call = partial(_compiled, made.module)
    stage = CompileStage(
        call,
        configuration,
        session,
        knobs=knobs_of(session, configuration, {}),
        around=partial(_inductor_settings, made.settings),
        count=lambda prepared: _tell_products(prepared, stage, quality.activations),
    )

    def finished(prepared: Prepared) -> Prepared:
        retry = prepared.retry
        prepared.retry = (lambda trouble: finished(retry(trouble))) if retry else None
        if not session.fresh:  # said once
            _tell(prepared, made)
        prepared.rule = quality.rule(prepared)
        return prepared

    try:
        return finished(stage.prepare())
    except Exception as error:
        if not _runs_uncompiled(made, session) or not type(error).__module__.startswith(COMPILERS):
            raise
        return finished(_uncompiled(made, error))


def _asked(word: str, given: Mapping[str, Scalar]) -> tuple[type, dict[str, Any]]:
    """The class that ``word`` means, and its arguments; raises :class:`NotOfferedError`."""
    from torchgauge.suites.quant import offered

    whose = f"torchao {offered.version()} offers no configuration"
    offer = offered.found(word) or offer_named(word, {each.word: each for each in offered.offers()}, whose)
    arguments = dict(offer.arguments)
    kinds = {each.name: each for each in offered.fields_of(offer.kind)}
    for name, value in given.items():
        if name not in kinds:
            raise NotOfferedError(f"{offer.kind.__name__} of torchao {offered.version()} has no {name!r}")
        arguments[name] = _value(kinds[name], value)
    return offer.kind, arguments


def _value(of: Any, value: Scalar) -> Any:
    """``value`` as a field takes it: a word may stand for a member of an enum, or for a dtype."""
    import torch

    usual = of.default
    if isinstance(usual, Enum) and isinstance(value, str):
        return type(usual)(value)
    if isinstance(usual, torch.dtype) and isinstance(value, str):
        return getattr(torch, value)
    return value


@dataclass
class Inputs:
    """What one step showed every linear layer: largest value, mean squares and dimensions, by its name."""

    module: Any
    largest: dict[str, float] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    squares: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Any, session: BackendSession) -> Inputs:
        """Look at the inputs of all linear layers in a step of the module as it is."""
        found = cls(subject.module)
        hooks = [
            layer.register_forward_pre_hook(partial(found._take, name))
            for name, layer in _linears(subject.module)
        ]
        try:
            run_once(session.step(subject.module))
        finally:
            for each in hooks:
                each.remove()
        return found

    def _take(self, name: str, _: Any, given: tuple[Any, ...]) -> None:
        values = given[0].detach().float()
        self.dims[name] = values.dim()
        self.largest[name] = max(self.largest.get(name, 0.0), float(values.abs().max()))
        self.squares.setdefault(name, []).append(float(values.square().mean()))

    def shapes(self) -> list[tuple[float, float]]:
        """Peak to RMS, squared, of weights (by row) and of inputs (over all), for each layer that ran."""
        found = []
        for name, layer in _linears(self.module):
            if name not in self.squares:
                continue
            weight = layer.weight.detach().float()
            weights = float(weight.abs().amax(dim=1).square().mean() / weight.square().mean())
            mean = sum(self.squares[name]) / len(self.squares[name])
            found.append((weights, self.largest[name] ** 2 / mean if mean else 1.0))
        return found


def run_once(step: Callable[[], Any]) -> None:
    """One step, or the shorter one that runs the same where there is one."""
    getattr(step, "glance", step)()


def _linears(module: Any) -> list[tuple[str, Any]]:
    import torch

    return [(name, each) for name, each in module.named_modules() if isinstance(each, torch.nn.Linear)]


def _quantised(
    subject: Any, kind: type, arguments: dict[str, Any], session: BackendSession, seen: Inputs
) -> Quantised:
    """A quantised copy of the module; raises :class:`NotOfferedError` where torchao refuses."""
    module = copy.deepcopy(subject.module)
    before = _linears(subject.module)
    settings: dict[str, Any] = {}
    with _settings_kept(settings), in_own_words(TORCHAO):
        _quantise(module, kind, arguments, session, seen)
    became = [(id(layer.weight), _became(module, name, layer)) for name, layer in before]
    layers = [name for (name, _), (_, kind) in zip(before, became, strict=True) if kind]
    if subject.autocast is not None and layers:
        _refuse_ignored_autocast(module, subject, layers[0])
    changed = [kind for _, kind in became if kind]
    tensors = ", ".join(f"{name} x{count}" for name, count in sorted(Counter(changed).items()))
    sizes = _weights(subject.module)
    done = sum(sizes.get(each, 0) for each in {each for each, kind in became if kind})
    share = done / max(sum(sizes.values()), 1)
    return Quantised(module, len(before), len(changed), share, tensors, settings)


def _refuse_ignored_autocast(module: Any, subject: Any, name: str) -> None:
    """Raise :class:`NotOfferedError` if quantised layer ``name`` returns another dtype than before.

    torchao multiplies its tensors in ``__torch_function__``, before autocast casts anything.
    """
    import torch

    layers = (subject.module.get_submodule(name), module.get_submodule(name))
    inputs = torch.zeros(1, layers[0].in_features, device=layers[0].weight.device)
    dtypes = []
    with torch.no_grad(), subject.autocast(), suppress(Exception):  # the compiled model raises it again
        dtypes += [layer(inputs).dtype for layer in layers]
    if len({*dtypes}) > 1:
        wanted_dtype, dtype = dtypes
        raise NotOfferedError(
            f"torchao's layers ignore autocast: they return {dtype} instead of {wanted_dtype}"
        )


def _weights(module: Any) -> dict[int, int]:
    """How many numbers the weights have that are multiplied, by id: all of two dimensions but embeddings."""
    import torch

    parts = [each for each in module.modules() if not isinstance(each, torch.nn.Embedding)]
    own = (weight for part in parts for weight in part.parameters(recurse=False))
    return {id(each): each.numel() for each in own if each.dim() > 1}


def _quantise(
    module: Any, kind: type, arguments: dict[str, Any], session: BackendSession, seen: Inputs
) -> None:
    """Let torchao quantise ``module`` in place, its activations' scales found with inputs of the case."""
    from torchgauge.suites.quant.offered import fields_of

    quantize_ = import_module("torchao.quantization").quantize_
    names = {each.name for each in fields_of(kind)}
    if SCALE not in names or SCALE in arguments:
        quantize_(module, kind(**arguments))
    elif STEP in names:  # with observers of its own
        quantize_(module, kind(**arguments, **{STEP: PREPARE}))
        run_once(session.step(RemadeCall(module, module)))
        quantize_(module, kind(**arguments, **{STEP: CONVERT}))
    else:
        granular = import_module("torchao.quantization.granularity")
        own = {"granularity": [granular.PerTensor(), granular.PerRow()], **arguments}
        for name, largest in seen.largest.items():
            scale = _symmetric_scale(module.get_submodule(name).weight, largest, seen.dims[name])
            wanted_name = partial(_is_called, name)
            quantize_(module, kind(**{**own, SCALE: scale}), filter_fn=wanted_name)


def _symmetric_scale(like: Any, largest: float, dims: int) -> Any:
    """The step of int8 that reaches from minus to plus ``largest``, one for a whole tensor of ``dims``."""
    import torch

    return torch.full((1,) * dims, max(largest, 1e-12) / 127.0, device=like.device, dtype=torch.float32)


def _is_called(name: str, _: Any, given: str) -> bool:
    return given == name


def _became(module: Any, name: str, before: Any) -> str:
    """What a layer is now: the kind of its weight, or of the module in its place; "" where as before."""
    now = module.get_submodule(name)
    weight: Any = getattr(now, "weight", None)
    if weight is None or (type(weight) is type(before.weight) and weight.dtype == before.weight.dtype):
        return "" if type(now) is type(before) else type(now).__name__
    return type(weight).__name__ if type(weight) is not type(before.weight) else type(now).__name__


def _runs_uncompiled(made: Quantised, session: BackendSession) -> bool:
    """Whether the quantised layers run as they are.

    Raises :class:`NotOfferedError` where torchao refuses, or the device the products that they need.
    """
    try:
        with in_own_words(TORCHAO):
            run_once(session.step(RemadeCall(made.module, made.module)))
    except NotOfferedError:
        raise
    except Exception as error:
        if said := refused_of(made.module, session):
            raise NotOfferedError(said) from error
        return False
    return True


def _uncompiled(made: Quantised, error: Exception) -> Prepared:
    """The copy as it is, which torch.compile does not take: ``error`` is what that said."""
    prepared = Prepared(RemadeCall(made.module, made.module))
    prepared.degraded.append(f"torch.compile failed, so the model runs uncompiled: {first_line(error)}")
    return prepared


def _compiled(module: Any) -> RemadeCall:
    """The copy compiled, by a function with code of its own.

    Dynamo counts recompilations by code: copies of one class would use up each other's limit, and the ninth
    of a group would run uncompiled (torch 2.13).
    """
    import torch

    def run(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    run.__code__ = run.__code__.replace()
    return RemadeCall(torch.compile(run, backend=INDUCTOR), module)


@contextmanager
def _settings_kept(changed: dict[str, Any]) -> Iterator[None]:
    """Put back the settings of inductor that are changed inside, and tell ``changed`` what they were set to.

    torchao sets those that it recommends for the whole process, where other cases are compiled too.
    """
    settings: Any = import_module("torch._inductor.config")
    before = settings.get_config_copy()
    try:
        yield
    finally:
        for name, value in settings.get_config_copy().items():
            if name in before and value != before[name]:
                changed[name] = value
                setattr(settings, name, before[name])


@contextmanager
def _inductor_settings(wanted_ones: Mapping[str, Any]) -> Iterator[None]:
    settings: Any = import_module("torch._inductor.config")
    with settings.patch(dict(wanted_ones)):
        yield


def _tell(prepared: Prepared, made: Quantised) -> None:
    """What became of the layers, and what the model takes now."""
    from torchgauge.harness.worker.memory import model_bytes

    facts: dict[str, Scalar] = {
        "quantised_linears": f"{made.changed} of {made.linears}",
        "quantised_tensors": made.tensors or "none",
        "quantised_share": round(made.share, 4),
    }
    size = model_bytes(made.module)
    prepared.measurements.append(single("model_size", float(size), "storage of parameters and buffers"))
    theirs = int(import_module("torchao.utils").get_model_size_in_bytes(made.module))
    if theirs != size:
        facts["model_size_torchao"] = theirs
    prepared.evidence.update(facts)
    if not made.changed:
        prepared.degraded.append(f"none of {made.linears} linear layers was quantised")
    elif made.changed < made.linears or made.share < LEAST_SHARE:
        layers = f"{made.changed} of {made.linears} linear layers"
        prepared.degraded.append(f"{layers} are quantised, with {made.share:.0%} of the weights")


def _tell_products(prepared: Prepared, stage: CompileStage, activations: bool) -> None:
    """Which products the compiled graphs have; one of floats alone is no product of quantised activations."""
    assert stage.knobs is not None
    found = Counter(name for text in stage.knobs.code for name in _products(text))
    prepared.evidence["products"] = ", ".join(f"{name} x{n}" for name, n in sorted(found.items())) or "none"
    if activations and found and all(FLOATING.fullmatch(name) for name in found):
        said = "quantised activations were requested, but every matmul ran in floating point"
        prepared.degraded.append(f"{said}: {prepared.evidence['products']}")


def _products(text: str) -> list[str]:
    """The operators that multiply matrices in the code of a graph, one for each call."""
    return PRODUCT.findall(text) or sorted(set(FUSED.findall(text)))
