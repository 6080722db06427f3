"""What the worker really built: the second half of a workload's identity."""

from __future__ import annotations

from typing import Any

from torchgauge.records import Realised, digest
from torchgauge.suites.suite import BuiltWorkload


def realise(built: BuiltWorkload) -> Realised:
    """Hash of parameter and buffer names, shapes and dtypes, of inputs and of the model's config.

    Inputs that stand for other ones have another hash than those.

    Taken before the harness casts or moves anything, so that it is equal on every device and dtype.
    """
    module = built.module
    named = getattr(module, "named_parameters", None)
    parameters = [(n, list(p.shape), str(p.dtype)) for n, p in named()] if named else []
    named = getattr(module, "named_buffers", None)
    buffers = [(n, list(b.shape), str(b.dtype)) for n, b in named()] if named else []
    inputs = [*_describe(built.args, "args"), *_describe(built.kwargs, "kwargs")]
    inputs += [built.stands_for] if built.stands_for else []
    return Realised(
        hash=digest([parameters, buffers, inputs, _config(module)]),
        parameters=sum(_count(shape) for _, shape, _ in parameters),
        buffers=sum(_count(shape) for _, shape, _ in buffers),
        inputs=", ".join(inputs),
        notes=tuple(built.notes),
    )


def _describe(value: Any, path: str, around: tuple[int, ...] = ()) -> list[str]:
    """Return a line for each tensor of ``value``; the containers ``around`` it are not described again."""
    if id(value) in around:
        return []
    around = (*around, id(value))
    if getattr(value, "is_nested", False) and str(value.layout) == "torch.strided":  # it has no shape
        value = value.unbind()
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        shape = "x".join(str(n) for n in value.shape)
        return [f"{path}: {str(value.dtype).removeprefix('torch.')}[{shape}]"]
    if isinstance(value, dict):
        return [line for key in value for line in _describe(value[key], f"{path}.{key}", around)]
    if isinstance(value, (list, tuple)):
        return [line for i, item in enumerate(value) for line in _describe(item, f"{path}.{i}", around)]
    return [] if value is None else [f"{path}: {type(value).__name__}"]


def _config(module: Any) -> str:
    """Digest of a transformers config without the version and the path it came from."""
    config = getattr(module, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        return ""
    values = {k: v for k, v in config.to_dict().items() if k not in ("transformers_version", "_name_or_path")}
    return digest(repr(sorted(values.items(), key=lambda item: item[0])))


def _count(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
