"""The layout that a configuration gives to tensors of four dimensions, such as channels-last.

A model may create tensors in any layout. So the tensors that a step reads are checked after each checked step
and each timed block, and the module's inputs while eager is checked. Runs in the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchgauge.errors import NotOfferedError, NotRunError
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.suites.leaves import leaves

OTHER = "the configuration did not run: the layout of {path} is not {name}"


def lay_out(subject: Subject, name: str) -> None:
    """Give the tensors that a step of ``subject`` reads the memory format ``name``.

    Raises :class:`NotOfferedError` where all of them have it as they are.
    """
    misplaced = dict(_others(subject.built.tensors(subject), name))
    if not misplaced:
        problem = f"{name} changes nothing: no input and no parameter of four dimensions has another layout"
        raise NotOfferedError(problem)
    for tensor in misplaced.values():
        tensor.data = tensor.data.contiguous(memory_format=getattr(torch, name))


def refuse_others(value: Any, name: str) -> None:
    """Raise :class:`NotRunError` for a tensor of four dimensions in ``value`` that is not ``name``."""
    for path, _ in _others(value, name):
        raise NotRunError(OTHER.format(path=path, name=name))


@contextmanager
def watched(subject: Subject, name: str) -> Iterator[None]:
    """Raise :class:`NotRunError` where the module is entered inside with a tensor that is not ``name``."""

    def look(_module: Any, args: Any, kwargs: Any) -> None:
        refuse_others({"args": args, "kwargs": kwargs}, name)

    handle = subject.module.register_forward_pre_hook(look, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _others(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield path and tensor of each tensor of four dimensions in ``value`` that is not ``name``."""
    layout = getattr(torch, name)
    for path, leaf in leaves(value, ""):
        if isinstance(leaf, torch.Tensor) and leaf.ndim == 4 and not leaf.is_contiguous(memory_format=layout):
            yield path.lstrip("."), leaf
