"""Plants of which the compiler gives up, or is switched off; worker side."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge_faults.planted.bodies import Around, Run


class Counting(Around):
    """A model that its own number of calls is part of: the compiler compiles it again for each."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.numbers, self.calls = numbers, 0

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        self.calls = (self.calls + 1) % self.numbers
        return super().forward(x + 0.0 * self.calls)


class Staying(Counting):
    """A model that says after some calls that nothing is to be compiled again."""

    seen = 0

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        _no_more_soon(self)
        return super().forward(x)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _no_more_soon(model: Staying) -> None:
    model.seen += 1
    if model.seen > 12:  # eager's runs and the first compiled ones
        _set_stance("eager_on_recompile")


def _set_stance(stance: str) -> None:
    """Say what the compiler is to do from now on; raises ``NotImplementedError`` before torch 2.6."""
    set_stance = getattr(torch.compiler, "set_stance", None)
    if set_stance is None:
        raise NotImplementedError(f"torch {torch.__version__} has no torch.compiler.set_stance")
    set_stance(stance)


def switched_off() -> Around:
    """A model that switches the compiler off."""
    torch._dynamo.config.disable = True
    return Around()


def forced_eager() -> Around:
    """A model that asks for eager."""
    _set_stance("force_eager")
    return Around()


def suppressed(run: Run) -> Run:
    """``run``, with a compiler that was told to say nothing of what it cannot compile."""
    torch._dynamo.config.suppress_errors = True
    return run


def untraceable() -> Run:
    """What runs an operator before the body that cannot be traced."""

    @torch.library.custom_op("torchgauge_planted::untraceable", mutates_args=())  # type: ignore[untyped-decorator]
    def untraceable(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @untraceable.register_fake  # type: ignore[untyped-decorator]
    def _(_: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("this operator has no shape before it has run")

    return lambda body, x: body(torch.ops.torchgauge_planted.untraceable(x))


def without_cache() -> Around:
    """A model that switches the caches off."""
    import torch._inductor.config

    torch._inductor.config.force_disable_caches = True
    return Around()


def with_gradients(body: Any, x: Any) -> Any:
    """The body with gradients, in inference as well: nothing may be frozen."""
    with torch.enable_grad():
        return body(x)


class Uncaptured(Around):
    """A model that switches compiled autograd off before its way back."""

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        found = super().forward(x)
        _no_compiled_autograd()
        return found


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _no_compiled_autograd() -> None:
    torch._C._dynamo.compiled_autograd.set_autograd_compiler(None, False)
