"""What both sides of a pair say of one metric beside step times, launch by launch."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from torchgauge.records import Outcome
from torchgauge.records.comparison import Launch


@dataclass(frozen=True)
class LaunchSamples:
    """One number of each side per launch that has both, or why there is none; all empty: neither has any."""

    base: tuple[float, ...] = ()
    head: tuple[float, ...] = ()
    refusal: str = ""

    @property
    def ratios(self) -> list[float]:
        """Head over base of each launch, where both are positive."""
        return [head / base for base, head in zip(self.base, self.head, strict=True) if min(base, head) > 0]

    @classmethod
    def of(cls, metric: str, launches: Iterable[Launch]) -> LaunchSamples:
        """The numbers of ``metric`` in ``launches``; a refusal where they were read in different ways."""
        base, head, provenance, missing = [], [], set(), []
        for launch in launches:
            ours, theirs = _reading(launch.base, metric), _reading(launch.head, metric)
            if ours[0] is None and theirs[0] is None:
                continue
            if ours[0] is None or theirs[0] is None:
                side, why = ("base", ours[1]) if ours[0] is None else ("head", theirs[1])
                missing.append(f"{side} has no value" + (f": {why}" if why else ""))
                continue
            base.append(ours[0])
            head.append(theirs[0])
            provenance.add((ours[1], theirs[1]))
        unlike = next(((ours, theirs) for ours, theirs in sorted(provenance) if ours != theirs), None)
        if unlike is not None or len(provenance) > 1:
            names = sorted({name or "unknown" for names in provenance for name in names})
            return cls(refusal=f"measured in different ways: {', '.join(names)}")
        if missing and not base:
            return cls(refusal=missing[0])
        return cls(tuple(base), tuple(head))


def _reading(outcome: Outcome, metric: str) -> tuple[float | None, str]:
    """The number and its provenance, or None and why it is absent."""
    for measurement in outcome.measurements:
        if measurement.metric == metric:
            if measurement.samples:
                return statistics.median(measurement.samples), measurement.provenance
            return None, measurement.absent
    return None, ""
