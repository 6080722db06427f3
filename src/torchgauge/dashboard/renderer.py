"""The one renderer of pages: escaping is always on, and text is made visible before it is escaped."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

from torchgauge.dashboard.statuses import LOOKS, MARKS
from torchgauge.results.hostile_text import visible

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'"
)
"""The content security policy of every page: nothing inline, nothing from elsewhere."""


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
        )
        self._environment.globals.update(site=site, csp=CSP, looks=LOOKS, mark_meanings=MARKS)

    def page(self, template: str, file: str, **data: Any) -> str:
        """The page ``file``, which is relative to the site's root, from ``template``."""
        root = "../" * file.count("/")
        return self._environment.get_template(f"{template}.html.j2").render(root=root, file=file, **data)


def _finalize(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value
