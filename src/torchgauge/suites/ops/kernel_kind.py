"""Whose kernel served an operator on a device: its own, its fallback, or PyTorch's made of other operators.

Worker side. One call is watched below autograd: an operator that never arrives there under its own name was
taken apart by PyTorch, and for one that arrives the dispatcher says what it holds.
"""

from __future__ import annotations

from typing import Any

from torchgauge.suites.ops.census_static import (
    COMPOSITE,
    FALLBACK,
    NATIVE,
    dispatch_key,
    has_fallback,
    kind_of,
)
from torchgauge.suites.ops.database import overloads

SHOWN = 6
"""Names of parts that are kept."""


def kernel_kind(op: Any, call: Any, device_type: str) -> tuple[str, str]:
    """One of :data:`census_static.KINDS`, and for a composite the operators that ran in its place.

    ``call`` runs the operator once on the device. Both are empty where the operator has no name in aten or
    the call raises.
    """
    names = {_family(each._schema.name) for each in overloads(op)}
    if not names:
        return "", ""
    key = dispatch_key(device_type)
    fallback = has_fallback(key)
    try:
        arrived = _arrived(call)
    except Exception:  # noqa: BLE001  what it raises is judged elsewhere
        return "", ""
    own = next((each for each in arrived if _family(each.partition(".")[0]) in names), None)
    kind = COMPOSITE if own is None else _behind(own, op, key, fallback)
    return kind, ", ".join(list(dict.fromkeys(arrived))[:SHOWN]) if kind == COMPOSITE and own is None else ""


def _behind(own: str, op: Any, key: str, fallback: bool) -> str:
    """The kind of overload ``own``, or of the ``out=`` form where PyTorch makes ``own`` of that alone."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if not has(own, key) and has(own, "CompositeExplicitAutogradNonFunctional"):
        written = [each.name() for each in overloads(op) if each.name().endswith("out")]
        kinds = {kind_of(each, key, fallback) for each in written}
        return next((kind for kind in (NATIVE, FALLBACK) if kind in kinds), kind_of(own, key, fallback))
    return kind_of(own, key, fallback)


def _arrived(call: Any) -> list[str]:
    """Full names of the overloads that reach the device's key during ``call``, in order."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names: list[str] = []

    class Watch(TorchDispatchMode):  # type: ignore[misc]  # torch has no hints here
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Note the operator and let it run."""
            names.append(func.name())
            return func(*args, **(kwargs or {}))

    with Watch():
        call()
    return names


def _family(name: str) -> str:
    """``aten::add`` also of its in-place form ``aten::add_``."""
    return name.removesuffix("_")
