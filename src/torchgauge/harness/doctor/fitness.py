"""Whether a machine is fit to measure on: what was seen during its calibration, judged by stated limits.

Three words: *unfit* where something was seen that makes numbers wrong or wide, *unknown* where nothing speaks
against the machine but too few earlier calibrations speak for it, *fit* otherwise. Each limit is a constant
below with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from torchgauge.counted import counted
from torchgauge.devices.health import Check, CheckState
from torchgauge.harness.doctor.doctor_run import Calibrated, Gap, Reading
from torchgauge.records import Status
from torchgauge.results import units
from torchgauge.results.calibration_history import NEEDED, Word

BUSY = 0.15
"""Share of the CPUs in use by others: above it a thread of ours meets one of theirs in most steps."""
STOLEN = 0.01
"""Share of CPU time taken by the hypervisor: as much as the precision that a run aims at."""
THROTTLED = 0.01
"""Share of the time for which the control group's quota slowed the calibration."""
UTILISED_PERCENT = 10.0
"""Utilisation of the device before anything of ours ran on it."""
WIDE = 0.10
"""Half-width of an interval, relative: ten times the precision that a run aims at."""
DEVICE_FREE = 0.5
"""Share of the device's memory that should be free; below it somebody else holds it."""
AGREEMENT = (0.8, 1.1)
"""Event time over wall time of a block of 20 ms that holds nothing but launches."""
SPEED = ("gemm_flops", "copy_bytes_per_s", "transfer_bytes_per_s", "launch_s")
"""Metrics whose slowness makes a machine unfit; the others are about clocks, and only warn."""


class Verdict(str, Enum):
    """What is said of the machine."""

    FIT = "fit"
    UNFIT = "unfit"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Fitness:
    """The verdict with everything that was looked at; ``summary`` is its one sentence."""

    verdict: Verdict
    summary: str
    reasons: tuple[Check, ...]


def fitness(calibrated: Calibrated) -> Fitness:
    """The verdict on the machine that ``calibrated`` describes."""
    reasons = (*_device(calibrated), *_host(calibrated), *_speed(calibrated))
    failed = [each for each in reasons if each.state is CheckState.FAIL]
    judged = {
        each.series.metric
        for each in calibrated.readings
        if each.comparison.word not in (Word.NO_HISTORY, Word.TOO_NOISY, Word.ABSENT)
    }
    if not calibrated.readings and not any(_serious(gap) for gap in calibrated.gaps):
        return Fitness(Verdict.UNKNOWN, _why_unknown(calibrated), reasons)
    if failed:
        named = "; ".join(f"{each.name}: {each.message}" for each in failed[:3])
        more = f" (and {len(failed) - 3} more)" if len(failed) > 3 else ""
        return Fitness(Verdict.UNFIT, f"{named}{more}", reasons)
    if not judged.intersection(SPEED):
        return Fitness(Verdict.UNKNOWN, _why_unknown(calibrated), reasons)
    return Fitness(Verdict.FIT, "undisturbed, and as fast as before", reasons)


def _why_unknown(calibrated: Calibrated) -> str:
    if not calibrated.readings:
        said = calibrated.gaps[0].reason if calibrated.gaps else "no part of the calibration ran"
        return f"no measurement succeeded ({said})"
    words = {each.comparison.word for each in calibrated.readings}
    if Word.TOO_NOISY in words:
        return "undisturbed, but its earlier calibrations vary too much for a comparison"
    missing = max(1, NEEDED - calibrated.earlier)
    again = "once more" if missing == 1 else f"{missing} times more"
    return (
        f"undisturbed, but a comparison with the usual speed needs {NEEDED} earlier calibrations, and "
        f"{calibrated.earlier} exist: repeat the calibration {again} on a quiet machine"
    )


# --- the device ---------------------------------------------------------------------------------


def _device(calibrated: Calibrated) -> Iterator[Check]:
    for gap in calibrated.gaps:
        if _serious(gap):
            fix = (
                f"torchgauge check --device {calibrated.device} runs the checks; the run's logs have details"
            )
            message = f"{gap.status.value}: {gap.reason}"
            yield Check(part_label(gap.part, gap.dtype), CheckState.FAIL, message, fix)
    if calibrated.environment is None:
        return
    facts = {**dict(calibrated.environment.identity), **dict(calibrated.environment.conditions)}
    busy = facts.get("device.utilization_percent")
    if isinstance(busy, (int, float)):
        yield _limit("device in use", busy, UTILISED_PERCENT, f"{busy:.0f} % before calibration", _OTHERS)
    free, total = facts.get("device.memory_free_bytes"), facts.get("device.memory_bytes")
    if isinstance(free, (int, float)) and isinstance(total, (int, float)) and total > 0:
        message = f"{units.quantity(float(free), 'B')} of {units.quantity(float(total), 'B')} free"
        state = CheckState.OK if free / total >= DEVICE_FREE else CheckState.WARN
        yield Check("device memory", state, message, "" if state is CheckState.OK else _OTHERS)


def _serious(gap: Gap) -> bool:
    """Whether the gap speaks against the device; what was not tried follows from another gap."""
    return gap.status not in (Status.UNSUPPORTED, Status.SKIPPED, Status.NOT_RUN)


_OTHERS = "end other programs on the device (its vendor's tool lists them), or take another device"


# --- the host -----------------------------------------------------------------------------------


def _host(calibrated: Calibrated) -> Iterator[Check]:
    seen = calibrated.conditions
    if seen.busy_before is None:
        yield Check(
            "other work",
            CheckState.WARN,
            "cannot be read on this system",
            "check for other processes with the system's tools",
        )
    else:
        message = f"{seen.busy_before:.0%} of {counted(seen.cores, 'core')} in use before calibration"
        if seen.load_1min is not None:
            message += f"; load {seen.load_1min:.1f}"
        yield _limit("other work", seen.busy_before, BUSY, message, "wait for other programs, or end them")
    if seen.stolen is not None:
        message = f"{seen.stolen:.1%} of the CPU time went to other guests of the hypervisor"
        yield _limit("stolen time", seen.stolen, STOLEN, message, "use a dedicated machine")
    if seen.throttled_s is not None:
        share = seen.throttled_s / max(seen.seconds, 1e-9)
        message = f"the cgroup's CPU quota slowed the calibration for {units.duration(seen.throttled_s)}"
        fix = "use no more threads than the quota has cores (--threads), or raise the quota"
        yield _limit("CPU quota", share, THROTTLED, message, fix)
    if seen.thermal_events is not None:
        message = f"thermally throttled {seen.thermal_events} times during calibration"
        yield _limit("heat", seen.thermal_events, 0, message, "cool the machine, or wait")
    yield from _swap(calibrated)
    if seen.governor is not None:
        ok = seen.governor == "performance"
        fix = (
            ""
            if ok
            else "cpupower frequency-set -g performance (as root), otherwise the first steps are slow"
        )
        yield Check("frequency governor", CheckState.OK if ok else CheckState.WARN, seen.governor, fix)


def _swap(calibrated: Calibrated) -> Iterator[Check]:
    seen = calibrated.conditions
    if seen.swapped_pages:
        message = f"{seen.swapped_pages} pages were swapped during calibration"
        yield Check("swap", CheckState.FAIL, message, "free memory: end other programs")
    elif seen.swap_used_bytes:
        message = f"{units.quantity(float(seen.swap_used_bytes), 'B')} in use, but no page moved"
        yield Check("swap", CheckState.WARN, message, "free memory before you measure large models")
    elif seen.swap_used_bytes is not None:
        yield Check("swap", CheckState.OK, "not in use")


def _limit(name: str, value: float, limit: float, message: str, fix: str) -> Check:
    if value > limit:
        return Check(name, CheckState.FAIL, message, fix)
    return Check(name, CheckState.OK, message)


# --- the numbers --------------------------------------------------------------------------------


def _speed(calibrated: Calibrated) -> Iterator[Check]:
    yield from _repeatability(calibrated)
    for reading in calibrated.readings:
        name, now, seen = label(reading), reading.summary, reading.comparison
        counts = reading.series.metric in SPEED
        if seen.word is Word.SLOWER:
            bad = CheckState.FAIL if counts and not seen.other_torch else CheckState.WARN
            yield Check(name, bad, _slower(reading), _WHY_SLOWER)
        if reading.series.metric == "event_agreement" and now.median is not None:
            ok = AGREEMENT[0] <= now.median <= AGREEMENT[1]
            message = f"device events measure {now.median:.2f} of the host's time for the same block"
            fix = "" if ok else "use wall times (latency), not latency_device, on this device"
            yield Check("event times", CheckState.OK if ok else CheckState.WARN, message, fix)


def _repeatability(calibrated: Calibrated) -> Iterator[Check]:
    """Whether the samples within this calibration agree; nothing where there are no intervals."""
    widths = {
        label(each): (each.summary.high - each.summary.low) / 2 / each.summary.median
        for each in calibrated.readings
        if each.series.metric in SPEED
        and each.summary.median
        and each.summary.low is not None
        and each.summary.high is not None
    }
    wide = sorted((name for name in widths if widths[name] > WIDE), key=lambda name: -widths[name])
    if wide:
        listed = ", ".join(f"{name} \u00b1{widths[name]:.0%}" for name in wide[:3])
        more = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
        message = f"{len(wide)} of {counted(len(widths), 'interval')} exceed \u00b1{WIDE:.0%}: {listed}{more}"
        fix = "stop other programs on the machine; fewer --threads than cores often helps"
        yield Check("repeatability", CheckState.FAIL, message, fix)
    elif widths:
        message = f"the widest of {counted(len(widths), 'interval')} is \u00b1{max(widths.values()):.1%}"
        yield Check("repeatability", CheckState.OK, message)


def _slower(reading: Reading) -> str:
    seen = reading.comparison
    assert seen.change is not None
    assert seen.low is not None
    assert seen.high is not None
    message = f"slower by {abs(seen.change):.0%} [{_signed(seen.low)}, {_signed(seen.high)}]"
    message += f" than in {counted(seen.n, 'earlier calibration')}"
    return message + (" with other torch versions" if seen.other_torch else "")


def _signed(value: float) -> str:
    return f"{value:+.0%}"


_WHY_SLOWER = (
    "check temperature, power limit, clock and other processes; "
    "after a permanent change of the machine, further calibrations define its new usual speed"
)
_LABELS = {
    "copy_bytes_per_s": "copy on the device",
    "launch_s": "launch, back to back",
    "launch_return_s": "launch, until the call returns",
    "launch_complete_s": "launch, until the kernel ends",
    "event_resolution_s": "event resolution",
    "event_agreement": "event time / wall time",
    "clock_resolution_s": "host clock resolution",
}
_PARTS = {
    "to_device.pageable": "host to device, pageable",
    "to_device.pinned": "host to device, page-locked",
    "to_host.pageable": "device to host, pageable",
    "to_host.pinned": "device to host, page-locked",
    "events": "device events",
    "copy": "copy on the device",
    "answer": "the device answers",
    "clock": "host clock",
}


def label(reading: Reading) -> str:
    """What a person calls the number."""
    series = reading.series
    return _LABELS.get(series.metric) or part_label(series.part, series.dtype)


def part_label(part: str, dtype: str) -> str:
    """What a person calls a part of the calibration."""
    return f"matrix product, {dtype}" if part == "gemm" else _PARTS.get(part, part)
