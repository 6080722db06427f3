"""Backend ``sdpa``: eager with one back end of ``scaled_dot_product_attention``, and which one really ran.

A request is no proof: some devices run another kernel without a word. So the kernel is read from a profiled
step, and a case that ran another one is degraded.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.prepared import BackendSession, Look, Prepared, Step
from torchgauge.harness.worker.profiled_step import profiled
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Configuration, Scalar

ENTRY = "aten::scaled_dot_product_attention"
KERNELS = {
    "aten::_scaled_dot_product_attention_math": "math",
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_efficient_attention": "efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cudnn",
    "aten::_scaled_dot_product_fused_attention": "overrideable",
}
"""How the operators begin that PyTorch's choice ends in; a device has its own endings."""
TRIGGERED = re.compile(r" \(Triggered internally at .*\)")
"""The place in PyTorch's sources behind each warning that says why a kernel was not used."""
BACKWARD = "_backward"
"""How the operators end that undo one of those."""
FLASH, ANY = "flash", "any"
MEMBERS = {
    "math": "MATH",
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "overrideable": "OVERRIDEABLE",
}
NONE_VIABLE = ("No viable backend", "No available kernel")
"""What PyTorch says where the back end that was asked for cannot serve these inputs."""


@dataclass(frozen=True)
class SdpaOptions:
    """``kernel`` is one of the back ends, or "" for PyTorch's own choice.

    ``implementation`` is one of flash attention that is registered with torch, ``any`` for the first of them
    that serves the model, or "" for torch's own.
    """

    kernel: str = ""
    implementation: str = ""

    def __post_init__(self) -> None:
        """Refuse a back end that does not exist, and an implementation of another than flash attention."""
        if self.kernel not in ("", *MEMBERS):
            raise ValueError(f"kernel: {self.kernel!r} is not a backend: use one of {', '.join(MEMBERS)}")
        if self.implementation and self.kernel != FLASH:
            said = f"{self.implementation!r} requires `kernel: {FLASH}`"
            raise ValueError(f"implementation: {said}")


BACKEND = BackendDescriptor(
    name="sdpa",
    doc="eager with one backend of scaled_dot_product_attention; records which kernel ran",
    implementation=__name__,
    options=SdpaOptions,
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The module in the context of its back end, tried once.

    Raises :class:`NotOfferedError` where the back end cannot serve the model's inputs.
    """
    options = SdpaOptions(**dict(configuration.options))  # type: ignore[arg-type]  # checked when read
    kernel = options.kernel
    if options.implementation:
        return _registered(subject, options, session)
    prepared = Prepared(subject.module, context=lambda: _only(kernel))
    prepared.look = Look("sdpa_kernels_unknown", lambda step, _: _look(step, kernel, session))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with prepared.context():
                session.first_call(prepared.call)
        except RuntimeError as error:
            if any(words in str(error) for words in NONE_VIABLE):
                said = " ".join([str(error), *(TRIGGERED.sub("", str(each.message)) for each in heard)])
                raise NotOfferedError(
                    f"backend {kernel!r} does not support this model here: {said}"
                ) from error
            raise
    return prepared


def _registered(subject: Any, options: SdpaOptions, session: BackendSession) -> Prepared:
    """The module with a registered implementation of flash attention: the one that is named, or the first.

    Torch is asked which there are, and each is tried; what it says is the reason where none serves. It raises
    for a name that it does not know.
    """
    names = registered()
    wanted = names if options.implementation == ANY else [options.implementation]
    said: dict[str, str] = {}
    for name in wanted:
        prepared = Prepared(subject.module, context=partial(activated, name))
        prepared.look = Look("sdpa_kernels_unknown", lambda step, _: _look(step, FLASH, session))
        try:
            with prepared.context():
                session.first_call(prepared.call)
        except Exception as error:  # whatever it needs and does not find, another may do
            if name not in names:
                raise
            said[name] = first_line(error)
            continue
        prepared.evidence.update(flash_implementation=name, flash_implementations=", ".join(names))
        if said:
            prepared.evidence["flash_implementations_unusable"] = _told(said)
        return prepared
    raise NotOfferedError(_told(said) or "torch has no registered implementation of flash attention")


def _told(said: dict[str, str]) -> str:
    return "; ".join(f"{name}: {words}" for name, words in said.items())


def registered() -> list[str]:
    """The implementations of flash attention that are registered with torch; none with an older torch."""
    names: list[str] = getattr(_attention(), "list_flash_attention_impls", list)()
    return names


@contextmanager
def activated(name: str) -> Iterator[None]:
    """Let flash attention alone be chosen, in the implementation ``name``; raises what torch raises."""
    attention = _attention()
    if not hasattr(attention, "activate_flash_attention_impl"):
        raise NotOfferedError("this torch has no registry of flash attention")
    before = attention.current_flash_attention_impl()
    try:
        attention.activate_flash_attention_impl(name)
        with _only(FLASH):
            yield
    finally:
        if before is not None:
            attention.activate_flash_attention_impl(before)
        elif attention.current_flash_attention_impl() is not None:
            attention.restore_flash_attention_impl()


def _attention() -> Any:
    """PyTorch's module of attention; what came to it later is asked for before it is used."""
    try:
        from torch.nn import attention
    except ImportError:
        raise NotOfferedError("this torch has no torch.nn.attention") from None
    return attention


def _only(kernel: str) -> AbstractContextManager[Any]:
    """The context in which ``kernel`` alone may be chosen."""
    if not kernel:
        return nullcontext()
    attention = _attention()
    try:
        only: AbstractContextManager[Any] = attention.sdpa_kernel(
            [getattr(attention.SDPBackend, MEMBERS[kernel])]
        )
    except AttributeError:
        said = f"scaled_dot_product_attention of this torch has no backend {MEMBERS[kernel]}"
        raise NotOfferedError(said) from None
    return only


def _look(step: Step, kernel: str, session: BackendSession) -> tuple[dict[str, Scalar], str] | str:
    events, _ = profiled(step, session.device)
    if not events:
        return "the profiler recorded nothing"
    return judged((event.name for event in events), kernel)


def judged(operators: Iterable[str], kernel: str) -> tuple[dict[str, Scalar], str]:
    """What a step's ``operators`` say of its attention, and what it is degraded by."""
    calls, ran, back = 0, Counter[str](), Counter[str]()
    for name in operators:
        calls += name == ENTRY
        back_end = next((back_end for start, back_end in KERNELS.items() if name.startswith(start)), "")
        if back_end:
            (back if name.endswith(BACKWARD) else ran)[back_end] += 1
    facts: dict[str, Scalar] = {"sdpa_calls": calls, "sdpa_kernels": _counted(ran) or "none"}
    if back:
        facts["sdpa_backward_kernels"] = _counted(back)
    if not calls and not ran:
        return facts, "the model never calls scaled_dot_product_attention"
    others = sorted(ran.keys() - {kernel}) if kernel else []
    if kernel in ran and not others and back.keys() - {kernel}:
        return facts, (
            f"{kernel} attention was requested, but the backward pass used {' and '.join(sorted(back))}"
        )
    if kernel and (others or kernel not in ran):
        return (
            facts,
            f"{kernel} attention was requested, but {' and '.join(others) or 'an unnamed kernel'} ran",
        )
    return facts, ""


def _counted(ran: Counter[str]) -> str:
    return ", ".join(f"{name} x{count}" for name, count in sorted(ran.items()))
