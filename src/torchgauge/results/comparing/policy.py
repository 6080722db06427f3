"""The policy: tolerances, and what is done with a verdict, as one strict YAML file.

Why a file of its own and not options: a gate that somebody loosened must say why and until when, and a review
must be able to see it. ``defaults`` apply to everything, then ``suites``, then ``patterns`` (globs over case
ids, in the order of the file), then ``cases``; the later and narrower one wins, field by field. ``tolerance``
of an entry means step times; every other metric has its own below ``metrics``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from torchgauge import registry
from torchgauge.records import Compared, compared_by
from torchgauge.records.comparison import Action, Pair
from torchgauge.records.metrics import STEP_TOLERANCE
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.pattern import matches
from torchgauge.suites.schema import convert, refuse


@dataclass(frozen=True)
class Rule:
    """What holds for one metric of one pair.

    ``tolerance`` is the relative change that matters and ``floor`` the absolute one, in the metric's base
    unit: a change must exceed both. ``expires`` is a date such as ``2027-01-31``, or empty.
    """

    tolerance: float = STEP_TOLERANCE
    alpha: float = 0.05
    max_time_s: float = 240.0
    action: Action = Action.GATE
    reason: str = ""
    expires: str = ""
    floor: float = 0.0

    def tolerated(self, *, quarantined: bool) -> float:
        """The tolerance, three times as much in quarantine: what is in there gates at that."""
        return self.tolerance * (QUARANTINE_FACTOR if quarantined else 1.0)


QUARANTINE_FACTOR = 3.0
"""What is in quarantine gates at so many times its tolerance."""

SUITE_TOLERANCE = 0.01
"""Tolerance of the geometric mean: one per cent everywhere is more than one per cent of one case."""

STEP_TIMES = (*compared_by(Compared.STEPS), "latency_wall", "latency_tail", "suite")
"""Names of step times that are judged; ``suite`` is the geometric mean, wall and tail are ratios alone."""

_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_Tolerance = Annotated[float, msgspec.Meta(gt=0, le=10)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_ActionName = Literal["gate", "report", "ignore"]


class MetricFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What an entry says of one metric."""

    tolerance: _Tolerance | None = None
    floor: Annotated[float, msgspec.Meta(ge=0)] | None = None
    alpha: _Share | None = None
    action: _ActionName | None = None
    reason: str = ""


class EntryFields(MetricFields, forbid_unknown_fields=True, kw_only=True):
    """One entry: of ``defaults``, of a suite, of a pattern or of a case."""

    max_time: _Seconds | None = None
    expires: str = ""
    metrics: dict[str, MetricFields] = {}


@dataclass(frozen=True)
class Layer:
    """An entry and what it applies to; an empty ``name`` is the defaults."""

    section: str
    name: str
    fields: EntryFields

    def covers(self, suite: str, case_id: str) -> bool:
        """Whether the entry applies to the case ``case_id`` of ``suite``; an empty id is the suite itself."""
        if self.section == "defaults":
            return True
        if self.section == "suites":
            return self.name == suite
        if self.section == "cases":
            return self.name == case_id
        return bool(case_id) and matches(self.name, case_id)

    def apply(self, rule: Rule, metric: str) -> Rule:
        """``rule`` with what this entry says of ``metric``."""
        own = self.fields.metrics.get(metric)
        changes: dict[str, Any] = {
            "alpha": self.fields.alpha,
            "max_time_s": self.fields.max_time,
            "action": self.fields.action,
        }
        if metric in STEP_TIMES:
            changes |= {"tolerance": self.fields.tolerance, "floor": self.fields.floor}
        if own is not None:
            named = {"tolerance": own.tolerance, "floor": own.floor, "alpha": own.alpha, "action": own.action}
            changes |= {field: value for field, value in named.items() if value is not None}
        kept = {field: value for field, value in changes.items() if value is not None}
        if not kept:
            return rule
        if "action" in kept:
            kept["action"] = Action(kept["action"])
        return replace(rule, **kept, reason=self.reason(metric), expires=self.fields.expires)

    def reason(self, metric: str) -> str:
        """Why the entry says what it says of ``metric``; empty where it does not tell."""
        own = self.fields.metrics.get(metric)
        return ((own.reason if own is not None else "") or self.fields.reason).strip()


def built_in(metric: str) -> Rule:
    """What holds for ``metric`` where no file says anything."""
    if metric in STEP_TIMES:
        return Rule(tolerance=SUITE_TOLERANCE) if metric == "suite" else Rule()
    known = registry.metrics().get(metric)
    return Rule(tolerance=known.tolerance, floor=known.floor) if known is not None else Rule(tolerance=0.0)


@dataclass(frozen=True)
class Policy:
    """The rules of a run; ``source`` is the file, empty for the built-in policy."""

    layers: tuple[Layer, ...] = ()
    source: str = ""

    @classmethod
    def default(cls) -> Policy:
        """The built-in policy: everything gates, with the built-in tolerances."""
        return cls()

    def rule(self, pair: Pair, metric: str = "latency") -> Rule:
        """The rule for ``metric`` of ``pair``, which has the case id of its head."""
        return self.rule_of(pair.head.workload.suite, pair.head.id, metric)

    def rule_of(self, suite: str, case_id: str, metric: str = "latency") -> Rule:
        """The same by names; an empty ``case_id`` asks for the rule of the suite as a whole."""
        rule = built_in(metric)
        for layer in self.layers:
            if layer.covers(suite, case_id):
                rule = layer.apply(rule, metric)
        return rule

    def unused(self, case_ids: Mapping[str, str]) -> tuple[str, ...]:
        """Suites, patterns and cases of the file that apply to none of ``case_ids`` (case id to suite)."""
        return tuple(
            f"{layer.section}.{layer.name}"
            for layer in self.layers
            if layer.name and not any(layer.covers(suite, case) for case, suite in case_ids.items())
        )


def load_policy(path: Path, today: date) -> Policy:
    """The policy in the file ``path`` as of ``today``.

    Raises :class:`DataFileError` with file and line for whatever does not fit, for what is loosened without a
    reason, and for an override that has expired.
    """
    document = read_document(path)
    layers = []
    for section, name, part in _parts(document):
        fields = convert(part, EntryFields)
        _check(part, fields, today)
        layers.append(Layer(section, name, fields))
    policy = Policy(tuple(layers), str(path))
    _check_reasons(document, policy)
    return policy


def policy_of(path: str | None, today: date) -> Policy:
    """The policy in ``path``, or the built-in one where no file is named."""
    return Policy.default() if path is None else load_policy(Path(path), today)


SECTIONS = ("defaults", "suites", "patterns", "cases")
"""Top-level keys of a policy, in the order in which they apply."""


def _parts(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Section, name and part of every entry, the broadest first; raises for a wrong outline."""
    top = document.value
    if not isinstance(top, dict):
        raise refuse(document, "$", "a policy is a mapping", f"its keys are {', '.join(SECTIONS)}")
    for key in top:
        if key not in SECTIONS:
            raise refuse(document, f"$.{key}", f"unknown field {key!r}", f"one of: {', '.join(SECTIONS)}")
    for section in SECTIONS:
        below = top.get(section)
        if below is None:
            continue
        if not isinstance(below, dict):
            raise refuse(
                document,
                f"$.{section}",
                "expected a mapping",
                f"see `{section}` in the reference of YAML files",
            )
        if section == "defaults":
            yield section, "", document.part(section)
            continue
        for name in below:
            _check_name(document, section, name)
            yield section, name, document.part(section, name)


def _check_name(document: Document, section: str, name: str) -> None:
    at = f"$.{section}.{name}"
    if section == "cases" and ("*" in name or "?" in name):
        raise refuse(document, at, f"{name!r} is a pattern", "move it to `patterns`")
    if section == "cases" and not ("/" in name and "@" in name and name.count(":") >= 3):
        hint = "write a case id: suite/model:mode:dtype:b1:configuration@device, or move a glob to `patterns`"
        raise refuse(document, at, f"{name!r} is not a case id", hint)
    if section == "suites" and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", name):
        raise refuse(document, at, f"{name!r} is not the name of a suite", "move a glob to `patterns`")


def _check(part: Document, fields: EntryFields, today: date) -> None:
    """Raise for what no type can say of one entry."""
    for metric, own in fields.metrics.items():
        at = f"$.metrics.{metric}"
        metrics = registry.metrics()
        sized = [name for rule in (Compared.RATIO, Compared.MEMORY) for name in compared_by(rule, metrics)]
        exact = ("status", *compared_by(Compared.EXACT, metrics))
        known = (*STEP_TIMES, *sized, *exact)
        if metric not in known:
            raise refuse(part, at, f"unknown metric {metric!r}", f"one of: {', '.join(known)}")
        if own.tolerance is not None and metric in exact:
            hint = f"only `action` can be set for {metric}"
            raise refuse(part, f"{at}.tolerance", f"{metric} is compared exactly", hint)
    if not fields.expires:
        return
    try:
        last = date.fromisoformat(fields.expires)
    except ValueError:
        problem = f"{fields.expires!r} is not a date"
        raise refuse(part, "$.expires", problem, "write it as 2027-01-31") from None
    if last < today:
        raise refuse(
            part,
            "$.expires",
            f"the override expired on {fields.expires}",
            "measure again and remove the entry, or give a new date and a reason that still holds",
        )


def _check_reasons(document: Document, policy: Policy) -> None:
    """Raise where an entry loosens what holds without it, or stops gating, and does not say why."""
    before: list[Layer] = []
    for layer in policy.layers:
        at = "$.defaults" if layer.section == "defaults" else f"$.{layer.section}.{layer.name}"
        for metric in ("latency", *layer.fields.metrics):
            base = built_in(metric)
            for other in before:
                base = other.apply(base, metric)
            rule = layer.apply(base, metric)
            loosened = _loosened(base, rule)
            if loosened and not layer.reason(metric):
                own = layer.fields.metrics.get(metric)
                below = f"{at}.metrics.{metric}" if own and getattr(own, loosened, None) is not None else at
                raise refuse(
                    document,
                    f"{below}.{loosened}",
                    _what(loosened, base, rule),
                    "add `reason: ...` to the entry",
                )
        if layer.section == "defaults":
            before.append(layer)  # only defaults are known to hold for whatever a narrower entry covers


def _loosened(base: Rule, rule: Rule) -> str:
    """The field of an entry in which ``rule`` is looser than ``base``; empty where it is not."""
    order = [Action.GATE, Action.REPORT, Action.IGNORE]
    if order.index(rule.action) > order.index(base.action):
        return "action"
    if rule.tolerance > base.tolerance:
        return "tolerance"
    if rule.floor > base.floor:
        return "floor"
    if rule.alpha < base.alpha:
        return "alpha"
    return "max_time" if rule.max_time_s < base.max_time_s else ""


def _what(field: str, base: Rule, rule: Rule) -> str:
    if field == "action":
        return f"`{rule.action.value}` is weaker than `{base.action.value}` and needs a reason"
    name = "max_time_s" if field == "max_time" else field
    before, after = getattr(base, name), getattr(rule, name)
    return f"{field} {after:g} is looser than the inherited {before:g}, and needs a reason"
