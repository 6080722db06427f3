"""PyTorch's own operator database (OpInfo) as the installed wheel has it. Worker side."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from torchgauge.suites.lacking import absent_package

DATABASE = "torch.testing._internal.common_methods_invocations"
"""PyTorch promises nothing of this module; it has been there, under this name, for years."""
INSTALL = "pip install expecttest numpy"
"""What the database needs beside torch and torch itself does not install."""


class NoDatabaseError(ModuleNotFoundError):
    """A package that the wheel's operator database imports is not installed: ``name``."""


@cache
def operators() -> dict[str, Any]:
    """All entries of the database by full name; raises :class:`NoDatabaseError`.

    The full name is the operator's name and, after a dot, the entry's variant. Where a version has two
    entries of one name, the later ones get ``#2``, ``#3``.
    """
    try:
        op_db = import_module(DATABASE).op_db
    except ModuleNotFoundError as error:
        if not (missing := absent_package(error)):
            raise
        raise NoDatabaseError(
            f"package {missing!r} is not installed, which PyTorch's operator database needs; try: {INSTALL}",
            name=missing,
        ) from error
    found: dict[str, Any] = {}
    for op in op_db:
        name, number = full_name(op), 1
        while (name if number == 1 else f"{name}#{number}") in found:
            number += 1
        found[name if number == 1 else f"{name}#{number}"] = op
    return found


def full_name(op: Any) -> str:
    """Name and variant of an entry, joined by a dot."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def torch_dtype(name: str) -> Any:
    """The dtype called ``name``, None where this version has none."""
    import torch

    found = getattr(torch, name, None)
    return found if isinstance(found, torch.dtype) else None


def dtype_name(dtype: Any) -> str:
    """``float32`` of ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def overloads(op: Any) -> Iterator[Any]:
    """The aten overloads that carry the operator's name; none where it is made of others."""
    import torch

    for name in dict.fromkeys(filter(None, (op.aten_name, op.name))):
        packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
        if packet is not None:
            yield from (getattr(packet, each) for each in packet.overloads())


def draws_random_numbers(op: Any) -> bool:
    """Whether PyTorch tags an overload of the operator as one that reads a generator."""
    import torch

    tag = torch.Tag.nondeterministic_seeded
    return any(tag in each.tags for each in overloads(op))


def listing() -> list[dict[str, Any]]:
    """Name, tags and dtypes of all entries as plain values, in the database's order.

    ``dtypes`` and ``backward`` map a device type (``""``: every other one) to names of dtypes.
    """
    found = []
    for name, op in operators().items():
        types = {_type_of(key): getattr(op, key) for key in vars(op) if key.startswith("dtypesIf")}
        types.update(getattr(op, "dtypesIf", {}))
        types = {key: value for key, value in types.items() if key}
        found.append(
            {
                "name": name,
                "dtypes": {"": _names(op.dtypes), **_differing(types, op.dtypes)},
                "backward": _backward(op, types),
                "out": bool(op.supports_out),
                "inplace": op.get_inplace() is not None,
            }
        )
    return found


def _backward(op: Any, types: dict[str, Any]) -> dict[str, list[str]]:
    if not op.supports_autograd:
        return {}
    import torch

    common = op.supported_backward_dtypes(torch.device("meta").type) & set(op.dtypes)
    found = {"": _names(common)}
    for key, listed in types.items():
        try:
            there = op.supported_backward_dtypes(key) & set(listed)
        except (RuntimeError, TypeError):  # a type that this build does not know
            continue
        if there != common:
            found[key] = _names(there)
    return found


def _differing(types: dict[str, Any], common: Any) -> dict[str, list[str]]:
    return {
        key: _names(value) for key, value in types.items() if value is not None and set(value) != set(common)
    }


def _names(dtypes: Any) -> list[str]:
    return sorted(map(dtype_name, dtypes))


def _type_of(attribute: str) -> str:
    return attribute.removeprefix("dtypesIf").lower()


def main(arguments: list[str]) -> int:
    """Write the listing, or why there is none, to the file that is named: run as a child of the target."""
    import json
    from importlib import metadata
    from pathlib import Path

    answer: dict[str, Any] = {"torch": metadata.version("torch"), "missing": "", "operators": []}
    try:
        answer["operators"] = listing()
    except NoDatabaseError as error:
        answer["missing"] = error.name
    Path(arguments[0]).write_text(json.dumps(answer), encoding="utf-8")
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
