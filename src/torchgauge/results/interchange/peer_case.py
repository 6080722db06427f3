"""What importers of other tools' language-model numbers share: a case, its numbers, and their units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import (
    METRICS,
    Case,
    Configuration,
    Measurement,
    Modifier,
    Scalar,
    Shape,
    Workload,
    absent,
)
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.imported_run import UNKNOWN_BATCH, ImportedCase, Known, Source, check_name
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.interchange.upstream_statuses import PASSED

GENERATE = "generate"
SECONDS: Mapping[str, float] = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6}
BYTES: Mapping[str, float] = {"B": 1.0, "MB": 1e6, "GB": 1e9, "MiB": 2.0**20, "GiB": 2.0**30}
DTYPES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
LARGEST = 2**31 - 1
"""The largest batch or length that is believed."""

_OPTIONS = {"mode": "--mode", "dtype": "--dtype", "device": "--device", "configuration": "--config"}
UNCHECKED = "imported: the file says nothing of a check of its results"


@dataclass
class PeerCase:
    """One case of another tool as its file describes it; ``place`` is the line or key that it stands in."""

    path: Path
    place: str
    model: str
    context: Context
    batch: int | None = None
    shape: Shape = ()
    numbers: dict[str, Measurement] = field(default_factory=dict)
    facts: dict[str, Scalar] = field(default_factory=dict)

    def take(self, metric: str, values: Sequence[float], said: str) -> None:
        """Keep ``values`` of ``metric``, in its base unit; the first that is said of one counts.

        Raises :class:`DataFileError` where one of them, which may be computed, is no finite number above 0.
        """
        if metric not in self.numbers:
            found = tuple(float(each) for each in values)
            if not all(0 < each < math.inf for each in found):
                raise self.refuse(f"{metric} ({said}) is too large or too small", "check the value")
            self.numbers[metric] = Measurement(metric, METRICS[metric].unit, found, provenance=said)

    def leave_out(self, metric: str, reason: str) -> None:
        """Say why ``metric`` has no number, unless it has one."""
        self.numbers.setdefault(metric, absent(metric, reason))

    def made(self, source: Source, given: Context, known: Known) -> ImportedCase:
        """The imported case; raises :class:`DataFileError` for what neither file nor person says."""
        context = given.over(self.context)
        for name, option in _OPTIONS.items():
            if not getattr(context, name):
                raise self.refuse(f"does not say the {name}", f"{option} NAME says it")
        if not any(each.samples for each in self.numbers.values()):
            raise self.refuse(
                "holds no number that torchgauge knows", "check that it is the file that was meant"
            )
        named = (("suite", context.suite), ("model", self.model), ("device", context.device))
        for kind, text in (*named, ("configuration", context.configuration)):
            check_name(self.path, kind, text, None, self.place)
        configuration: Configuration = names.execution(context.configuration, dict(known.configurations))
        workload = Workload(
            context.suite,
            self.model,
            context.mode,
            names.our_dtype(DTYPES.get(context.dtype, context.dtype), context.device),
            batch=self.batch or UNKNOWN_BATCH,
            size="full",
            shape=self.shape,
        )
        return ImportedCase(
            Case(workload, configuration, names.target(context.device)),
            PASSED,
            source,
            self.place,
            tuple(self.numbers.values()),
            tuple({**self.facts, Modifier.UNCHECKED.value: UNCHECKED}.items()),
            modifiers=(Modifier.UNCHECKED,),
        )

    def refuse(self, problem: str, hint: str) -> DataFileError:
        """The error for ``problem`` in this case."""
        return DataFileError(str(self.path), problem, field=self.place, hint=hint)


def factor(path: Path, place: str, unit: object, known: Mapping[str, float]) -> float:
    """What one ``unit`` is in base units; raises :class:`DataFileError` for one that is not ``known``."""
    if isinstance(unit, str) and unit in known:
        return known[unit]
    raise DataFileError(
        str(path), f"the unit {unit!r} is not known", field=place, hint=f"one of: {', '.join(known)}"
    )


def positive(path: Path, place: str, value: Any, scale: float = 1.0) -> float:
    """``value`` times ``scale``, a finite number above 0; raises :class:`DataFileError`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value) * scale
        except OverflowError:
            number = math.inf
        if 0 < number < math.inf:
            return number
    raise DataFileError(
        str(path),
        f"{_shown(value)} is not a positive number that can be kept",
        field=place,
        hint="a missing value is no 0: take it out",
    )


def whole(path: Path, place: str, value: Any) -> int:
    """``value`` where it is a batch, a length or a number of devices; raises :class:`DataFileError`."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST:
        return value
    raise DataFileError(
        str(path),
        f"{_shown(value)} is not a whole number from 1 to {LARGEST}",
        field=place,
        hint="write what was run, or take it out where that is not known",
    )


def _shown(value: Any) -> str:
    """``value`` in a message: short, whatever it is."""
    if isinstance(value, (list, dict)):
        return "an object" if isinstance(value, dict) else "a list"
    said = repr(value)
    return said if len(said) <= 40 else f"{said[:40]}..."
