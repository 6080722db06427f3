"""A report as Markdown for one comment on a pull request: the verdict first, what is unchanged folded away.

A comment of GitHub's holds 65,536 characters. Rows beyond that are cut, and a line says how many.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from torchgauge.records.comparison import Action, MetricVerdict
from torchgauge.results import units
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.comparing.gate_verdict import Headline
from torchgauge.results.journal import RunState
from torchgauge.results.markdown_text import code, fenced, row_line, table
from torchgauge.results.reports.publisher import Publisher, Report
from torchgauge.results.reports.report import (
    ComparisonReport,
    SideFacts,
    noise_class,
)
from torchgauge.results.reports.run_report import CaseLine, RunReport

LIMIT = 65_536
"""Characters of a comment."""
_MARGIN = 1_000
"""Characters that are kept free for lines that say what was cut."""
_SHARES = (0.7, 0.9, 1.0)
"""Parts of the room that flagged rows, unclear rows and what was not run may fill, one after the other."""

_FACTS = re.compile(
    r".+\.model|.+\.cores_available|host\.(?:memory_bytes|system)|.*driver.*|python\.version"
    r"|torch\.(?:version|git_commit|flavour)|compiler\..+|imported_from"
)
"""Facts of an environment that are always shown; others only where the sides differ in them."""
_MOST_FACTS = 16
_PLAIN = re.compile(r"[\w.,/ µ>-]+")


def render(report: Report, limit: int = LIMIT) -> str:
    """``report`` as Markdown, at most ``limit`` characters where its summary alone has fewer."""
    return _run(report, limit) if isinstance(report, RunReport) else _comparison(report, limit)


def marker(report: ComparisonReport) -> str:
    """The hidden first line by which a later report finds the comment that it replaces."""
    return f"<!-- torchgauge:ab:{report.marker} -->"


def _comparison(report: ComparisonReport, limit: int) -> str:
    flagged, unclear = report.flagged, report.unclear
    start = [marker(report), _headline(report), ""]
    if report.headline is not Headline.UNCHANGED:
        start += [_counts(report), ""]
    details = ["<details><summary>Details</summary>", ""]
    if report.headline is Headline.UNCHANGED:
        details += [_counts(report), ""]
    details += [
        *_summary(report),
        "",
        *_sides(report),
        "",
        "Run it again:",
        "",
        fenced(shlex.join(report.command)),
    ]
    details += ["", *_how_to_accept(report), "", "</details>"]
    room = limit - _MARGIN - sum(len(line) + 1 for line in (*start, *details))
    rows = _Rows(room)
    body = rows.take(_SHARES[0], _TITLES, [_flagged_row(each) for each in flagged], "changed")
    said = rows.take(_SHARES[1], _UNCLEAR, [_unclear_row(each) for each in unclear], "unclear")
    never = rows.take(_SHARES[2], ["not run"], [[code(each)] for each in report.not_run], "not run")
    for title, lines in (("Undecided or not comparable", said), ("Not run", never)):
        if lines:
            body += [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]
    return "\n".join([*start, *body, *details]) + "\n"


class _Rows:
    """Tables that together fill no more than ``room`` characters."""

    def __init__(self, room: int) -> None:
        self.room, self.used = max(0, room), 0

    def take(self, share: float, header: list[str], rows: Sequence[list[str]], what: str) -> list[str]:
        """The table of ``rows`` up to ``share`` of the room, with a line on what was cut."""
        if not rows:
            return []
        lines = table(header, [])
        self.used += sum(len(line) + 1 for line in lines)
        kept = 0
        for row in rows:
            line = row_line(row)
            if self.used + len(line) + 1 > share * self.room:
                break
            self.used += len(line) + 1
            lines.append(line)
            kept += 1
        if kept < len(rows):
            lines += ["", f"{len(rows) - kept:,} more {what} rows are cut; the JSON report has all of them."]
        return [*lines, ""] if kept else [*lines[2:], ""]


def _headline(report: ComparisonReport) -> str:
    counts = report.counts
    texts = {
        Headline.REGRESSION: f"**Regression**: {_worse(report)}.",
        Headline.NOTHING_COMPARED: (
            f"**Nothing could be compared**: of {_pairs(counts.planned)}, {counts.not_comparable} were not "
            f"comparable and {counts.not_run} not run. This is no pass."
        ),
        Headline.INCOMPLETE: (
            f"**Incomplete**: {_state(report.state)}; {counts.not_run} of {_pairs(counts.planned)} were not "
            "run. This is no pass."
        ),
        Headline.IN_DOUBT: "**In doubt**: what did not change was called changed. This is no pass.",
        Headline.NOTHING_GATES: "**Undecided**: nothing that was compared gates, as the policy says.",
        Headline.UNDECIDED: (
            f"**Undecided**: no regression was found, but of {_pairs(counts.planned)}, {counts.undecided} "
            f"could not be decided and {counts.not_comparable} not be compared."
        ),
        Headline.REPORTED: _let_pass(report),
        Headline.IMPROVEMENT: (f"**Improvement**: {counts.changed} of {_pairs(counts.planned)}, none worse."),
        Headline.UNCHANGED: f"**Unchanged**: {_pairs(counts.unchanged)} within {_tolerance(report)}.",
    }
    doubt = [f"In doubt: {code(words.in_doubt(report.verdicts))}."] if words.alarms(report.verdicts) else []
    return " ".join([texts[report.headline], *doubt, *_short(report)])


def _let_pass(report: ComparisonReport) -> str:
    counted = [each for each in report.verdicts if each.action is not Action.IGNORE]
    what, _, which = words.let_pass(counted).partition(": ")
    return f"**{what.capitalize()}**: {which}, of {_pairs(report.counts.planned)}."


def _worse(report: ComparisonReport) -> str:
    counted = [each for each in report.verdicts if each.action is not Action.IGNORE]
    return f"{words.worse(counted)}, of {_pairs(report.counts.planned)}"


def _short(report: ComparisonReport) -> list[str]:
    """What stands on the first line after the verdict: the whole suite and what could have been seen."""
    found = []
    suite = report.suite
    if suite is not None and suite.ratio is not None:
        found.append(f"Suite {units.interval(suite.ratio, suite.low, suite.high, 'ratio')}.")
    if report.counts.ignored:
        found.append(f"{_pairs(report.counts.ignored)} worse, which the policy ignores.")
    if report.detectable is not None:
        found.append(f"The smallest change that this run could have seen is {_percent(report.detectable)}.")
    return found


def _counts(report: ComparisonReport) -> str:
    counts = report.counts
    more = [f"{counts.reported} worse but only reported"] * bool(counts.reported)
    more += [f"{counts.ignored} worse but ignored by the policy"] * bool(counts.ignored)
    listed = [
        f"{counts.tested} tested",
        f"{counts.changed} changed",
        f"{counts.unchanged} unchanged",
        f"{counts.undecided} undecided",
        f"{counts.not_comparable} not comparable",
        f"{counts.quarantined} quarantined",
        f"{counts.not_run} not run",
        *more,
    ]
    return f"Of {_pairs(counts.planned)}: {', '.join(listed)}."


_TITLES = ["case", "metric", "verdict", "base -> head", "ratio", "adjusted p", "launches", "noise"]
_UNCLEAR = ["case", "metric", "verdict", "reason", "ratio so far", "launches"]


def _flagged_row(verdict: MetricVerdict) -> list[str]:
    action = "" if verdict.action is Action.GATE else f" ({verdict.action.value})"
    noise = noise_class(verdict) + (", quarantined" if verdict.quarantined else "")
    confirmed = ", confirmed" if verdict.confirmed else ""
    return [
        code(verdict.pair_id),
        code(verdict.metric),
        f"**{words.name(verdict.verdict)}**{action}",
        _change(verdict) or code(verdict.reason),
        words.ratio(verdict),
        "" if verdict.p_adjusted is None else f"{verdict.p_adjusted:.2g}",
        f"{verdict.launches}{confirmed}",
        noise,
    ]


def _unclear_row(verdict: MetricVerdict) -> list[str]:
    needed = f" of about {verdict.needed}" if verdict.needed else ""
    return [
        code(verdict.pair_id),
        code(verdict.metric),
        words.name(verdict.verdict),
        code(verdict.reason),
        words.ratio(verdict),
        f"{verdict.launches}{needed}",
    ]


def _summary(report: ComparisonReport) -> list[str]:
    """Whole suite, what could have been seen, and how often the rule is wrong."""
    lines = []
    suite = report.suite
    if suite is not None and suite.ratio is not None:
        text = units.interval(suite.ratio, suite.low, suite.high, "ratio")
        lines.append(f"- Whole suite: {text} ({words.name(suite.verdict)}, {code(suite.reason)}).")
    else:
        lines.append("- Whole suite: no geometric mean, since fewer than two cases were timed often enough.")
    if report.detectable is None:
        lines.append("- How small a change could have been seen is not known.")
    else:
        lines.append(f"- Four of five cases could have shown a change of {_percent(report.detectable)}.")
    alarms = report.false_alarms
    if alarms is None or alarms.rate is None or alarms.low is None or alarms.high is None:
        lines.append(
            "- False alarms (head against head): none was measured on this class of machine in 30 days."
        )
    else:
        lines.append(
            f"- False alarms (head against head) in {alarms.days} days: {alarms.alarms} of {alarms.trials}, "
            f"{_percent(alarms.rate)} [{_percent(alarms.low)}, {_percent(alarms.high)}]."
        )
    controls = {each.pair_key for each in report.verdicts if each.control}
    lines.append(
        f"- This run: {code(report.run_id)}, {units.moment(report.created_at)}, {_state(report.state)}, "
        f"{len(controls)} A/A pairs."
    )
    return lines


def _sides(report: ComparisonReport) -> list[str]:
    rows = [["what it is", code(report.base.label), code(report.head.label)]]
    rows.append(["interpreter", code(report.base.python), code(report.head.python)])
    for name, value in (("configuration", "configuration"), ("variables", "variables")):
        ours, theirs = (_told(side, value) for side in (report.base, report.head))
        if ours or theirs:
            rows.append([name, ours, theirs])
    devices = [name for side in (report.base, report.head) for name, _ in side.environments]
    for device in dict.fromkeys(devices):
        rows += _environment_rows(report, device)
    if not report.base.environments:
        rows.append(["machine and versions", "not known", "not known"])
    return table(["", "base", "head"], rows)


def _environment_rows(report: ComparisonReport, device: str) -> list[list[str]]:
    """Machine and versions, and what else differs between the sides."""
    base, head = (dict(dict(side.environments).get(device, ())) for side in (report.base, report.head))
    keys = sorted(base.keys() | head.keys())
    named = [key for key in keys if _FACTS.fullmatch(key)][:_MOST_FACTS]
    differ = [key for key in keys if base.get(key) != head.get(key) and key not in named]
    shown = [*named, *differ[:_MOST_FACTS]]
    return [
        [f"{code(device, 40)} {code(key, 60)}", code(base.get(key, ""), 120), code(head.get(key, ""), 120)]
        for key in shown
    ]


def _told(side: SideFacts, field: str) -> str:
    if field == "configuration":
        return code(side.configuration)
    return code(" ".join(f"{name}={value}" for name, value in side.variables))


def _how_to_accept(report: ComparisonReport) -> list[str]:
    """What to write where a change is meant; names are not repeated here, since they stand above."""
    where = code(report.policy) if report.policy else "a policy file (`--policy FILE`)"
    return [
        f"A change that is meant is accepted in {where}: under `cases`, the case as it is written above,",
        "with a `tolerance` above the change, a `reason`, and a date in `expires`. An undecided case needs",
        "more time, not an entry.",
    ]


def _run(report: RunReport, limit: int) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in report.counts.items()) or "no case"
    unexpected = report.unexpected
    verdict = (
        f"**{len(unexpected)} unexpected**"
        if unexpected
        else "**Incomplete**: this is no pass"
        if report.incomplete or not report.planned
        else "**As expected**"
        if any(each.tells for each in report.cases)
        else "**Nothing measured**: this is no pass"
    )
    start = [f"{verdict}. Of {report.planned} cases: {counts}.", ""]
    start[0] += "".join(
        f" **{_APART[what][0]}: {len(found)}**: {_APART[what][1]}." for what, found in _apart(report)
    )
    end = [f"Run {code(report.run_id)}, {units.moment(report.created_at)}, {_state(report.state)}.", ""]
    end += [fenced(shlex.join(report.command))]
    rows = _Rows(limit - _MARGIN - sum(len(line) + 1 for line in (*start, *end)))
    body = rows.take(
        0.7, ["case", "status", "reason"], [_case_row(each) for each in unexpected], "unexpected"
    )
    for what, found in _apart(report):
        room, header = _APART[what][2:]
        body += rows.take(room, header, [_apart_row(each, what, header) for each in found], what)
    body += rows.take(1.0, ["not run"], [[code(each)] for each in report.not_run], "not run")
    return "\n".join([*start, *body, *end]) + "\n"


def _apart(report: RunReport) -> list[tuple[str, tuple[CaseLine, ...]]]:
    """The cases that are told apart, by the field that says why; those that there are."""
    found = {
        "degraded": report.degraded,
        "other_model": report.other_models,
        "unchecked": report.unchecked,
        "unsteady": report.unsteady,
    }
    return [(what, cases) for what, cases in found.items() if cases]


_APART: dict[str, tuple[str, str, float, list[str]]] = {
    "degraded": ("Degraded passes", "not by the path that was asked for", 0.9, ["case", "pass, but"]),
    "other_model": (
        "Of another model than their name says", "no pass of the named one", 0.95,
        ["case", "status", "the model"],
    ),
    "unchecked": ("Unchecked", "compared with no reference, so no pass", 0.97, ["case", "unchecked, since"]),
    "unsteady": (
        "Unsteady", "their step times enter no mean and no comparison", 0.98, ["case", "unsteady, since"],
    ),
}  # fmt: skip
"""What is said of them in the first line, how far their table may fill the room, and its heading."""


def _apart_row(case: CaseLine, what: str, header: list[str]) -> list[str]:
    """Another model may have ended in any way; the others are passes."""
    status = [case.status.value] if "status" in header else []
    return [code(case.case_id), *status, code(getattr(case, what))]


def _case_row(case: CaseLine) -> list[str]:
    return [code(case.case_id), case.status.value, code(case.reason)]


def _change(verdict: MetricVerdict) -> str:
    text = words.change(verdict) if verdict.base is not None and verdict.head is not None else ""
    return text if not text or _PLAIN.fullmatch(text) else code(text)


def _percent(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 0.1 else f"{value:.0%}".replace("%", " %")


def _pairs(number: int) -> str:
    return f"{number:,} case{'' if number == 1 else 's'}"


def _tolerance(report: ComparisonReport) -> str:
    found = [each.tolerance for each in report.judged if each.metric == "latency"]
    return _percent(max(found)) if found else "their tolerances"


def _state(state: RunState) -> str:
    return {
        RunState.COMPLETE: "complete",
        RunState.INTERRUPTED: "interrupted",
        RunState.OUT_OF_BUDGET: "out of time",
        RunState.RUNNING: "still running",
    }[state]


PUBLISHER = Publisher("markdown", render)
