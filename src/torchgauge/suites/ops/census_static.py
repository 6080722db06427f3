"""The static operator census: what the dispatcher holds for a device, asked without running anything.

Worker side, and runnable by path in any interpreter with torch: standard library and torch only. For each
aten overload the dispatch key of the device is looked up: a kernel of its own, the backend's fallback, a
composite kernel made of other operators, or nothing. A composite operator works wherever its parts work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NATIVE, FALLBACK, COMPOSITE, MISSING = KINDS = ("native", "fallback", "composite", "missing")
_COMPOSITE_KEYS = (
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
)


def census(device_type: str) -> dict[str, Any]:
    """Kind of every aten overload on a torch device type, with ``torch``, ``key`` and ``fallback``.

    ``operators`` maps ``aten::name.overload`` to one of :data:`KINDS`. Raises ``ValueError`` for a type
    without a dispatch key and ``RuntimeError`` for one that torch does not know.
    """
    import torch

    key = dispatch_key(device_type)
    fallback = has_fallback(key)
    return {
        "torch": torch.__version__,
        "device": device_type,
        "key": key,
        "fallback": fallback,
        "operators": {name: kind_of(name, key, fallback) for name in aten_overloads()},
    }


def aten_overloads() -> Iterator[str]:
    """Full names of all aten operators with a schema, overload by overload, sorted."""
    import torch

    names = sorted({name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")})
    for name in names:
        base, _, overload = name.partition(".")
        if torch._C._get_schema(base, overload) is not None:
            yield name


def kind_of(name: str, key: str, fallback: bool) -> str:
    """How the dispatcher would serve operator ``name`` under dispatch key ``key``."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has(name, key):
        return NATIVE
    if any(has(name, composite) for composite in _COMPOSITE_KEYS):
        return COMPOSITE
    return FALLBACK if fallback else MISSING


def dispatch_key(device_type: str) -> str:
    """The name of the dispatch key of tensors on a device type, as the dispatcher spells it."""
    import torch

    kind = torch.device(device_type).type
    if kind == torch._C._get_privateuse1_backend_name():
        return "PrivateUse1"
    key = str(torch._C._dispatch_key_for_device(kind))
    if not key:
        raise ValueError(f"device type {device_type!r} has no dispatch key")
    return key


def has_fallback(key: str) -> bool:
    """Whether the backend registered one kernel for every operator that it lacks."""
    import torch

    parse, has = torch._C._dispatch_key_parse, torch._C._dispatch_has_backend_fallback
    return bool(has(parse(key)))


def main(arguments: list[str]) -> int:
    """Write the census of the device type that is named second to the file that is named first."""
    target, device_type = arguments
    try:
        answer = census(device_type)
    except Exception as error:  # noqa: BLE001  the top of a child: its parent reads what was raised
        answer = {"problem": f"{type(error).__name__}: {error}".splitlines()[0]}
    Path(target).write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
