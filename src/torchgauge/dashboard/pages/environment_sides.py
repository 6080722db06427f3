"""In what the environments of several results differ, side by side, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from torchgauge.counted import counted
from torchgauge.dashboard.pages.code_links import linked_fact
from torchgauge.dashboard.pages.environments import Identity, differences
from torchgauge.dashboard.pages.html_text import scroll_html, shown


@dataclass(frozen=True)
class Side:
    """One environment; without ``href`` no page describes it, without ``identity`` nothing is known."""

    device: str
    id: str
    href: str
    identity: Identity | None


def sides_html(sides: Sequence[Side], root: str) -> Markup:
    """The facts in which ``sides`` differ as a table, or a sentence; ``root`` leads to the site's root."""
    known = [(side, side.identity) for side in sides if side.identity is not None]
    unknown = dict.fromkeys(shown(side.device) for side in sides if side.identity is None)
    html = _known([side for side, _ in known], [identity for _, identity in known], root)
    if unknown:
        html += f"<p>No environment was recorded with results of {', '.join(unknown)}.</p>"
    return Markup(html)  # noqa: S704


def _known(sides: Sequence[Side], identities: Sequence[Identity], root: str) -> str:
    if not sides:
        return ""
    if len(sides) == 1:
        return f"<p>All results are of one environment, {_name(sides[0], root)}.</p>"
    rows = differences(identities)
    equal = len({key for identity in identities for key in identity}) - len(rows)
    if not rows:
        return f"<p>All {counted(equal, 'fact')} are equal.</p>"
    heads = "".join([f'<th scope="col">{_name(side, root)}</th>' for side in sides])
    body = "".join(
        [
            f'<tr><th scope="row">{shown(row.key)}</th>'
            + "".join([f"<td>{linked_fact(row.key, value or 'not recorded')}</td>" for value in row.values])
            + "</tr>"
            for row in rows
        ]
    )
    table = f'<thead><tr><th scope="col">fact</th>{heads}</tr></thead><tbody>{body}</tbody>'
    said = f"<p>{counted(len(rows), 'fact differs', 'facts differ')}, equal: {equal}.</p>"
    return said + scroll_html("Differences of the environments", table)


def _name(side: Side, root: str) -> str:
    name = f"<code>{shown(side.id)}</code>"
    linked = f'<a href="{root}{side.href}">{name}</a>' if side.href else name
    return f"{shown(side.device)} {linked}"
