"""Stores in which everything that the scorecard measures is there, or all but what a test takes away."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import stored_runs as stored

from torchgauge import registry
from torchgauge.records import Case, Configuration, DeviceTarget, Result, Status, Workload
from torchgauge.results.scorecard.rules import listed_models
from torchgauge.results.scorecard.scorecard_file import bundled_scorecard
from torchgauge.results.store import Store
from torchgauge.suites.conformance.catalogue import catalogue
from torchgauge.suites.ops.suite import SUITE as OPS

EAGER = Configuration("eager", "eager")
INDUCTOR = Configuration("inductor", "inductor")
DEVICE, HOST = "other", "cpu"
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8")
RELEASE, NIGHTLY = "2.13.0+x", "2.14.0.dev20260601"


def row(workload: Workload, status: Status = Status.PASS, **changes: Any) -> Result:
    """A row on the device, eager and without times unless told otherwise."""
    how = changes.pop("configuration", EAGER)
    of = Case(workload, how, DeviceTarget(changes.pop("device", DEVICE)))
    return stored.result(of, changes.pop("latency", None), status=status, **changes)


def checks(**statuses: Status) -> list[Result]:
    """All checks, ``group__function`` with another status where it is given."""
    named = {name.replace("__", "."): status for name, status in statuses.items()}
    facts = {"tensor.dtypes": tuple((f"dtype_{name}", "works") for name in DTYPES)}
    return [
        row(Workload("conformance", name, "check"), named.get(name, Status.PASS), facts=facts.get(name, ()))
        for name in catalogue()
    ]


def operators(passed: int = 692, dtypes: Iterable[str] = DTYPES) -> list[Result]:
    """``passed`` operators in float32, the smoke tier among them, which is there in all of ``dtypes``."""
    names = [*OPS.smoke, *(f"operator_{number}" for number in range(692 - len(OPS.smoke)))]
    whole = [
        row(Workload("ops", name, "forward", "float32"), Status.PASS if place < passed else Status.ERROR)
        for place, name in enumerate(names)
    ]
    beside = [dtype for dtype in dtypes if dtype != "float32"]
    return whole + [row(Workload("ops", n, "forward", d)) for n in OPS.smoke for d in beside]


def benchmarks(passed: float = 1.0) -> list[Result]:
    """Every model of the three suites compiled, the first of them with ``passed`` as their share."""
    models = [
        (suite, *each) for suite in ("timm", "huggingface", "torchbench") for each in listed_models(suite)
    ]
    return [
        row(
            Workload(suite, model, mode),
            Status.PASS if place < passed * len(models) else Status.ERROR,
            configuration=INDUCTOR,
        )
        for place, (suite, model, mode) in enumerate(models)
    ]


def timed(times_as_fast: float = 4.0, number: int = 12, suite: str = "timm") -> list[Result]:
    """Models that were timed on the device and on the processor, in both paths and modes."""
    found = []
    for place in range(number):
        for mode in ("inference", "training"):
            for how in (EAGER, INDUCTOR):
                of = Workload(suite, f"model_{place}", mode)
                found.append(row(of, latency=1e-3, configuration=how))
                found.append(row(of, latency=1e-3 * times_as_fast, configuration=how, device=HOST))
    return found


def distributed() -> list[Result]:
    """The smoke tier of the suite of several processes."""
    suite = registry.load(registry.SUITES, "distributed")
    return [
        row(Workload("distributed", entry.name, next(iter(entry.batch)), shape=(("processes", 2),)))
        for entry in suite.models()
        if "smoke" in entry.tiers
    ]


def publish(path: Path, run_id: str, rows: list[Result], torch: str = RELEASE, days: float = 40.0) -> str:
    """One run in the store at ``path``, so many days after the first."""
    at = stored.BEGIN + days * stored.DAY
    names = dict.fromkeys(each.case.device.name for each in rows)
    where = [stored.environment(name, torch) for name in names]
    stored.run(Store.open(path, create=True), run_id, [replace(e, started_at=at) for e in rows], where, at=at)
    return str(path)


def nights(path: Path, days: Iterable[float] = range(0, 40, 3), torch: str = RELEASE) -> str:
    """One check in each of the nights, and in one with a nightly of torch."""
    check = Workload("conformance", "tensor.copy", "check")
    publish(path, "nightly", [row(check)], NIGHTLY, days=20.5)
    for day in days:
        publish(path, f"night-{day}".replace(".", "-"), [row(check)], torch, days=day)
    return str(path)


def some(path: Path, **parts: list[Result]) -> str:
    """A store as :func:`everything` makes it, without what takes most rows unless ``parts`` has it."""
    return everything(path, **({"operators": [], "benchmarks": []} | parts))


def everything(path: Path, torch: str = RELEASE, **parts: list[Result]) -> str:
    """A store in which every measured item is decided; ``parts`` replace lists of rows by their names."""
    made = {
        "checks": parts.get("checks", checks()),
        "operators": parts.get("operators", operators()),
        "benchmarks": parts.get("benchmarks", benchmarks()),
        "timed": parts.get("timed", timed()),
        "distributed": parts.get("distributed", distributed()),
    }
    return publish(path, "all", [each for rows in made.values() for each in rows], torch)


def declarations(path: Path, device: str = DEVICE, extra: str = "", **points: int) -> str:
    """A file that declares all that no row can show, or only ``points`` (``section__item``)."""
    card = bundled_scorecard()
    named = {name.replace("__", "."): value for name, value in points.items()}
    given = named or {item.name: item.points for item in card.items if item.measured is None}
    entries = "".join(
        f"  - item: {name}\n    points: {value}\n    statement: It is so, as the page says.\n"
        f'    link: https://example.org/{name}\n    date: 2026-05-01\n    since: "2.12"\n'
        for name, value in given.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"device: {device}\nby: A person of the vendor\n{extra}declarations:\n{entries}")
    return str(path)
