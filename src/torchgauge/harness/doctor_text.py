"""What ``torchgauge doctor`` prints: the calibration as a table, the conditions, the verdict in a line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from torchgauge.devices.health import Check
from torchgauge.harness.doctor_run import Calibrated, Reading
from torchgauge.harness.fitness import Fitness, label, part_label
from torchgauge.records import Environment
from torchgauge.results import units
from torchgauge.results.calibration_history import Comparison, Word
from torchgauge.suites.calibration import ANSWER

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
WIDTH = 110


def check_lines(checks: Iterable[Check]) -> list[str]:
    """One line for each check, and what to try under it."""
    lines = []
    for check in checks:
        lines.append(f"{MARKS[check.state.value]}  {check.name}: {check.message}")
        if check.fix:
            lines.append(f"        try: {check.fix}")
    return lines


def calibration_lines(calibrated: Calibrated, fitness: Fitness) -> list[str]:
    """The calibration for people."""
    lines = ["", f"Calibration of {calibrated.device}{_machine(calibrated.environment)}", ""]
    lines += _table(calibrated)
    lines += ["", *check_lines(fitness.reasons), ""]
    verdict = f"{fitness.verdict.value.upper()} to measure on {calibrated.device}: {fitness.summary}."
    return lines + textwrap.wrap(verdict, WIDTH, subsequent_indent="  ")


def _table(calibrated: Calibrated) -> list[str]:
    rows = [_row(reading) for reading in calibrated.readings]
    if rows:
        rows.insert(0, ("", "now", "95 % interval", "usual", "verdict"))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    widths[0] = max([widths[0], *(len(part_label(gap.part, gap.dtype)) for gap in calibrated.gaps)])
    lines = ["  ".join([*_padded(row[:4], widths), row[4]]).rstrip() for row in rows]
    for gap in calibrated.gaps:
        name = part_label(gap.part, gap.dtype)
        said = f"{gap.status.value}: {gap.reason}"
        if gap.part == ANSWER or gap.status.value != "not_run":
            lines.append(f"{name.ljust(widths[0])}  {units.shortened(said, WIDTH - widths[0] - 2)}")
    skipped = sum(gap.status.value == "not_run" for gap in calibrated.gaps)
    if skipped:
        were = "part was" if skipped == 1 else "parts were"
        lines.append(f"{skipped} further {were} not tried")
    return lines


def _padded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *numbers = cells
    return [
        first.ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)),
    ]


def _row(reading: Reading) -> tuple[str, str, str, str, str]:
    now, seen = reading.summary, reading.comparison
    if now.median is None:
        return label(reading), "", "", "", now.absent
    number, between = units.interval_parts(now.median, now.low, now.high, now.unit)
    usual = "" if seen.usual is None else units.quantity(seen.usual, now.unit)
    return label(reading), number, between, usual, _verdict(seen)


def _verdict(seen: Comparison) -> str:
    word = str(seen.word.value)
    if seen.word is Word.NO_HISTORY:
        return f"no history (n = {seen.n})"
    if seen.word is Word.TOO_NOISY:
        return f"{word} (n = {seen.n})"
    if seen.change is None or seen.low is None or seen.high is None:
        return word
    change = f"{seen.change:+.1%} [{seen.low:+.0%}, {seen.high:+.0%}]"
    other = ", other torch" if seen.other_torch else ""
    return f"{word}: {change}, n = {seen.n}{other}"


def _machine(environment: Environment | None) -> str:
    if environment is None:
        return ""
    facts = dict(environment.identity)
    parts = [
        str(facts.get("device.model") or ""),
        f"torch {facts['torch.version']}" if "torch.version" in facts else "",
        _threads(facts["torch.threads"]) if "torch.threads" in facts else "",
    ]
    return ": " + ", ".join(part for part in parts if part)


def _threads(number: object) -> str:
    return "1 thread" if number == 1 else f"{number} threads"
