"""A suite whose models fail each night: tonight by another cause, or by the same one in other words."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="causes",
    doc="Models that fail by one cause and then by another; for tests only.",
    data=Path(__file__).parent / "causes.yaml",
    builder="torchgauge_faults.causes:build",
)

TONIGHT = "TORCHGAUGE_FAULTS_TONIGHT"
"""Variable that is set on the night on which causes change."""

SHAPES = "mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)"
Fails = Callable[[], object]


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Return a step that fails as the model does on this night; one model fails here on the second night."""
    tonight = TONIGHT in os.environ
    if workload.model == "crash_earlier" and tonight:
        os.abort()
    models = CHANGED.get(workload.model) or SAME[workload.model]
    return BuiltWorkload(module=models[tonight], framework="python")


def raising(error: BaseException, cause: BaseException | None = None) -> Fails:
    """Return a step that raises ``error``, because of ``cause``."""

    def step() -> None:
        raise error from cause

    return step


def missing(operator: str) -> Fails:
    """Return a step that needs an operator which the device lacks, in PyTorch's words."""
    said = f"Could not run '{operator}' with arguments from the 'fake' backend. This could be because"
    return raising(
        NotImplementedError(f"{said}\n\nCPU: registered at /build/{number()}/RegisterCPU.cpp:{number()}")
    )


def ending(number: int) -> Fails:
    """Return a step that ends its process by a signal."""
    return lambda: os.kill(os.getpid(), number)


def number() -> int:
    """Return another number in each process."""
    return random.SystemRandom().randrange(1000, 1_000_000)


def path() -> str:
    """Return another path in each process."""
    return f"/home/{random.choice(['ada', 'bob', 'eve'])}/run-{number()}/model_{number()}.py"


def first_place() -> None:
    """Fail without a word."""
    raise AssertionError


def second_place() -> None:
    """Fail without a word, too."""
    raise AssertionError


def moved() -> None:
    """Fail here."""
    raise RuntimeError("it moves")


def moved_since() -> None:
    """Fail there."""
    raise RuntimeError("it moves")


CHANGED: dict[str, tuple[Fails, Fails]] = {
    "loses_kernel": (raising(RuntimeError(SHAPES)), missing("aten::addmm")),
    "gains_kernel": (missing("aten::addmm"), raising(RuntimeError(SHAPES))),
    "other_kernel": (missing("aten::gelu"), missing("aten::topk")),
    "other_dtype": (
        raising(RuntimeError("\"baddbmm\" not implemented for 'Half'")),
        raising(RuntimeError("\"baddbmm\" not implemented for 'BFloat16'")),
    ),
    "names_kernel": (
        raising(NotImplementedError("not yet")),
        raising(NotImplementedError("operator 'aten::erfinv' is not currently implemented for fake")),
    ),
    "other_type": (raising(ValueError("it does not fit")), raising(TypeError("it does not fit"))),
    "other_message": (
        raising(RuntimeError("fake error: device-side assert triggered")),
        raising(RuntimeError("fake error: an illegal memory access was encountered")),
    ),
    "other_key": (raising(KeyError("weight")), raising(KeyError("bias"))),
    "other_root": (
        raising(RuntimeError("the step failed"), ValueError("shapes differ")),
        raising(RuntimeError("the step failed"), KeyError("bias")),
    ),
    "new_root": (
        raising(RuntimeError("the step failed")),
        raising(RuntimeError("the step failed"), KeyError("bias")),
    ),
    "other_place": (first_place, second_place),
    "no_layer": (
        raising(RuntimeError(SHAPES)),
        raising(AttributeError("module 'torch.nn' has no attribute 'NoSuchLayer'")),
    ),
    "other_index": (
        raising(IndexError("list index out of range")),
        raising(IndexError("tuple index out of range")),
    ),
    "other_arithmetic": (
        raising(OverflowError("math range error")),
        raising(ZeroDivisionError("division by zero")),
    ),
    "other_tensor": (
        raising(RuntimeError("expected all tensors to be on the same device")),
        raising(RuntimeError("expected scalar type Float but found Half")),
    ),
    "other_compiler": (
        raising(RuntimeError("backend='x' raised: no lowering for aten::sort")),
        raising(RuntimeError("backend='x' raised: an assertion of the scheduler")),
    ),
    "other_rank": (
        raising(RuntimeError("expected 3 dimensions, got [4, 4]")),
        raising(RuntimeError("expected 3 dimensions, got [4, 4, 4, 4]")),
    ),
    "other_signal": (ending(signal.SIGSEGV), ending(signal.SIGABRT)),
    "other_exit": (lambda: os._exit(3), lambda: os._exit(4)),
    "crash_earlier": (ending(signal.SIGABRT), ending(signal.SIGABRT)),
}
"""Twenty models with how they fail on the first nights, and how tonight: the status is the same."""

_NOISE: dict[str, Fails] = {
    "address": raising(RuntimeError(f"cannot call <Model object at {number():#x}>")),
    "path": raising(RuntimeError(f"cannot read {path()!r}")),
    "line": raising(RuntimeError(f'File "{path()}", line {number()}, in forward: it does not fit')),
    "process": raising(RuntimeError(f"process {os.getpid()} of {number()} gave up")),
    "time": raising(RuntimeError(f"gave up after {number() / 7:.2f}s, the last try took {number()}ms")),
    "shape": raising(
        RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({number()}x8 and 16x{number()})")
    ),
    "size": raising(
        RuntimeError(f"no room for {number() / 7:.2f} GiB beside {number()}MB on port 127.0.0.1:{number()}")
    ),
    "kernel": missing(random.choice(["aten::addmm", "aten::addmm.out"])),
    "root": raising(RuntimeError(f"failed after {number()} s"), OSError(f"{path()} is gone")),
    "signal": ending(signal.SIGABRT),
}
SAME = {name: (fails, fails) for name, fails in _NOISE.items()} | {"moved": (moved, moved_since)}
"""Eleven models with one cause each, whose messages have different numbers and paths each night."""
