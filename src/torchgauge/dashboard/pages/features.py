"""The pages of the suite of features: for each family what was asked, what ran and what it bought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from torchgauge.counted import counted
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.pages.links import case_link, model_page
from torchgauge.dashboard.pages.number_text import NO_NUMBER, digits, half_percent, scale_of, spread
from torchgauge.dashboard.pages.subject_links import check_anchor
from torchgauge.dashboard.statuses import Look
from torchgauge.records import METRICS, Status, Subject, Workload
from torchgauge.results.hostile_text import slug
from torchgauge.suites.features.family import NAME, family_of

INDEX = "features.html"
QUESTIONS = {
    "compile.regional": "Compiling blocks one by one: what does it save at the start and cost per step?",
    "compile.autograd": "How much of the backward pass is captured, and how long is a step?",
    "compile.latency": "How long is the first call with an empty and with a filled cache?",
    "attention.flex": "flex_attention: one compiled kernel against materialised masks",
    "attention.sdpa": "Which backend of scaled_dot_product_attention runs, and how long does it take?",
    "device.autoload": "Does import torch register the device, how long does it take, and can it fail?",
    "inductor.knobs": "What does each inductor option save per step and cost to compile?",
}
"""By family; one of another package has its name alone."""
COSTS = ("import_time", "compile_cold", "compile_cold_cpu", "compile_warm", "export_time", "package_compile")
GAINS = ("latency", "speedup", "peak_memory")
COUNTS = {
    "graph_count": "graph", "recompiles": "recompile", "autograd_captures": "backward capture",
    "fx_cache_hits": "FX cache hit", "autograd_cache_hits": "autograd cache hit",
}  # fmt: skip
"""Metrics of whole numbers, and what they count."""
FACTS = {
    "compiled_share": "{:.0%} of the time in compiled code", "region_kinds": "kinds of blocks: {}",
    "regions_left_out": "blocks left out: {}",
    "region_calls": "{} calls of regions", "flex_calls": "{} calls of flex_attention",
    "sdpa_kernels": "kernels {}", "flash_implementation": "implementation {}",
    "block_sparsity": "{:.0%} of blocks skipped",
    "simd_width": "SIMD width {}", "folded_parameters": "{} parameters folded",
    "autotuned": "{} operators tuned", "autotune_kept": "{} operators chosen by cached tuning times",
    "cpp_templates": "{} C++ templates", "native_isa": "instructions {}",
    "calling_code": "called from {}", "python_operators": "operators in Python: {}",
    "python_calls": "{} torch functions called from Python per step",
    "compile_cache_bypassed": "compile cache bypassed", "extensions": "extensions {}",
    "device_visible": "device visible: {}", "visible_without": "visible with autoload off: {}",
    "raised": "raised {}",
}  # fmt: skip
"""What ran, by the name of the fact."""
UNKNOWN = "_unknown"
"""How a fact ends that says why another one is not there."""
HEADS = {
    "import_time": "import",
    "compile_cold": "cold call", "compile_cold_cpu": "CPU time of cold call", "compile_warm": "warm call",
    "export_time": "export", "package_compile": "package", "latency": "step", "speedup": "speed-up",
    "peak_memory": "peak memory",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One case: how it is shown, its numbers by column, and what ran in words."""

    configuration: str  # "" of a check, which none runs
    device: str
    href: str
    look: Look
    marks: tuple[str, ...]
    numbers: tuple[str, ...]
    ran: str


@dataclass(frozen=True)
class Question:
    """One workload of a family, with a line for each configuration on each device."""

    title: str
    href: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Family:
    """One page: of its cases ``passed`` count as passes and ``refused`` were not offered."""

    name: str
    file: str
    question: str
    heads: tuple[str, ...]
    questions: tuple[Question, ...]
    passed: int
    degraded: int
    refused: int
    cases: int

    @property
    def failed(self) -> int:
        """Those that ended otherwise: wrong, crashed, or not measured at all."""
        return self.cases - self.passed - self.degraded - self.refused


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of all families and one for each, where the store has any."""
    families = tuple(_families(context.latest))
    if not families:
        return
    page = context.renderer.page
    yield INDEX, page("features", INDEX, families=families).encode()
    for family in families:
        yield family.file, page("feature", family.file, section=INDEX, family=family).encode()


def has_features(latest: LatestResults) -> bool:
    """Whether the store has a case of the suite."""
    return any(workload.suite == NAME for workload, _ in latest.entries)


def _families(latest: LatestResults) -> Iterator[Family]:
    entries = sorted(
        (entry for (workload, _), entry in latest.entries.items() if workload.suite == NAME),
        key=lambda entry: (family_of(entry.workload.model), entry.workload, entry.column.order),
    )
    for name, found in groupby(entries, key=lambda entry: family_of(entry.workload.model)):
        yield _family(name, tuple(found))


def _family(name: str, entries: Sequence[Entry]) -> Family:
    metrics = [each for each in (*GAINS, *COSTS) if any(_has(entry, each) for entry in entries)]
    questions = (
        Question(_title(workload), _page_of(workload), tuple(_line(each, metrics) for each in found))
        for workload, found in groupby(entries, key=lambda entry: entry.workload)
    )
    return Family(
        name,
        f"features/{slug(name)}.html",
        QUESTIONS.get(name, ""),
        tuple(HEADS[metric] for metric in metrics),
        tuple(questions),
        sum(entry.fully_passed for entry in entries),
        sum(bool(entry.degraded) and entry.status is Status.PASS for entry in entries),
        sum(entry.status is Status.UNSUPPORTED for entry in entries),
        len(entries),
    )


def _page_of(workload: Workload) -> str:
    """The page of a model; a check has a row on the page of checks."""
    if workload.subject is Subject.MODELS:
        return model_page(workload.group)
    return f"checks.html#{check_anchor(workload)}"


def _title(workload: Workload) -> str:
    return f"{workload.model} {workload.variant}"


def _line(entry: Entry, metrics: Iterable[str]) -> Line:
    return Line(
        "" if entry.workload.subject is Subject.CHECKS else entry.column.configuration,
        entry.column.device,
        case_link(entry) if entry.workload.subject is Subject.MODELS else _page_of(entry.workload),
        entry.look,
        tuple(mark for mark in entry.marks if mark != "degraded"),
        tuple(_number(entry, metric) for metric in metrics),
        _ran(entry),
    )


def _has(entry: Entry, metric: str) -> bool:
    number = entry.numbers.get(metric)
    return number is not None and number["median"] is not None


def _number(entry: Entry, metric: str) -> str:
    """A number with half of its interval, rough where it is in doubt; a dash where there is none."""
    if not _has(entry, metric):
        return NO_NUMBER
    number = entry.numbers[metric]
    if entry.doubt(metric):
        return entry.told(number)
    scale, half = scale_of(METRICS[metric]), half_percent(number)
    text = f"{digits(number['median'] / scale.factor, half)} {scale.name}"
    return f"{text} {spread(half)}" if half is not None else text


def _ran(entry: Entry) -> str:
    """What ran, in words: why it is no plain pass first, then the evidence."""
    counts = [
        counted(round(entry.numbers[name]["median"]), noun)
        for name, noun in COUNTS.items()
        if _has(entry, name)
    ]
    facts = [_said(name, entry.facts[name]) for name in FACTS if name in entry.facts]
    facts += [_said(name, said) for name, said in entry.facts.items() if name.endswith(UNKNOWN)]
    why = entry.degraded or ("" if entry.fully_passed else str(entry.shown["reason"] or ""))
    return "; ".join(filter(None, (why, ", ".join((*counts, *facts)))))


def _said(name: str, fact: object) -> str:
    """A fact in words; under its name where it is unknown, or not of the kind that the words are for."""
    with suppress(KeyError, ValueError):
        return FACTS[name].format(fact)
    return f"{name.replace('_', ' ')}: {fact}"
