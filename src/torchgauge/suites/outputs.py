"""What a model returned, as named tensors on the host; worker side only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from torchgauge.suites.host import HOST

Observation = dict[str, Any]
"""Path of a value inside the output -> tensor on the host, or a plain scalar."""


def observe(value: Any, prefix: str = "out") -> Observation:
    """Every tensor and scalar in ``value``, detached and copied to the host."""
    return {path: _host(leaf) for path, leaf in _leaves(value, prefix)}


def move(value: Any, device: Any, dtype: Any) -> Any:
    """``value`` with every tensor on ``device`` and floating-point tensors in ``dtype``."""
    if isinstance(value, torch.Tensor):
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)
    if isinstance(value, Mapping):
        return {key: move(item, device, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(move(item, device, dtype) for item in value)
    return value


def _host(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().to(HOST, copy=True)
    return leaf


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Path and value of every tensor and number in ``value``.

    A sparse tensor, which cannot be compared element by element, becomes its indices and its values.
    """
    if value is None or isinstance(value, (str, bytes)):
        return
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_coo:
        whole = value.detach().coalesce()
        yield from _leaves({"indices": whole.indices(), "values": whole.values()}, path)
    elif isinstance(value, (torch.Tensor, bool, int, float)):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}")
    elif dataclasses.is_dataclass(value):
        for item in dataclasses.fields(value):
            yield from _leaves(getattr(value, item.name), f"{path}.{item.name}")
