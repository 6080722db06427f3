"""Backend ``sdpa``: eager with one back end of ``scaled_dot_product_attention``, and which one really ran.

A request is no proof: some devices run another kernel without a word. So the kernel is read from a profiled
step, and a case that ran another one is degraded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.prepared import BackendSession, Look, Prepared, Step
from torchgauge.harness.worker.profiled_step import profiled
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
    """``kernel`` is one of the back ends, or "" for PyTorch's own choice."""

    kernel: str = ""


@dataclass(frozen=True)
class _Sdpa(BackendDescriptor):
    def cannot_run(self, workload: Any, configuration: Configuration, device: Any) -> str | None:
        """A back end that does not exist."""
        kernel = dict(configuration.options).get("kernel", "")
        return None if kernel in ("", *MEMBERS) else f"no back end {kernel!r}: one of {', '.join(MEMBERS)}"


BACKEND = _Sdpa(
    name="sdpa",
    doc="eager with one back end of scaled_dot_product_attention; the kernel that ran is the evidence",
    implementation=__name__,
    options=SdpaOptions,
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The module in the context of its back end, tried once.

    Raises :class:`NotOfferedError` where the back end cannot serve the model's inputs.
    """
    kernel = SdpaOptions(**dict(configuration.options)).kernel  # type: ignore[arg-type]  # checked when read
    prepared = Prepared(subject.module, context=lambda: _only(kernel))
    prepared.look = Look("sdpa_kernels_unknown", lambda step, _: _look(step, kernel, session))
    try:
        with prepared.context():
            session.first_call(prepared.call)
    except RuntimeError as error:
        if any(words in str(error) for words in NONE_VIABLE):
            raise NotOfferedError(f"back end {kernel!r} cannot serve this model here: {error}") from error
        raise
    return prepared


def _only(kernel: str) -> AbstractContextManager[Any]:
    """The context in which ``kernel`` alone may be chosen."""
    if not kernel:
        return nullcontext()
    try:
        from torch.nn import attention

        only: AbstractContextManager[Any] = attention.sdpa_kernel(
            [getattr(attention.SDPBackend, MEMBERS[kernel])]
        )
    except (ImportError, AttributeError):
        said = f"this torch has no back end {MEMBERS[kernel]} of scaled_dot_product_attention"
        raise NotOfferedError(said) from None
    return only


def _look(step: Step, kernel: str, session: BackendSession) -> tuple[dict[str, Scalar], str] | str:
    events, _ = profiled(step, session.device)
    if not events:
        return "the profiler recorded nothing"
    return judged((event.name for event in events), kernel)


def judged(operators: Iterable[str], kernel: str) -> tuple[dict[str, Scalar], str]:
    """What a step's ``operators`` say of its attention, and what it is degraded by."""
    calls, ran = 0, Counter[str]()
    for name in operators:
        calls += name == ENTRY
        back_end = next((back_end for start, back_end in KERNELS.items() if name.startswith(start)), "")
        if back_end and not name.endswith("_backward"):
            ran[back_end] += 1
    facts: dict[str, Scalar] = {
        "sdpa_calls": calls,
        "sdpa_kernels": ", ".join(f"{name} x{count}" for name, count in sorted(ran.items())) or "none",
    }
    if not calls and not ran:
        return facts, "the model never calls scaled_dot_product_attention"
    others = sorted(ran.keys() - {kernel}) if kernel else []
    if kernel and (others or kernel not in ran):
        return (
            facts,
            f"asked for {kernel} attention, ran {' and '.join(others) or 'a kernel of no known name'}",
        )
    return facts, ""
