"""Triage for a terminal, a page, a spreadsheet and a program; no text of a row acts in any of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from torchgauge.results import units
from torchgauge.results.hostile_text import brief, csv_cell, first_line
from torchgauge.results.reports.markdown_text import code, fenced, table
from torchgauge.results.triage.findings import Change, Cluster, Known, Triage
from torchgauge.results.triage.reading import RunMark

_NAMES = 6
_HEADER = (
    "id", "kind", "title", "change", "places", "cases", "unexpected", "arrived", "left", "statuses", "models",
    "devices", "configurations", "error_type", "where", "missing_op", "expected", "link", "first_seen_run",
    "first_seen", "last_seen_run", "last_seen", "example", "example_seconds", "example_parameters", "command",
)  # fmt: skip


def lines_of(found: Triage, most: int = 0) -> list[str]:
    """The lines for a person; ``most`` clusters, or all of them where it is 0."""
    lines = [_headline(found)]
    shown = found.clusters[: most or None]
    for number, cluster in enumerate(shown, 1):
        lines += ["", *_cluster_lines(cluster, number)]
    if len(shown) < len(found.clusters):
        lines += ["", f"... and {len(found.clusters) - len(shown)} smaller clusters: --top 0 shows all"]
    if found.gone:
        lines += ["", f"gone since {_mark(found.since)}:"]
        lines += [f"  {each.id}  {_gone(each)}" for each in found.gone[: most or None]]
        if most and len(found.gone) > most:
            lines.append(f"  ... and {len(found.gone) - most} more")
    return [*lines, *(["", *_remarks(found)] if found.notes or found.gaps else [])]


def markdown_of(found: Triage, most: int = 0) -> str:
    """A table of clusters and what each needs, for a page or an issue."""
    shown = found.clusters[: most or None]
    lines = ["# Failures by root cause", "", _headline(found), ""]
    if shown:
        rows = [
            [
                str(number),
                code(each.title),
                f"{each.places} ({_count(len(each.models), 'model')}, {_count(len(each.devices), 'device')})",
                ", ".join(f"{n} `{status}`" for status, n in each.statuses),
                _change_words(each),
                each.first_seen.date,
            ]
            for number, each in enumerate(shown, 1)
        ]
        lines += table(["", "cause", "models x devices", "cases", "change", "first seen"], rows)
    for number, cluster in enumerate(shown, 1):
        lines += ["", f"## {number}. {code(cluster.title)}", ""]
        lines += [f"- {line}" for line in _facts(cluster, code)]
        lines += ["", fenced(cluster.example.command)]
    if len(shown) < len(found.clusters):
        lines += ["", f"{len(found.clusters) - len(shown)} smaller clusters are not shown."]
    if found.gone:
        lines += ["", f"## Gone since {_mark(found.since)}", ""]
        lines += [f"- {code(each.title)}: {_left_as(each)}" for each in found.gone[: most or None]]
    lines += ["", *(f"- {code(line)}" for line in _remarks(found))] if found.notes or found.gaps else []
    return "\n".join(lines) + "\n"


def csv_of(found: Triage) -> str:
    """One line per cluster, those that are gone at the end."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEADER)
    for cluster in (*found.clusters, *found.gone):
        writer.writerow([csv_cell(value) for value in _cells(cluster)])
    return file.getvalue()


def as_plain(found: Triage) -> dict[str, Any]:
    """Plain values for JSON; times are seconds since the epoch. Text is as the rows hold it."""
    return {
        "schema": "torchgauge.triage",
        "version": 1,
        "measured": found.measured,
        "failing": found.failing,
        "latest": asdict(found.latest),
        "since": asdict(found.since) if found.since else None,
        "clusters": [_plain(each) for each in found.clusters],
        "gone": [_plain(each) for each in found.gone],
        "notes": list(found.notes),
        "gaps": list(found.gaps),
    }


def _plain(cluster: Cluster) -> dict[str, Any]:
    return {
        **asdict(cluster),
        "change": cluster.change.value,
        "statuses": dict(cluster.statuses),
        "left_as": dict(cluster.left_as),
    }


def _headline(found: Triage) -> str:
    if not found.clusters:
        said = f"no failures among {_count(found.measured, 'case')}"
    else:
        said = (
            f"{_count(found.failing, 'failure')} of {_count(found.measured, 'case')} "
            f"in {_count(len(found.clusters), 'cluster')}"
        )
    if found.since is None:
        return f"{said}; there is no earlier run to compare with"
    counts = [
        f"{number} {change.value}"
        for change in (Change.NEW, Change.RETURNED, Change.GROWN, Change.SHRUNK)
        if (number := sum(each.change is change for each in found.clusters))
    ]
    counts += [f"{len(found.gone)} gone"] if found.gone else []
    return f"{said}; since {_mark(found.since)}: {', '.join(counts) or 'nothing new'}"


def _cluster_lines(cluster: Cluster, number: int) -> list[str]:
    head = f"{number}. {first_line(cluster.title)}  [{cluster.id}]"
    return [head, *(f"   {line}" for line in _facts(cluster, _plainly)), f"   {_command(cluster)}"]


def _facts(cluster: Cluster, quote: Callable[[str], str]) -> list[str]:
    """What is said of a cluster that is there; ``quote`` makes text of a row harmless."""
    names = [quote(name) for name in cluster.models[:_NAMES]]
    more = f" and {len(cluster.models) - _NAMES} more" if len(cluster.models) > _NAMES else ""
    counts = ", ".join(f"{n} {status}" for status, n in cluster.statuses)
    expected = len(cluster.cases) - cluster.unexpected
    models, devices = _count(len(cluster.models), "model"), _count(len(cluster.devices), "device")
    where = ", ".join(quote(name) for name in cluster.devices)
    configurations = ", ".join(quote(name) for name in cluster.configurations)
    lines = [f"{models} x {devices}: {', '.join(names)}{more} on {where}"]
    said = f"{_count(len(cluster.cases), 'case')}: {counts}; configurations {configurations}"
    lines.append(said + (f"; {expected} expected" if expected else ""))
    if cluster.where:
        lines.append(f"at {quote(cluster.where)}")
    lines.append(
        f"{_change_words(cluster)}; first seen {_mark(cluster.first_seen)}, last {_mark(cluster.last_seen)}"
    )
    lines += [_known_line(each, quote) for each in cluster.known[:2]]
    size = cluster.example.parameters
    parameters = f", {units.integer(size)} parameters" if size is not None else ""
    lines.append(f"soonest shown ({units.duration(cluster.example.duration_s)}{parameters}) by:")
    return lines


def _known_line(known: Known, quote: Callable[[str], str]) -> str:
    link = f", {quote(known.link)}" if known.link else ""
    return f"{known.status} is expected of {_count(known.cases, 'case')}: {quote(known.reason)}{link}"


def _plainly(text: str) -> str:
    return first_line(text, 200)


def _command(cluster: Cluster) -> str:
    return brief(cluster.example.command).replace("\n", " ")


def _change_words(cluster: Cluster) -> str:
    arrived, left = len(cluster.arrived), len(cluster.left)
    if cluster.change is Change.GROWN:
        return f"grown by {_count(arrived, 'case')}" + (f", {left} left" if left else "")
    if cluster.change is Change.SHRUNK:
        return f"shrunk by {_count(left, 'case')} ({_left_as(cluster)})"
    return str(cluster.change.value)


def _gone(cluster: Cluster) -> str:
    return f"{first_line(cluster.title)}: {_left_as(cluster)}"


def _left_as(cluster: Cluster) -> str:
    return ", ".join(f"{n} now {status}" for status, n in cluster.left_as)


def _mark(mark: RunMark | None) -> str:
    return f"{mark.run_id} ({mark.date})" if mark else "the beginning"


def _remarks(found: Triage) -> Sequence[str]:
    return (*(f"note: {each}" for each in found.notes), *(f"gap: {each}" for each in found.gaps))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _cells(cluster: Cluster) -> list[Any]:
    known = cluster.known[0] if cluster.known else Known("", "", "", 0)
    example = cluster.example
    return [
        cluster.id,
        cluster.kind,
        cluster.title,
        cluster.change.value,
        cluster.places,
        len(cluster.cases),
        cluster.unexpected,
        len(cluster.arrived),
        len(cluster.left),
        " ".join(f"{status}={n}" for status, n in cluster.statuses),
        " ".join(cluster.models),
        " ".join(cluster.devices),
        " ".join(cluster.configurations),
        cluster.error_type,
        cluster.where,
        cluster.missing_op,
        known.status,
        known.link,
        cluster.first_seen.run_id,
        cluster.first_seen.date,
        cluster.last_seen.run_id,
        cluster.last_seen.date,
        example.case_id,
        example.duration_s,
        example.parameters,
        example.command,
    ]
