"""The rule of speed: whether the accelerator is not slower than the processor beside it, noise considered."""

from __future__ import annotations

import math

from torchgauge.counted import counted
from torchgauge.records import Workload, left_out
from torchgauge.results.scorecard.evidence import Evidence, Says, Seen
from torchgauge.results.scorecard.finding import SHOWN, Finding
from torchgauge.results.scorecard.scorecard_file import Item, Measured
from torchgauge.suites.suite import HOST
from torchgauge.suites.toy.suite import toy

EAGER = "eager"
SUBJECT_MODES = ("inference", "training")


def speed(item: Item, rule: Measured, evidence: Evidence) -> Finding:
    """Judge the mean ratio of step times, host over device; within ``margin`` of 1 it is undecided.

    The mean is geometric, over the same workload in the same configuration, fast on either side. Toys are
    excluded.
    """
    timed = _pairs(rule, evidence)
    pairs = [pair for pair in timed if not toy(pair[0].workload)]
    without = left_out(toy(own.workload) for own, _ in timed)
    excluded = f" ({without})" if without else ""
    minimum, margin = rule.minimum or 1, rule.margin or 0.0
    modes = rule.mode or ",".join(SUBJECT_MODES)
    command = (
        f"torchgauge run timm --device {evidence.device},{HOST} --mode {modes} "
        f"--config {_configurations(rule)}"
    )
    if evidence.is_host:
        because = "the device is the CPU, and speed is measured relative to the CPU"
        return Finding(None, item.points, because)
    if not evidence.host:
        because = "the CPU of the same machine has no rows"
        return Finding(None, item.points, because, (), command)
    models = {(own.workload.suite, own.workload.model) for own, _ in pairs}
    cases = tuple(f"{own.case_id} ({own.run_id})" for own, _ in pairs[:SHOWN])
    if len(models) < minimum:
        because = (
            f"{counted(len(models), 'model was', 'models were')} timed on device and CPU{excluded}, "
            f"and {minimum} are needed"
        )
        return Finding(None, item.points, because, cases, command)
    ratio = math.exp(sum(math.log(_median(host) / _median(own)) for own, host in pairs) / len(pairs))
    because = (
        f"{ratio:.2f} times as fast as the CPU, over "
        f"{counted(len(pairs), 'case')} of {counted(len(models), 'model')}{excluded}"
    )
    if 1 - margin <= ratio < 1 + margin:
        return Finding(None, item.points, f"{because}: too close for a verdict", cases, command)
    points = item.points if ratio > 1 else 0
    return Finding(points, points, because, cases)


def _configurations(rule: Measured) -> str:
    return {"eager": EAGER, "compiled": "inductor"}.get(rule.path or "", f"{EAGER},inductor")


def _pairs(rule: Measured, evidence: Evidence) -> list[tuple[Seen, Seen]]:
    """The same workload and configuration on the device and on the processor, both with right results."""
    host = {_key(row): row for row in evidence.host if _timed(row, rule)}
    found = [(row, host[_key(row)]) for row in evidence.rows if _timed(row, rule) and _key(row) in host]
    return sorted(found, key=lambda pair: pair[0].case_id)


def _key(row: Seen) -> tuple[Workload, str]:
    return row.workload, row.configuration


def _timed(row: Seen, rule: Measured) -> bool:
    """Whether the row has step times that count and is of the path and mode that are asked for."""
    if row.says is not Says.YES or row.latency is None or row.workload.mode not in SUBJECT_MODES:
        return False
    path = EAGER if row.backend == EAGER else "compiled"
    return rule.path in (None, path) and rule.mode in (None, row.workload.mode)


def _median(row: Seen) -> float:
    assert row.latency is not None  # of rows that are timed
    return row.latency[1]
