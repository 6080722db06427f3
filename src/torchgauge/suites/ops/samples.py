"""Inputs of an operator: PyTorch's own samples, made on the host and carried to where they are needed.

Worker side. Samples are made on the host from one seed, so that every device gets the same numbers and a
sample generator needs nothing of the device under test.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any

from torchgauge.suites.suite import HOST

SEED = 1234
_SHIFT: list[int] = []
"""What is added to seeds for the moment."""
_FIND_TEST = "extract_test_fn"


def host_samples(op: Any, dtype: Any, limit: int, *, requires_grad: bool = False) -> Iterator[Any]:
    """The first ``limit`` samples of ``op`` on the host; all of them where ``limit`` is 0."""
    seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = iter(op.sample_inputs(HOST, dtype, requires_grad=requires_grad))
        yield from islice(made, limit or None)


def seed(number: int) -> None:
    """Seed every generator of the host that a sample generator or an operator may read."""
    random.seed(number)
    _seed_host(number)
    try:
        import numpy as np
    except ImportError:
        return
    np.random.seed(number)


@contextlib.contextmanager
def other_seeds() -> Iterator[None]:
    """Turn every seed into another one, those too that an operator of the database sets for itself."""
    _SHIFT.append(1)
    try:
        yield
    finally:
        _SHIFT.pop()


def _seed_host(number: int) -> Any:
    import torch

    return torch.default_generator.manual_seed(int(number) + sum(_SHIFT))


@contextlib.contextmanager
def outside_tests() -> Iterator[None]:
    """Spare upstream's samples two things that only its own tests need, and that take most of the time.

    Before each sample they call ``torch.manual_seed``, which queues a call with a stack trace for every
    backend that is built in and not started; and they read the whole stack for the test that asked.
    """
    import torch

    places: list[tuple[Any, str, Any]] = [(torch, "manual_seed", _seed_host)]
    modules = [sys.modules.get(f"torch.testing._internal.{name}") for name in ("common_utils", "opinfo.core")]
    places += [(m, _FIND_TEST, lambda: None) for m in modules if hasattr(m, _FIND_TEST)]
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, ours in places:
        setattr(module, name, ours)
    try:
        yield
    finally:
        for (module, name, _), theirs in zip(places, before, strict=True):
            setattr(module, name, theirs)


def carried(sample: Any, device: Any, on_host: Collection[int] = ()) -> Any:
    """``sample`` on ``device``: tensors of their own memory; what names the host names the device.

    Tensors ``on_host``, counted in the order of input, arguments and keywords, stay where they are.
    """
    import torch

    where = torch.device(device)
    tensors = enumerate(tensors_of((sample.input, sample.args, sample.kwargs)))
    stay = {id(tensor) for place, tensor in tensors if place in on_host}

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return _leaf(value, _copied(value, value.device if id(value) in stay else where))

    return _with_device_names(sample.transform(move), where)


def widened(sample: Any) -> Any:
    """``sample`` on the host with every floating-point tensor and dtype in float64 or complex128."""
    import torch

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            wide = wide_dtype(value.dtype)
            return _leaf(value, _copied(value, value.device, wide))
        if isinstance(value, torch.dtype):
            return wide_dtype(value) or value
        return value

    return sample.transform(widen)


def wide_dtype(dtype: Any) -> Any:
    """The widest dtype of the kind of ``dtype``; None where arithmetic in ``dtype`` is exact already."""
    import torch

    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else None


def tensors_of(value: Any) -> Iterator[Any]:
    """All tensors in nested tuples, lists and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_of(item)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change`` applied to all its tensors; a tuple with named fields keeps none."""
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [mapped(item, change) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def described(sample: Any) -> str:
    """Shapes and dtypes of the inputs, in one line of at most 300 characters."""
    import torch

    def short(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (tuple, list)):
            return f"({', '.join(map(short, value))})"
        return repr(value)[:60]

    parts = [short(sample.input), *map(short, sample.args)]
    parts += [f"{key}={short(value)}" for key, value in sample.kwargs.items()]
    return ", ".join(parts)[:300]


def _copied(value: Any, device: Any, dtype: Any = None) -> Any:
    """A copy of ``value``, so that an operator that writes to its inputs spoils nobody else's."""
    there = value.detach().to(device=device, dtype=dtype or value.dtype)
    shared = there.layout == value.layout and there.device == value.device and there.dtype == value.dtype
    return there.clone() if shared else there


def _leaf(old: Any, new: Any) -> Any:
    return new.requires_grad_(True) if old.requires_grad and not new.requires_grad else new


def _with_device_names(sample: Any, where: Any) -> Any:
    """An argument called ``device`` that names the host names the device, in the form that it had."""
    import torch

    named = sample.kwargs.get("device")
    if isinstance(named, (str, torch.device)) and torch.device(named).type == HOST:
        sample.kwargs = {**sample.kwargs, "device": str(where) if isinstance(named, str) else where}
    return sample
