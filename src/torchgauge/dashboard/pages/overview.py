"""The front page: what works, how fast it is, what the newest night changed, and what was not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from torchgauge.dashboard.history import NOTHING_PLANNED
from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.new_failures import MARK
from torchgauge.dashboard.pages import links, regressions
from torchgauge.dashboard.pages.compatibility import CompatibilityPage, compatibility_page
from torchgauge.dashboard.pages.device_history import rows_of
from torchgauge.dashboard.pages.device_means import mean_change, speedups
from torchgauge.dashboard.pages.failure_groups import failure_groups
from torchgauge.dashboard.pages.night import GAINS, Night
from torchgauge.dashboard.pages.performance import PerformancePage, notes_of, performance_page
from torchgauge.dashboard.pages.reason import reason_of
from torchgauge.dashboard.pages.views import INDUCTOR, OVER, Readers, views
from torchgauge.dashboard.pictures.device_ratios import KIND as DEVICES
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.retired import retired_text
from torchgauge.dashboard.tally import tally
from torchgauge.records import ATTEMPTED, INCOMPLETE, Status, Subject
from torchgauge.suites.census.record import base_name

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

MOST = {"causes": 12, "changes": 8, "operators": 5}
"""Lines of each list; how many there are in all is said, with a link to them."""

MOST_CELLS = 320
"""Cells of the largest matrix that stands on the front page itself: a first demo has some dozens."""


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The first page."""
    page = context.renderer.page("overview", "index.html", page=_page(context), most=MOST)
    yield "index.html", page.encode()


def _page(context: SiteContext) -> dict[str, Any]:
    latest, night = context.latest.of_models(), context.night
    entries = tuple(latest.current.entries.values())
    fresh = [each for each in context.latest.entries.values() if MARK in each.marks]
    unexpected = [each for each in entries if "unexpected" in each.marks and MARK not in each.marks]
    runs = night.runs if night else frozenset()
    heard = {case.column.device for case in night.cases} if night else set()
    over = next((name for name in OVER if any(name in each.numbers for each in entries)), "speedup")
    devices = [
        _device(context, latest, device, device in heard, over) for device in _devices(context, latest)
    ]
    usual = _usual(devices, entries)
    return {
        "night": night,
        "missing": _missing(entries),
        "measured": _measured(night),
        "tally": tally(entries),
        "silent": latest.silent,
        "changed": _changed(context),
        "difference": sum(GAINS[kind] * len(members) for kind, members in context.changed.items()),
        "latency": mean_change([each for each in entries if each.shown["run_id"] in runs], context),
        "devices": sorted(devices, key=lambda line: not line["late"]),
        "unfinished": [info for info in context.runs if info.condition or not info.published],
        "fresh": failure_groups((each for each in fresh if each.shown["run_id"] in runs), _row),
        "earlier": failure_groups((each for each in fresh if each.shown["run_id"] not in runs), _row),
        "worse": regressions.worse(context, MOST["changes"]),
        "standing": failure_groups(each for each in unexpected if each.status is not Status.PASS),
        "surprising_passes": sum(each.status is Status.PASS for each in unexpected),
        "configuration": usual,
        "over": f"{OVER[over]}, paired",
        "means": f"performance-{over.replace('_', '-')}.html",
        "speedups": {
            each["device"]: each["speedups"][usual] for each in devices if usual in each["speedups"]
        },
        "picture": next(iter(context.pictures.of(DEVICES)), None),
        "retired": retired_text(latest),
        "matrix": _matrix(context, latest) if 0 < _cells(latest) <= MOST_CELLS else None,
    }


def _matrix(context: SiteContext, latest: LatestResults) -> CompatibilityPage | PerformancePage:
    """The first view of the numbers, which has statuses too; the statuses alone where there is no number."""
    if not any(each["median"] for entry in latest.entries.values() for each in entry.numbers.values()):
        return compatibility_page(latest, context.primaries)
    found = views(latest, context.primaries)
    return performance_page(latest, found[0], found, Readers(latest, context.movements), notes_of(latest))


def _measured(night: Night | None) -> tuple[int, int]:
    """How many models and how many devices the night says something of."""
    cases = night.cases if night else ()
    models = {case.workload.group for case in cases if case.workload.subject is Subject.MODELS}
    return len(models), len({case.column.device for case in cases})


def _usual(devices: Iterable[dict[str, Any]], entries: Iterable[Entry]) -> str:
    """The configuration whose speed-ups the page tells; empty where there is none.

    It is the one that is planned most, so that it is the same from night to night, and of equals the one that
    ``torch.compile`` takes by itself.
    """
    known = {name for line in devices for name, (mean, _) in line["speedups"].items() if mean}
    known = known or {name for line in devices for name in line["speedups"]}
    planned = Counter(entry.column.configuration for entry in entries)
    return min(known, key=lambda name: (-planned[name], name != INDUCTOR, name), default="")


def _missing(entries: Iterable[Entry]) -> list[tuple[str, str, int]]:
    """The operators that most models fail for: device, operator and number of models, largest first."""
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for entry in entries:
        row = entry.counted
        if row["missing_op"] and entry.status in ATTEMPTED | {Status.UNSUPPORTED}:
            key = entry.column.device, base_name(row["missing_op"])
            found.setdefault(key, set()).add(entry.workload.group)
    counted = [(device, operator, len(models)) for (device, operator), models in found.items()]
    return sorted(counted, key=lambda each: (-each[2], each[0], each[1]))


def _changed(context: SiteContext, device: str = "") -> dict[str, tuple[int, str]]:
    """Return how many cases the night changed, by kind, and the address of the list of each number."""
    return {
        kind: (number, f"regressions.html#{links.changed_anchor(kind, device if number else '')}")
        for kind, members in context.changed.items()
        for number in [sum(each.column.device == device for each in members) if device else len(members)]
    }


def _cells(latest: LatestResults) -> int:
    return len(latest.workloads) * len(latest.columns)


def _devices(context: SiteContext, latest: LatestResults) -> list[str]:
    """The devices of the models, then those of which only checks or operators are known."""
    others = {case.column.device for case in context.recent.cases} - set(latest.devices)
    return [*latest.devices, *sorted(others)]


def _device(
    context: SiteContext, latest: LatestResults, device: str, measured: bool, over: str
) -> dict[str, Any]:
    """The line of one device, of which the night says something where it is ``measured``.

    ``over`` is the metric of its speed-ups.
    """
    entries = latest.of_device(device)
    lost = [each for each in entries if each.status in INCOMPLETE and device not in latest.silent]
    apart = [each for each in context.latest.of_device(device) if _lost(each) and each not in lost]
    said = [entry.known_at for entry in entries if entry.known is not None]
    return {
        "device": device,
        "href": links.device_page(device),
        "dated": latest.dated(device),
        "late": context.freshness.is_late(device),
        "tally": tally(entries),
        "changed": _changed(context, device) if measured else {},
        "lost": failure_groups(lost, attrgetter("newest")),
        "lost_apart": failure_groups(apart, attrgetter("newest")),
        "newest": max(said, default=None),
        "oldest": min(said, default=None),
        "apart": tuple(_apart(context, device)),
        "speedups": speedups(entries, over),
    }


def _lost(entry: Entry) -> bool:
    """Whether the newest attempt says nothing of the case."""
    return Status(entry.newest["status"]) in INCOMPLETE


def _row(entry: Entry) -> Row:
    """What is said of a failure; of a pass by another path than the requested one, that path."""
    row = entry.shown
    return {**row, "reason": reason_of(row)} if row["status"] == Status.PASS else row


def _apart(context: SiteContext, device: str) -> Iterator[tuple[Subject, int, int]]:
    for subject in (Subject.CHECKS, Subject.OPERATORS):
        rows = rows_of(context.recent, device, subject)
        if len(rows):
            planned = context.recent.status[rows] != NOTHING_PLANNED
            last = planned.shape[1] - 1 - planned[:, ::-1].argmax(axis=1)
            yield subject, int(context.recent.counted[rows, last].sum()), len(rows)
