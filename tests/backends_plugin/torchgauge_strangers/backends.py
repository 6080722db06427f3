"""Backends of a vendor: one that keeps the rules of the seam, and one for each way to break them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.prepared import BackendSession, Look, Prepared
from torchgauge.records import Configuration, Measurement, Workload


@dataclass(frozen=True)
class PoliteOptions:
    """The options of ``polite``."""

    word: str = "hello"
    times: int = 1


@dataclass(frozen=True)
class _Quitting(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """Ends the process that asks."""
        raise SystemExit(4)


@dataclass(frozen=True)
class _Refusing(BackendDescriptor):
    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> Any:
        """A reason, or what is none."""
        if self.name == "refuses":
            return f"no {workload.model} on {device.name}"
        raise ValueError("I do not know")


def _named(name: str, **more: Any) -> BackendDescriptor:
    return BackendDescriptor(name, f"{name}; for tests only", __name__, **more)


POLITE = _named("polite", options=PoliteOptions)
WRONG, RAISES, HANDS_A_NUMBER = _named("wrong"), _named("raises"), _named("hands_a_number")
UNDECLARED, HANGS, NUMBERED = _named("undeclared"), _named("hangs"), _named("numbered")
BLIND, TORN, ASCENDS, IDLE = _named("blind"), _named("torn"), _named("ascends"), _named("idle")
INDEBTED, WANDERS = _named("indebted"), _named("wanders")
LEAVES, TRIPS, MEDDLES = _named("leaves"), _named("trips"), _named("meddles")
LISTED: Any = BackendDescriptor("listed", "for tests only", __name__, options=["word"])  # type: ignore[arg-type]
QUITS = _Quitting("quits", "for tests only", __name__)
REFUSES = _Refusing("refuses", "for tests only", __name__)
REFUSES_BADLY = _Refusing("refuses_badly", "for tests only", __name__)
NEEDY = _named("needy", packages=("torchgauge_no_such_package",))
NOWHERE = BackendDescriptor("nowhere", "for tests only", "torchgauge_strangers.not_there")


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Any:
    """What the backend of ``configuration`` does."""
    print(f"{configuration.backend} prepares\n" * 1000)
    if configuration.backend == "polite":
        return _polite(subject, configuration, session)
    if configuration.backend in MADE:
        return MADE[configuration.backend](subject.module)
    if configuration.backend == "raises":
        raise ValueError("I cannot do this")
    if configuration.backend == "leaves":
        os._exit(3)
    if configuration.backend == "meddles":
        import torch

        os.chdir("/")
        torch.set_default_dtype(torch.float64)
        return _called(subject.module)
    if configuration.backend == "hangs":
        time.sleep(600)
    return 3


def _called(module: Any, **more: Any) -> Prepared:
    """Return ``module`` behind a call of the plugin's own."""
    return Prepared(partial(module), **more)


MADE: dict[str, Callable[[Any], Prepared]] = {
    "idle": Prepared,
    "wrong": lambda module: Prepared(lambda *args, **kwargs: module(*args, **kwargs) + 1.0),
    "undeclared": lambda module: _called(module, measurements=[Measurement("swiftness", "1/s", (1.0,))]),
    "indebted": lambda module: _called(module, measurements=[Measurement("cache_hits", "count", (-4.0,))]),
    "numbered": lambda module: _called(module, evidence={1: "one", "two": 2}),
    "blind": lambda module: _called(module, look=Look("blind_look_unknown", lambda step, eager: None)),
    "torn": lambda module: _called(module, close=_tear),
    "trips": lambda module: Prepared(_trip),
    "ascends": lambda module: Prepared(_Climbing(module)),
    "wanders": lambda module: Prepared(lambda *args, **kwargs: _wander(module(*args, **kwargs))),
}
"""What is no more than what it hands back."""


class _Climbing:
    """The module with an optimizer whose sign is wrong."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def make_optimizer(self, parameters: Any, rate: float) -> Any:
        """AdamW that climbs."""
        import torch

        return torch.optim.AdamW(parameters, lr=rate, maximize=True)


def _wander(result: Any) -> Any:
    """``result``, somewhere else and by another number of threads."""
    import torch

    os.chdir("/")
    torch.set_num_threads(2 if torch.get_num_threads() == 1 else 1)
    return result


def _trip(*args: Any, **kwargs: Any) -> Any:
    raise ValueError("I tripped")


def _tear() -> None:
    raise ValueError("I do not close")


def _polite(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    inside = SimpleNamespace(now=0)

    @contextmanager
    def context() -> Iterator[None]:
        inside.now += 1
        try:
            yield
        finally:
            inside.now -= 1

    def call(*args: Any, **kwargs: Any) -> Any:
        if inside.now != 1:
            raise AssertionError("the module is called outside of its context")
        return subject.module(*args, **kwargs)

    made = Prepared(call, context, evidence={"polite_word": dict(configuration.options)["word"]})
    with context():
        session.first_call(call)
    made.measurements.append(Measurement("cache_hits", "count", (7.0,), provenance="for tests only"))
    made.look = Look("polite_look_unknown", lambda step, eager: (step(), ({"polite_look": "taken"}, ""))[1])
    made.close = lambda: print("polite is closed")
    return made
