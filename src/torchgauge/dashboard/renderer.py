"""The one renderer of pages: escaping is always on; before it, text is made visible and brief."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from torchgauge.dashboard.freshness import aged
from torchgauge.dashboard.pages import geomean, links
from torchgauge.dashboard.pages.code_links import commit_link, linked_fact, source_link
from torchgauge.dashboard.pages.number_text import change, digits
from torchgauge.dashboard.statuses import LOOKS, MARKS
from torchgauge.results.document import FILTERS
from torchgauge.results.gain import gain_names, gain_text
from torchgauge.results.hostile_text import brief, first_line, slug

if TYPE_CHECKING:
    from torchgauge.dashboard.pictures.picture import Picture

CSP = (
    "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'"
)
"""The content security policy of every page: nothing inline, nothing from elsewhere.

The hash is that of the empty text: plotly.js adds one empty style element and fills it by its object model.
"""

_DESCRIPTIONS = {
    "overview": "Which models work, how fast, and what changed, on every device that torchgauge measures.",
    "compatibility": "Which models work on which device and configuration: one cell per planned case.",
    "performance": "How fast models run on each device and configuration, with 95 % intervals.",
    "trends": "Whether models get faster over the nights, by device and configuration.",
    "compare": "Two torch builds, devices or configurations, case by case.",
    "devices": "The devices that are measured, and how healthy each is.",
    "device": "Passes and failures of this device, with reasons and environment.",
    "model": "One model on every device and configuration: results, failures, and how to run it.",
    "regressions": "Performance regressions, new failures and A/B results.",
    "matrices": "Versions of torch and its libraries, measured in turns on one machine.",
    "checks": "Device capabilities, by the checks of their backend.",
    "features": "Ways to execute models: support by device, speed-up and cost.",
    "feature": "One way to execute models: the request, the executed path, and the speed-up.",
    "scorecards": "Devices judged by PyTorch's proposed quality levels: points and levels.",
    "scorecard": "The points of one device, their evidence, and commands for missing points.",
    "operators": "Which PyTorch operators each device supports, by dtype, and models that need missing ones.",
    "operator_details": "Operators of one letter on every device, dtype by dtype, with reasons.",
    "pictures": "Pictures of the results: devices, compilers and torch versions against each other.",
    "runs": "Every run behind the numbers, with its environment.",
    "runs_month": "The runs of one month.",
    "about": "The data as files, definitions, and how to cite the data.",
    "not_found": "This page was not found.",
}
"""What each kind of page is, by its template: for search engines and for those who are sent a link."""


class Renderer:
    """Renders the templates of the package; ``site`` is what every page knows."""

    def __init__(self, site: dict[str, Any]) -> None:
        """``site`` holds the names that the frame of every page uses."""
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("torchgauge.dashboard"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
            optimized=False,  # folding constants takes longer than it saves in one build
        )
        self._environment.policies["json.dumps_kwargs"] = {}  # unsorted: the first is looked at first
        self._environment.filters.update(
            FILTERS,
            aged=aged,
            change=change,
            commit=commit_link,
            digits=digits,
            first_line=first_line,
            slug=slug,
        )
        self._environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
        self._environment.globals.update(
            site={"base_url": "", "compared": False, **site},
            csp=CSP,
            looks=LOOKS,
            mark_meanings=MARKS,
            links=links,
            linked_fact=linked_fact,
            source_link=source_link,
            mean_interval=geomean.interval_text,
            gain_text=gain_text,
            gain_names=gain_names,
        )

        self.card: Picture | None = None
        """The picture that links to pages without one of their own are shown with."""
        self._pages: tuple[tuple[str, str], ...] = tuple(site.get("pages", ()))
        self._navigations: dict[tuple[str, str, str], Markup] = {}

    def page(
        self, template: str, file: str, *, section: str = "", root: str | None = None, **data: Any
    ) -> str:
        """The page ``file``, which is relative to the site's root, from ``template``.

        ``section`` is the page of the navigation to which this one belongs, where it is not there itself.
        ``root`` leads to the site's root, where that is not to be worked out from ``file``.
        """
        root = "../" * file.count("/") if root is None else root
        known = {name for name, _ in self._pages}
        key = root, file if file in known else "", section
        if key not in self._navigations:
            self._navigations[key] = _navigation(self._pages, *key)
        return self._environment.get_template(f"{template}.html.j2").render(
            root=root,
            file=file,
            section=section,
            navigation=self._navigations[key],
            **{"card": self.card, "description": _DESCRIPTIONS.get(template, ""), **data},
        )


def _navigation(pages: tuple[tuple[str, str], ...], root: str, file: str, section: str) -> Markup:
    """The links to the pages of the navigation, one per line: two hundred pages have the same."""
    lines = []
    for name, title in pages:
        current = "page" if name == file else "true" if name == section else ""
        mark = Markup(' aria-current="{}"').format(current) if current else ""
        lines.append(Markup('<a href="{}{}"{}>{}</a>\n').format(root, name, mark, brief(title)))
    return Markup("").join(lines)


def _finalize(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return brief(value)
    return value
