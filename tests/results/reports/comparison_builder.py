"""Comparison folders in real stores, built by the package's own API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from torchgauge.records import (
    Configuration,
    Environment,
    Group,
    Outcome,
    Phase,
    PlannedCase,
    RunSettings,
    Status,
    Tolerance,
)
from torchgauge.records.comparison import (
    ComparisonPlan,
    Launch,
    MetricVerdict,
    Pair,
    Side,
    SideSpec,
    Verdict,
)
from torchgauge.results.comparing.comparison_store import (
    ComparisonFolder,
    begin_comparison,
    finish_comparison,
)
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store
from torchgauge.testing import make_case

CREATED_AT = 1_780_000_000.0
DAY = 86_400.0
MACHINE = (("cpu.model", "Some CPU"), ("host.system", "Linux"))
TORCH = {"base": "2.12.0", "head": "2.13.0"}


def pair(model: str, control: bool = False) -> Pair:
    case = replace(make_case(model), configuration=Configuration("inductor", "inductor"))
    return Pair(case, case, control)


def verdict(of: Pair, kind: Verdict = Verdict.UNCHANGED, metric: str = "latency", **fields) -> MetricVerdict:
    """A verdict on ``metric`` of ``of`` with a plausible ratio; keywords replace fields."""
    ratio = {Verdict.REGRESSION: 1.08, Verdict.IMPROVEMENT: 0.9}.get(kind, 1.001)
    numbers = {
        "base": 0.010,
        "head": 0.010 * ratio,
        "ratio": ratio,
        "low": ratio - 0.01,
        "high": ratio + 0.01,
        "p": 0.4,
        "p_adjusted": 0.5,
        "launches": 6,
        "detectable": 0.021,
        "spread": 0.008,
    }
    if kind in (Verdict.NOT_COMPARABLE, Verdict.BROKEN, Verdict.FIXED):
        numbers = {}
    told = {"unit": "s", "estimator": "cpu", "control": of.control, **numbers, **fields}
    return MetricVerdict(of.key, of.id, of.base.id, of.head.id, metric, verdict=kind, **told)


def suite_verdict(kind: Verdict = Verdict.UNCHANGED, **fields) -> MetricVerdict:
    told = {"ratio": 1.002, "low": 0.997, "high": 1.007, "launches": 6, "reason": "over 2 pairs", **fields}
    return MetricVerdict(
        "", "the whole suite", "", "", "suite", "ratio", "geometric_mean", verdict=kind, **told
    )


def launch(of: Pair, number: int = 1) -> Launch:
    base, head = (Outcome(case.key, Status.PASS, Phase.DONE) for case in (of.base, of.head))
    return Launch(of.key, of.id, number, Side.BASE, base, head, started_at=CREATED_AT, control=of.control)


def environment(side: str) -> Environment:
    return Environment("fake", (*MACHINE, ("torch.version", TORCH[side])))


def comparison(
    store: Path,
    pairs: Sequence[Pair],
    verdicts: Iterable[MetricVerdict],
    run_id: str = "20260528T200000Z-00000000",
    state: RunState | None = RunState.COMPLETE,
    **plan_fields,
) -> ComparisonFolder:
    """A comparison of ``pairs`` with ``verdicts``, published; ``state`` None leaves it interrupted."""
    opened = Store.open(store, create=True)
    tolerance = Tolerance(1e-3, 1e-3, 2.0, "test")
    plan = ComparisonPlan(
        **{
            "run_id": run_id,
            "created_at": CREATED_AT,
            "command": ("torchgauge", "ab", "toy", "--base", "/opt/old env/bin/python"),
            "settings": RunSettings(),
            "base": SideSpec("main", "/opt/old/bin/python"),
            "head": SideSpec("pull request 7", "/opt/new/bin/python", (("OMP_NUM_THREADS", "2"),)),
            "pairs": tuple(pairs),
            "groups": tuple(Group(each.key, (PlannedCase(each.head, tolerance),)) for each in pairs),
            "seed": 0,
            **plan_fields,
        }
    )
    folder = begin_comparison(opened, plan)
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [environment("base"), environment("head")])
        journal.append(Kind.LAUNCH, [launch(each) for each in pairs])
        journal.append(Kind.VERDICT, list(verdicts))
        if state is not None:
            journal.append(Kind.END, [End(state, plan.created_at + 60)])
    finish_comparison(opened, folder, plan)
    return folder
