"""A store in which every piece of text is an attack, written by the package's own writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from store_builder import ACCURACY, DAY, EAGER, INDUCTOR, NOW, RunBuilder, environment, failure, result

from torchgauge.records import (
    METRICS,
    Accuracy,
    Calibration,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Measurement,
    Modifier,
    Realised,
    RunSettings,
    Status,
    Workload,
)
from torchgauge.records.codec import to_json
from torchgauge.records.comparison import ComparisonPlan, MetricVerdict, Pair, SideSpec, Verdict
from torchgauge.results.comparing.comparison_store import begin_comparison, finish_comparison
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_findings import Finding, Look, TrendFilter, TrendFindings, path_of
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome

CORPUS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    '"><img src=x onerror=window.pwned=1>',
    "' onmouseover='window.pwned=1' x='",
    '" autofocus onfocus=window.pwned=1 style="position:fixed;inset:0" x="',
    "{{ 7*7 }}{% raw %}${7*7}",
    "</code></pre></details></table></main><h1>owned</h1>",
    '<a href="javascript:alert(1)">click</a>',
    '<a href="https://attacker.invalid/">torchgauge</a>',
    "<svg/onload=window.pwned=1><style>*{display:none}</style>",
    "<!-- --><![CDATA[ ]]> &lt;b&gt; &amp;amp; &#x202e; ]]>",
    "[click](javascript:alert(1)) ![x](https://attacker.invalid/x.png) **bold** `code` | a | b |",
    "https://attacker.invalid/ www.attacker.invalid",
    "javascript:alert(1)//",
    "../../../etc/passwd",
    "..\\..\\CON.html%2e%2e%2f?x#y",
    "\u202egnp.exe\u202c\u2066x\u2069\u200b\ufeff",
    "\x1b[31mred\x1b[0m\x1b]8;;https://attacker.invalid\x07link\x1b]8;;\x07\x00\x07",
    "=cmd|'/c calc'!A1",
    "+1+1|-1|@SUM(A1)\t=2\r\n=3",
    "__proto__",
    "constructor",
    " ",
    "CON",
    "日本語 🦜 e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
    "A" * 2_000,
    "W " * 500,
)
"""Names and short texts; the long ones are below."""

LONG = "0123456789abcdef" * 65_536
"""One MiB without a place to break a line."""

LONG_LINES = "<b>line</b> of a log\n" * 52_000
"""One MiB of lines."""

SURROGATE = "lone \ud800 surrogate"
"""What no UTF-8 can say; JSON can."""

DEVICES = (CORPUS[0], CORPUS[8], CORPUS[16], CORPUS[18], "__proto__")
"""Devices; each has every model."""

_OK = Status.PASS


def hostile_environment(device: str, text: str, run: int) -> Environment:
    """``text`` in every key and value; the build of torch is ``text`` as well."""
    base = environment(device)
    identity = (*base.identity, (text, text), ("torch", f"{text}{run}"), ("torch_commit", text))
    long = (("dmesg", LONG_LINES), ("path", LONG))
    return Environment(device, tuple(dict(identity).items()), ((text, text), *long), (text, LONG_LINES))


def write_store(path: Path, names: Sequence[str] = CORPUS, *, most: str = LONG) -> None:
    """Two nights with numbers, failures, checks, operators, findings of trend, and an A/B run."""
    runs = [RunBuilder(f"1e5-{night}", NOW - (3 - night) * DAY) for night in (1, 2)]
    for night, run in enumerate(runs):
        _night(run, night, names, most)
        run.write(path)
    unfinished = RunBuilder("NULL", NOW - 60)
    result(unfinished, Case(Workload(names[0], names[0]), EAGER, DeviceTarget(names[0])))
    unfinished.write(path, results=(), publish=False)
    store = Store.open(path)
    _trend(store, runs, names)
    _comparison(store, names)


def _night(run: RunBuilder, night: int, names: Sequence[str], most: str) -> None:
    for number, device in enumerate(DEVICES):
        run.environments.append(hostile_environment(device, names[number], night))
        run.calibrations.append(
            Calibration(device, "start", 1.4e11, 1.1e10, 2e-6)
            if number % 2
            else Calibration(device, names[number], None, None, None, absent=most)
        )
    for number, text in enumerate(names):
        device = DeviceTarget(DEVICES[number % len(DEVICES)])
        there = hostile_environment(device.name, names[number % len(DEVICES)], night).id
        workload = Workload(text, text, text, text, shape=((text, 1),), size=text)
        plain = replace(EAGER, name=text)
        compiled = Configuration(text + "!", text, options=((text, text),), env=(("X", text),))
        _passing(run, Case(workload, plain, device), text, night, there)
        (_failing if night else _passing)(run, Case(workload, compiled, device), text, night, there)
        for suite, mode in (("conformance", "check"), ("ops", "inference"), (text, "check")):
            case = Case(Workload(suite, text, mode, text, shape=((text, 2),)), plain, device)
            (_failing if number % 2 else _passing)(run, case, text, night, there)
    for text in (most, SURROGATE):
        case = Case(Workload("long", "long", "inference", seed=len(text)), EAGER, DeviceTarget(DEVICES[0]))
        _failing(run, case, text, night, hostile_environment(DEVICES[0], names[0], night).id)


def _passing(run: RunBuilder, case: Case, text: str, night: int, environment_id: str) -> None:
    """Passes with numbers whose methods are hostile; a hostile unit or metric is never published."""
    blocks = tuple(range(8))  # enough for an interval: what has none is not drawn
    found = [
        Measurement(
            "latency", "s", tuple(0.01 + 0.001 * night + 1e-5 * i for i in blocks), blocks, text, text
        ),
        Measurement("throughput", "1/s", tuple(100.0 + i for i in blocks), blocks, text),
        Measurement("peak_memory", "B", absent=text),
    ]
    if case.configuration.compiled:
        found.append(
            Measurement("speedup", "ratio", tuple(1.1 + 0.01 * i for i in blocks), blocks, text, text)
        )
        found.append(Measurement("compile_cold", "s", (3.0,), provenance=text))
    summaries = [replace(summarise(each, METRICS[each.metric]), method=text) for each in found]
    result(
        run, case, measurements=found, summaries=tuple(summaries), reproduce=text,
        modifiers=(Modifier.DEGRADED, Modifier.FLAKY),
        accuracy=replace(ACCURACY, reference=text, detail=text),
        realised=Realised(text, 1, 2, text, (text,)), environment_id=environment_id,
        facts=((text, text), ("degraded", text), ("link", text), ("doc", text), ("api", text)),
    )  # fmt: skip


def _failing(run: RunBuilder, case: Case, text: str, night: int, environment_id: str) -> None:
    result(
        run, case, Status.ERROR, reason=text, exit=text, teardown=text, log=text, log_excerpt=text,
        reproduce=text, accuracy=Accuracy(text, detail=text), environment_id=environment_id,
        facts=((text, text), ("degraded", text), ("link", text), ("blocks", text)),
        failure=replace(failure(text), type=text, frame=text, missing_op=text, fingerprint=text,
                        traceback=text),
    )  # fmt: skip


def _trend(store: Store, runs: Sequence[RunBuilder], names: Sequence[str]) -> None:
    """What ``torchgauge results trend`` would have kept, about hostile series."""
    good, bad = (run.run_id for run in runs)
    findings = []
    for number, text in enumerate(names):
        case = runs[0].results[number].case
        findings.append(
            Finding(
                f"{text}{number}", case.key, text, text, text, text, text, "latency", text, text, True,
                0.1, None if number % 2 else 0.05, 0.2, 0.01, 0.011, 5.0, good, bad, good, bad, text, text,
                NOW - 2 * DAY, NOW - DAY, 3, TrendState.SUSPECTED, text, text,
            )
        )  # fmt: skip
        state = list(TrendState)[number % len(TrendState)]
        outcome = TrendOutcome(text, text, text, text, text, text, state, text, NOW, 1.1, 1.05, 1.2, text)
        append_outcome(store, outcome)
    question = TrendFilter(names[0], names[1], names[2], names[3], names[4], 0.0, names[5])
    look = Look(question, bad, NOW - DAY, NOW, len(names), len(names), tuple(findings))
    path_of(store).write_text(to_json(TrendFindings(looks=(look,))))


def _comparison(store: Store, names: Sequence[str]) -> None:
    pairs, verdicts = [], []
    for number, text in enumerate(names):
        case = Case(Workload(text, text), replace(EAGER, name=text), DeviceTarget(text))
        pair = Pair(case, replace(case, configuration=replace(INDUCTOR, name=text)))
        pairs.append(pair)
        verdicts.append(
            MetricVerdict(
                pair.key, text, text, text, text, text, text, list(Verdict)[number % len(Verdict)], text,
                1.0, 1.1, 1.1, 1.05, 1.15, launches=4,
            )
        )  # fmt: skip
    side = SideSpec(names[0], names[1], ((names[2], names[3]),), names[4])
    plan = ComparisonPlan("TRUE", NOW, tuple(names), RunSettings(), side, side, tuple(pairs), (), 1)
    folder = begin_comparison(store, plan)
    with folder.open_journal() as journal:
        journal.append(Kind.VERDICT, verdicts)
        journal.append(Kind.END, [End(RunState.COMPLETE, NOW)])
    finish_comparison(store, folder, plan)
