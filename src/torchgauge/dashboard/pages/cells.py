"""The cell of a matrix: what is counted, in text, with its marks and what is known from before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.statuses import look_of
from torchgauge.records import Status, Workload
from torchgauge.results import units
from torchgauge.results.hostile_text import brief

CUT = 30
"""Characters of a name that may be cut where its row is one line."""

NOT_PLANNED = "<td class=z>\N{EN DASH}"
"""The cell of a combination that nobody planned."""


def known_note(entry: Entry, above: str = "") -> str:
    """What stands in for a row that says nothing, or the day of a stale one if another is ``above`` it."""
    if entry.stands_in and entry.known is not None and not entry.lost:
        code = look_of(Status(entry.known["status"]), entry.known["modifiers"] or ()).code
        return f"last {code}, {_short(entry)}"
    day = units.day(entry.known_at) if "stale" in entry.marks else above
    return f"of {_short(entry)}" if day != above else ""


def _short(entry: Entry) -> str:
    """The day of a result without its year where no other year can be meant: a column is narrow."""
    day = units.day(entry.known_at)
    return day[5:] if entry.known_age_s < 300 * DAY_S else day


def host_note(entry: Entry) -> str:
    """How many operators of a case that passed ran on the host; empty where none did or nobody looked."""
    number, share = entry.facts.get("fallback_ops"), entry.facts.get("fallback_share")
    if not entry.degraded or not isinstance(number, int) or not isinstance(share, float) or not number:
        return ""
    return f"{counted(number, 'op')} on host, {share:.0%} of step"


@lru_cache(maxsize=4096)
def row_head(workload: Workload, *, comparable: bool = True) -> Markup:
    """The heading of the row of ``workload`` on a page at the site's root; all views have the same."""
    href = f"{links.model_page(workload.group)}#{links.workload_anchor(workload)}"
    built = (
        ' <span class="tag" title="The workers built different models: their realised hashes differ">'
        "built differently: not comparable</span>"
    )
    name = f"{workload.suite}/{workload.model}"
    title = f' title="{escaped(name)}"' if len(name) > CUT else ""
    return Markup(  # noqa: S704
        f'<th scope="row"><a href="{href}"{title}>'
        f"{escaped(workload.suite)}/<wbr>{escaped(workload.model)}</a> "
        f'<span class="variant">{escaped(workload.variant)}</span>'
        f"{'' if comparable else built}</th>"
    )


@lru_cache(maxsize=4096)
def escaped(text: str) -> str:
    """``text`` of a store as HTML; a matrix says the same in many cells."""
    return str(escape(brief(text)))


def matrix_cell(entry: Entry | None, above: str = "") -> str:
    """One cell of the compatibility matrix as HTML, in few bytes: thousands of them are one page.

    The class is the status's letter and ends of cells are left to the parser. Whatever the store says passes
    through ``brief`` and ``escape``; hrefs are made of slugs and hexadecimal digits only, which take no
    quotation marks. ``above`` is the day at the head of the column.
    """
    if entry is None:
        return NOT_PLANNED
    look = entry.look
    apart = " ".join(part for part in (known_note(entry, above) or host_note(entry), *entry.marks) if part)
    small = f"<small>{escaped(apart)}</small>" if apart else ""
    return f"<td class={look.letter}><a href={links.case_link(entry)}>{look.code}{small}</a>"


def matrix_row(entries: Sequence[Entry | None], above: Sequence[str]) -> Markup:
    """All status cells of one row; ``above`` are the days at the heads of the columns."""
    return Markup("".join(map(matrix_cell, entries, above)))  # noqa: S704
