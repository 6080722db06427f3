"""Builds stores of ordinary runs and of A/B runs by the package's own API, as small as a test needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torchgauge.records import (
    METRICS,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Group,
    Measurement,
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    Realised,
    Result,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)
from torchgauge.records.comparison import (
    Block,
    ComparisonPlan,
    Launch,
    MetricVerdict,
    Pair,
    Side,
    SideSpec,
    Verdict,
)
from torchgauge.results.comparing.comparison_store import begin_comparison, finish_comparison
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

DAY = 86_400.0
BEGIN = 1_780_000_000.0
TOLERANCE = Tolerance(1e-3, 1e-3, 2.0, "test")
MACHINE = {"cpu.model": "Test CPU", "cpu.cores_available": 2, "host.system": "Linux"}


def case(model: str = "linear", configuration: str = "eager", device: str = "fake", **workload: Any) -> Case:
    """A toy case."""
    found = Workload("toy", model, **workload)
    return Case(found, Configuration(configuration, configuration), DeviceTarget(device))


def environment(device: str = "fake", torch: str = "2.9.0", **facts: Any) -> Environment:
    """Where something ran; keywords replace facts, with ``__`` for a dot."""
    named = {key.replace("__", "."): value for key, value in facts.items()}
    identity = {**MACHINE, "device.model": device, "torch.version": torch, **named}
    return Environment(device, tuple(sorted(identity.items())))


def result(of: Case, latency: float | Sequence[float] | None = 1e-3, **changes: Any) -> Result:
    """A result of ``of``: ten samples around ``latency`` seconds (None: absent); ``metrics`` are others."""
    metrics: Mapping[str, float] = changes.pop("metrics", {})
    provenance: Mapping[str, str] = changes.pop("provenance", {})
    measurements = [Measurement("latency", "s", absent="the clock stood still")]
    if latency is not None:
        samples = latency
        if isinstance(samples, float):
            samples = [samples * (1 + 0.002 * (i - 4.5) / 4.5) for i in range(10)]
        measurements = [Measurement("latency", "s", tuple(samples), tuple(range(len(samples))), "steady")]
    measurements += [
        Measurement(name, METRICS[name].unit, (value,), provenance=provenance.get(name, "counter"))
        for name, value in metrics.items()
    ]
    if changes.get("status", Status.PASS) is not Status.PASS:
        measurements = []
    made = Result(
        run_id="",
        case_id=of.id,
        case=of,
        status=Status.PASS,
        phase=Phase.DONE,
        expected=None,
        measurements=tuple(measurements),
        summaries=tuple(summarise(each, METRICS[each.metric]) for each in measurements),
        realised=Realised("00ff00ff00ff00ff", 72, 0, "float32[1]"),
        started_at=BEGIN,
    )
    return replace(made, **changes)


def run(
    store: Store,
    run_id: str,
    results: Sequence[Result],
    where: Environment | Sequence[Environment] = (),
    *,
    at: float = BEGIN,
    state: RunState = RunState.COMPLETE,
    publish: bool = True,
) -> str:
    """A run of ``results``; each result belongs to the environment of its device."""
    environments = [where] if isinstance(where, Environment) else list(where) or [environment()]
    by_device = {each.device: each for each in environments}
    groups = tuple(Group(str(i), (PlannedCase(each.case, TOLERANCE),)) for i, each in enumerate(results))
    folder = store.begin(Plan(run_id, at, ("torchgauge", "run"), RunSettings(), groups))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, environments)
        journal.append(
            Kind.RESULT,
            [
                replace(each, run_id=run_id, environment_id=by_device[each.case.device.name].id)
                for each in results
            ],
        )
        if publish:
            journal.append(Kind.END, [End(state, at + 60)])
    if publish:
        store.finish(run_id)
    return run_id


def blocks(log_ratio: float, abba_blocks: int = 4, base: float = 1e-3) -> tuple[Block, ...]:
    """ABBA blocks in which the head takes exp(``log_ratio``) times as long as the base."""
    times = {Side.BASE: base, Side.HEAD: base * math.exp(log_ratio)}
    order = (Side.BASE, Side.HEAD, Side.HEAD, Side.BASE)
    return tuple(
        Block(side, abba_block, position, (times[side],), (times[side],), (0.0,))
        for abba_block in range(abba_blocks)
        for position, side in enumerate(order)
    )


def outcome(of: Case, status: Status = Status.PASS, **metrics: float | Measurement) -> Outcome:
    """How one side ended, with further metrics."""
    measurements = tuple(
        value if isinstance(value, Measurement) else Measurement(name, METRICS[name].unit, (float(value),))
        for name, value in metrics.items()
    )
    phase = Phase.DONE if status is Status.PASS else Phase.EAGER
    return Outcome(of.key, status, phase, measurements=measurements)


def launch(pair: Pair, number: int = 1, log_ratio: float | None = None, **changes: Any) -> Launch:
    """A launch of ``pair`` in which both sides pass."""
    made = Launch(
        pair_key=pair.key,
        pair_id=pair.id,
        number=number,
        first=Side.BASE,
        base=outcome(pair.base),
        head=outcome(pair.head),
        blocks=() if log_ratio is None else blocks(log_ratio),
        control=pair.control,
    )
    return replace(made, **changes)


def verdict(pair: Pair, said: Verdict = Verdict.UNCHANGED, metric: str = "latency", **fields: Any):
    """A verdict on ``pair``."""
    blank = MetricVerdict(
        pair_key=pair.key,
        pair_id=pair.id,
        base_case=pair.base.id,
        head_case=pair.head.id,
        metric=metric,
        unit="s",
        estimator="cpu" if metric == "latency" else "exact",
        verdict=said,
        launches=3,
        control=pair.control,
    )
    return replace(blank, **fields)


def comparison(
    store: Store,
    run_id: str,
    launches: Sequence[Launch],
    verdicts: Sequence[MetricVerdict],
    pairs: Sequence[Pair],
    *,
    at: float = BEGIN,
    where: Environment | None = None,
    state: RunState | None = RunState.COMPLETE,
) -> str:
    """A finished A/B run in the tables of ``store``."""
    plan = ComparisonPlan(
        run_id=run_id,
        created_at=at,
        command=("torchgauge", "ab"),
        settings=RunSettings(),
        base=SideSpec("old", "/old/python"),
        head=SideSpec("new", "/new/python"),
        pairs=tuple(pairs),
        groups=(),
        seed=1,
    )
    folder = begin_comparison(store, plan)
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [where or environment()])
        journal.append(Kind.LAUNCH, launches)
        journal.append(Kind.VERDICT, verdicts)
        if state is not None:
            journal.append(Kind.END, [End(state, at + 60)])
    finish_comparison(store, folder, plan)
    return run_id


def control_run(
    store: Store,
    number: int,
    log_ratios: Sequence[float],
    said: Verdict = Verdict.UNCHANGED,
    of: Case | None = None,
    **changes: Any,
) -> str:
    """The A/B run of day ``number``: head against head with ``log_ratios``, one for each launch."""
    head = of or case()
    pair = Pair(head, head, control=True)
    launches = [launch(pair, n + 1, value) for n, value in enumerate(log_ratios)]
    fields = changes.pop("fields", {})
    verdicts = [verdict(pair, said, **fields)]
    name = f"ab-{number:04d}-{head.key[:4]}"
    return comparison(store, name, launches, verdicts, [pair], at=BEGIN + number * DAY, **changes)
