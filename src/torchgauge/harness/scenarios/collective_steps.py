"""The worker side of scenario ``collective``: calls, exact values, and two bandwidths.

As in nccl-tests, timed calls work on one message again and again: a copy before each would be timed with it.
What a sum makes of that overflows in the end, which costs no time. Every observation begins with the message
as it was, before what is timed and after it, and compares every element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.errors import NotOfferedError
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.accuracy import Verdict
from torchgauge.harness.worker.case_measurements import of
from torchgauge.harness.worker.series import Series
from torchgauge.records import Cause, Measurement, Tolerance
from torchgauge.suites.capabilities import COLLECTIVE
from torchgauge.suites.outputs import observe as to_host

REFUSALS = ("does not support", "not supported", "Unsupported", "not implemented")
"""Words with which a back end says that it has not got a collective at all."""
REFERENCE = "arithmetic on whole numbers"
"""What says what is right: no process is asked."""


def enter() -> None:
    """Switch gradients off for the whole process."""
    torch.set_grad_enabled(False)


def step(subject: Subject) -> Callable[[], Any]:
    """A function that calls once."""
    call, message = subject.call, subject.args[0].clone()
    room = _collective(subject).room(message)
    return lambda: call(message, room)


def observe(subject: Subject) -> dict[str, Any]:
    """What this process has after one call; raises :class:`NotOfferedError` in the words of the back end."""
    try:
        return to_host(step(subject)())
    except RuntimeError as error:
        said = str(error).partition("\n")[0]
        if any(words in said for words in REFUSALS):
            raise NotOfferedError(said) from error
        raise


def reference(subject: Subject) -> dict[str, Any]:
    """What it ought to have."""
    return to_host(_collective(subject).expected(subject.args[0].dtype))


def judge(
    reference: Mapping[str, Any],
    result: Mapping[str, Any],
    _fp64: Mapping[str, Any] | None,
    _tolerance: Tolerance,
) -> Verdict:
    """Whether every element is equal."""
    verdict = Verdict()
    for path, expected in reference.items():
        found = result.get(path)
        if not isinstance(found, torch.Tensor) or _kind(found) != _kind(expected):
            verdict.fail(Cause.TOLERANCE, f"{path}: wrong shape or dtype, expected {expected.shape}")
        elif not torch.equal(found, expected):
            wrong = (found != expected).nonzero().flatten()
            first, gap = int(wrong[0]), (found.double() - expected.double()).abs().max()
            verdict.max_abs_error = max(verdict.max_abs_error, float(gap))
            told = f"element {first} is {float(found[first]):g} instead of {float(expected[first]):g}"
            verdict.fail(
                Cause.TOLERANCE, f"{path}: {len(wrong):,} of {expected.numel():,} elements differ; {told}"
            )
    if odd := result.keys() - reference.keys():
        verdict.fail(Cause.TOLERANCE, f"the result has unexpected parts: {', '.join(sorted(odd)[:3])}")
    return verdict


def details(series: Series, _session: DeviceSession) -> list[Measurement]:
    """Both bandwidths of every block, in its slowest process."""
    collective = _collective(series.subject)
    size = collective.elements * series.subject.args[0].itemsize
    rounds, told = tuple(series.rounds), f"{size:,} bytes by perf_counter, slowest process"
    algorithm = [size / wall for wall in series.wall]
    bus = [collective.factor * each for each in algorithm]
    return [
        of("algorithm_bandwidth", algorithm, told, rounds, series.stopped),
        of("bus_bandwidth", bus, f"{told}, times {collective.factor:.4g}", rounds, series.stopped),
    ]


def _kind(tensor: Any) -> tuple[Any, Any]:
    return tensor.shape, tensor.dtype


def _collective(subject: Subject) -> Any:
    return subject.built.abilities[COLLECTIVE]()
