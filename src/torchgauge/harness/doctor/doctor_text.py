"""What ``torchgauge doctor`` prints: the calibration as a table, the conditions, the verdict in a line."""

from __future__ import annotations

from collections.abc import Iterable

from torchgauge.counted import counted
from torchgauge.devices.health import Check
from torchgauge.harness.doctor.doctor_run import Calibrated
from torchgauge.harness.doctor.fitness import Fitness, label, part_label
from torchgauge.records import Environment, Status
from torchgauge.results import document, units
from torchgauge.results.calibration_history import Comparison, Word
from torchgauge.suites.calibration import ANSWER

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


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
    tried = [gap for gap in calibrated.gaps if gap.part == ANSWER or gap.status is not Status.NOT_RUN]
    text = document.terminal(
        "harness/doctor",
        calibrated=calibrated,
        machine=_machine(calibrated.environment),
        gaps=tried,
        skipped=sum(gap.status is Status.NOT_RUN for gap in calibrated.gaps),
        fitness=fitness,
        label=label,
        part_label=part_label,
        interval_parts=units.interval_parts,
        verdict=_verdict,
        marks=MARKS,
    )
    return ["", *text.splitlines()]


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


def _machine(environment: Environment | None) -> list[str]:
    """Model, torch and threads of where it was measured, as far as they are known."""
    facts = dict(environment.identity) if environment is not None else {}
    threads = facts.get("torch.threads")
    parts = (
        str(facts.get("device.model") or ""),
        f"torch {facts['torch.version']}" if "torch.version" in facts else "",
        counted(threads, "thread") if isinstance(threads, int) else "",
    )
    return [part for part in parts if part]
