"""A user's callables as modules, without compiled code in them; only the worker imports this file."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch


class CalledModule(torch.nn.Module):  # type: ignore[misc]
    """A callable that is not a module, such as a function, a bound method or a ``functools.partial``.

    A module below it is registered, so that it is placed and copied as one.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        bound = call.func if isinstance(call, functools.partial) else call
        owner = bound.__self__ if isinstance(bound, types.MethodType) else bound
        self.inner = owner if isinstance(owner, torch.nn.Module) else None
        self.method = bound.__name__ if isinstance(bound, types.MethodType) and self.inner is not None else ""
        self.given = (call.args, call.keywords) if isinstance(call, functools.partial) else ((), {})
        self.call = bound if self.inner is None else None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        call = self.call or (getattr(self.inner, self.method) if self.method else self.inner)
        return call(*self.given[0], *args, **{**self.given[1], **kwargs})  # type: ignore[misc]


def as_module(model: Any) -> torch.nn.Module:
    """Return ``model`` as a module; of one that ``torch.compile`` wrapped, the module or function inside.

    Configurations compile, and the caller's compiled code would stand in the place of eager.
    """
    model = uncompiled(model)
    return model if isinstance(model, torch.nn.Module) else CalledModule(model)


def uncompiled(value: Any) -> Any:
    """Return the module or function that ``torch.compile`` wrapped; ``value`` itself if it wrapped none.

    What ``torch.compiler.disable()`` wrapped is returned as it is, and so is a decorated function that has
    copied the attributes of compiled code.
    """
    disabled = type(getattr(value, "dynamo_ctx", None)).__name__ == "DisableContext"
    outer = getattr(value, "_torchdynamo_wrapper_id", id(value)) != id(value)
    if disabled or outer or hasattr(value, "_torchdynamo_disable"):
        return value
    return getattr(value, "_orig_mod", getattr(value, "_torchdynamo_orig_callable", value))


def without_compiled_parts(module: torch.nn.Module) -> bool:
    """Replace each compiled part of ``module`` by the part inside; return whether there was one.

    Parts are modules below it, and functions that are attributes of these.
    """
    compiled = False
    for part in [*module.modules()]:
        if part._compiled_call_impl is not None:  # by part.compile()
            part._compiled_call_impl, compiled = None, True
        for table in (part._modules, vars(part)):
            for name, value in table.items():
                if callable(value) and (inner := uncompiled(value)) is not value:
                    table[name], compiled = inner, True
    return compiled


def set_mode(module: torch.nn.Module, training: bool) -> None:
    """Put ``module`` in training or evaluation mode; an exported program stays in that of its export."""
    try:
        module.train(training)
    except NotImplementedError as error:
        if training:
            raise NotImplementedError(f"an exported program cannot be trained: {error}") from error
