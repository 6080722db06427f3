"""A scenario that measures by itself: what it is given, and what is said of one that errs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.errors import PluginError, add_note
from torchgauge.harness.backends.prepared import check_measurements
from torchgauge.harness.scenarios.scenario import final_metric
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement, RunSettings

Run = Callable[[Sequence[Series], DeviceSession, RunSettings], Mapping[str, Sequence[Measurement]]]


def detailed(scenario: Any, name: str, series: Series, session: DeviceSession) -> list[Measurement]:
    """What the ``details`` of scenario ``name`` say of the timed steps of ``series``; nothing without one.

    Raises what they raise, and :class:`PluginError` where they break the rules of the seam.
    """
    details = getattr(scenario, "details", None)
    if details is None:
        return []
    said = f"scenario {name!r}"
    try:
        found = list(details(series, session))
    except Exception as error:
        add_note(error, f"in details() of {said}")
        raise
    check_measurements(said, found)
    return found


def measured(
    name: str, run: Run, all_series: Sequence[Series], session: DeviceSession, settings: RunSettings
) -> Mapping[str, list[Measurement]]:
    """What the ``run`` of scenario ``name`` measured of each of ``all_series``, by its key.

    Raises what it raises, and :class:`PluginError` where it breaks the rules of the seam.
    """
    said = f"scenario {name!r}"
    try:
        found: Any = run(all_series, session, settings)
    except Exception as error:
        add_note(error, f"in run() of {said}")
        raise
    if not isinstance(found, Mapping):
        raise PluginError(f"{said}: run() returned {type(found).__name__} instead of measurements by series")
    for series in all_series:
        own = found.get(series.key, ())
        check_measurements(said, own)
        if series.failed is None and not any(each.metric == final_metric(name) for each in own):
            raise PluginError(f"{said}: run() gave no {final_metric(name)} for a series that did not fail")
    return {key: list(each) for key, each in found.items()}
