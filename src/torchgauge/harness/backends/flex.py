"""Backend ``flex``: a model's form with ``flex_attention``, compiled or as it is.

Torch refuses some devices and some inputs of ``flex_attention`` before anything runs; what it says then is
the reason that the case is unsupported. With ``lifted`` its check of the device is left out, to see what
lies behind it: that is a probe, and never a pass of the feature.

That a method is called ``flex_form`` is no proof. So calls of torch's operator are counted: those in captured
graphs, or those of one more step where the form runs as it is. A case without any is degraded, and so is one
that computes attention by ``scaled_dot_product_attention`` in some of its layers. What a mask leaves out is
read from the operator's arguments.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.own_words import unimplemented_in
from torchgauge.harness.backends.prepared import BackendSession, Look, Prepared, Step
from torchgauge.harness.backends.sdpa import ENTRY
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.captured_graphs import FLEX, NOT_SEEN, SDPA, Call, Graph, most
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.flex_blocks import Blocks, blocks_of
from torchgauge.harness.worker.profiled_step import profiled
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Configuration, Scalar

CHECK = "_validate_device"
"""The function of torch's module that refuses a device; it looks at the type's name and at gradients."""
UNKNOWN = "flex_calls_unknown"


@dataclass(frozen=True)
class FlexOptions:
    """``compiled`` is how the feature is meant to run; ``lifted`` leaves torch's check of the device out."""

    compiled: bool = True
    lifted: bool = False


@dataclass(frozen=True)
class _Flex(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """Inductor, unless the form runs as it is."""
        return "inductor" if dict(configuration.options).get("compiled", FlexOptions.compiled) else ""


BACKEND = _Flex(
    name="flex",
    doc="a model's variant with flex_attention, compiled or eager; reports its block sparsity",
    implementation=__name__,
    options=FlexOptions,
    takes=("mode", "dynamic", "fullgraph"),
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The model's form with ``flex_attention``, its first call made.

    Raises :class:`NotOfferedError` for a model without one, for a torch without ``flex_attention``, and for
    what torch refuses, in its own words.
    """
    options = FlexOptions(**dict(configuration.options))  # type: ignore[arg-type]  # checked when read
    if not hasattr(subject.module, "flex_form"):
        raise NotOfferedError("the model has no variant with flex_attention: it does not define flex_form()")
    flexible = _module()
    make = _Making(subject, configuration, session, options)
    if not options.lifted:
        with _refusals(flexible, ""):
            return make.prepared()
    refused = _refused_without(make, flexible)
    with lifted(flexible), _refusals(flexible, f"{refused}; with torch's device check disabled"):
        prepared = make.prepared()
    inner = prepared.context
    prepared.context = lambda: _both(lambda: lifted(flexible), inner)
    prepared.evidence["refused"] = refused
    prepared.degraded.append(f"a probe: {refused}; torch's device check was disabled")
    return prepared


@dataclass(frozen=True)
class _Making:
    """How one case is made ready, whatever torch lets through."""

    subject: Any
    configuration: Configuration
    session: BackendSession
    options: FlexOptions

    def prepared(self) -> Prepared:
        """The form, called once."""
        import torch

        form = self.subject.module.flex_form(self.session.device.torch_device)
        if not self.options.compiled:
            return self.as_it_is(form)
        told = compilation.arguments(self.configuration, "inductor")
        graphs: list[Graph] = []
        made = CompileStage(
            lambda: torch.compile(form, **told),
            self.configuration,
            self.session,
            graphs=graphs,
            count=partial(_count, graphs),
        ).prepare()
        return made if self.session.fresh else _with_blocks(made, most(graphs, FLEX))

    def as_it_is(self, form: Any) -> Prepared:
        """The form as torch runs it uncompiled; that too is traced by dynamo, which may give up."""
        made = Prepared(form, settled=False, look=Look(UNKNOWN, self._look))
        made.context = lambda: compilation.fallback_watch().charging(made.degraded)
        calls: list[Call] = []
        with made.context(), _heard(calls):
            self.session.first_call(form)
        return _with_blocks(made, calls)

    def _look(self, step: Step, _: Step) -> tuple[dict[str, Scalar], str]:
        """How often one step calls the operator; the step before it may compile, which calls it as well."""
        step()
        calls: list[Call] = []
        with _heard(calls):
            step()
        events, _others = profiled(step, self.session.device)
        return called(len(calls), sum(event.name == ENTRY for event in events))


def _count(graphs: list[Graph], prepared: Prepared) -> None:
    """Say how often the captured graphs call the operator; generated code is made of nothing else."""
    if not graphs:
        prepared.evidence[UNKNOWN] = NOT_SEEN
        return
    facts, said = called(len(most(graphs, FLEX)), len(most(graphs, SDPA)))
    prepared.evidence.update(facts)
    prepared.degraded += [f"{said} in a compiled graph"] if said else []


def _blocks(query: Any, key: Any, value: Any, _: Any, mask: Any, *__: Any) -> Blocks | None:
    return blocks_of(query, key, value, mask)


@contextmanager
def _heard(calls: list[Call]) -> Iterator[None]:
    """Add the calls of the operator that are made inside with real tensors, not those while it is traced."""
    from torch._subclasses import FakeTensor

    kind: Any = type(import_module("torch._higher_order_ops.flex_attention").flex_attention)
    call, running = kind.__call__, False

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal running
        if running or isinstance(args[0], FakeTensor):  # autograd calls it again below itself
            return call(self, *args, **kwargs)
        running = True
        calls.append(Call(FLEX, blocks=_blocks(*args)))
        try:
            return call(self, *args, **kwargs)
        finally:
            running = False

    kind.__call__ = counted
    try:
        yield
    finally:
        kind.__call__ = call


def called(calls: int, others: int) -> tuple[dict[str, Scalar], str]:
    """The facts, and what a form is degraded by that makes so many ``calls`` of the operator.

    ``others`` are calls of ``scaled_dot_product_attention``.
    """
    facts: dict[str, Scalar] = {"flex_calls": calls, "sdpa_calls": others}
    if not calls:
        return facts, "the model that flex_form() returns never calls flex_attention"
    whole = calls + others
    return facts, f"{others} of {whole} attention calls are scaled_dot_product_attention" if others else ""


def _module() -> Any:
    try:
        from torch.nn.attention import flex_attention
    except ImportError:
        import torch

        raise NotOfferedError(f"torch {torch.__version__} has no flex_attention") from None
    return flex_attention


@contextmanager
def lifted(flexible: Any) -> Iterator[None]:
    """Leave torch's check of the device out; raises :class:`NotOfferedError` where there is none."""
    check = getattr(flexible, CHECK, None)
    if check is None:
        raise NotOfferedError("flex_attention of this torch has no device check that could be disabled")
    setattr(flexible, CHECK, _anything)
    try:
        yield
    finally:
        setattr(flexible, CHECK, check)


def _anything(*_: Any) -> None:
    """Let every device through."""


@contextmanager
def _both(
    first: Callable[[], AbstractContextManager[Any]], second: Callable[[], AbstractContextManager[Any]]
) -> Iterator[None]:
    with first(), second():
        yield


def _refused_without(make: _Making, flexible: Any) -> str:
    """With which words torch refuses ``make``; raises :class:`NotOfferedError` where it does not."""
    try:
        with _refusals(flexible, ""):
            make.as_it_is(make.subject.module.flex_form(make.session.device.torch_device))
    except NotOfferedError as error:
        return error.message
    raise NotOfferedError("nothing to probe: flex_attention accepts this device and these inputs")


@contextmanager
def _refusals(flexible: Any, probing: str) -> Iterator[None]:
    """Raise :class:`NotOfferedError` for what torch refuses, and where ``probing`` for all that fails."""
    try:
        yield
    except NotOfferedError:
        raise
    except Exception as error:
        said = refusal(error, flexible)
        if probing:
            raise NotOfferedError(f"{probing}: {said or first_line(error)}") from error
        if not said:
            raise
        raise NotOfferedError(said) from error


def refusal(error: BaseException, flexible: Any) -> str:
    """Why torch does not take a call, in its own words; empty where ``error`` is no refusal.

    A ``NotImplementedError`` is one where torch raised it, and not the model's own code. A ``ValueError`` of
    the check of the device is one by its name: nothing was tried.
    """
    inner = getattr(error, "inner_exception", error)
    if isinstance(inner, NotImplementedError):
        return str(inner) if unimplemented_in(inner, "torch") else ""
    frames = traceback.extract_tb(inner.__traceback__)
    last = frames[-1] if frames else None
    if isinstance(inner, ValueError) and last and (last.filename, last.name) == (flexible.__file__, CHECK):
        return f"refused by name: {inner}"
    return ""


def _with_blocks(made: Prepared, calls: list[Call]) -> Prepared:
    """``made``, with what the masks of ``calls`` leave out and the work of whole blocks that is left."""
    blocks = [each.blocks for each in calls if each.blocks is not None]
    if not calls:
        return made
    if len(blocks) < len(calls):
        made.evidence["block_sparsity_unknown"] = "a block mask is created inside the compiled graph"
        return made
    kept, there = sum(each.kept for each in blocks), sum(each.there for each in blocks)
    sizes = " and ".join(sorted({f"{each.rows} x {each.columns}" for each in blocks}))
    how = f"{there - kept} of {there} blocks of {sizes}" if there > len(blocks) else "one block for each call"
    work = sum(each.work for each in blocks)
    made.measurements += [
        single("block_sparsity", 1 - kept / there, how),
        single("block_flops", work, how),
    ]
    return made
