"""For those who find pages by address: the map of all of them, and the page for addresses that are none."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from torchgauge.clock import utc
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.serve import NOT_FOUND
from torchgauge.dashboard.xml_text import escape

SITEMAP = "sitemap.xml"


def sitemap(names: Iterable[str], base_url: str, now: float) -> bytes:
    """All pages among ``names`` but the one for addresses that are none, as sitemaps.org asks.

    Its addresses have to be absolute, so that there is none without a ``base_url``.
    """
    day = f"{utc(now):%Y-%m-%d}"
    pages = sorted(name for name in names if name.endswith(".html") and name != NOT_FOUND)
    lines = [
        f"<url><loc>{escape(base_url + ('' if name == 'index.html' else name))}</loc>"
        f"<lastmod>{day}</lastmod></url>"
        for name in pages
    ]
    head = '<?xml version="1.0" encoding="utf-8"?>'
    urlset = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return "\n".join([head, urlset, *lines, "</urlset>", ""]).encode()


def not_found(renderer: Renderer, base_url: str) -> bytes:
    """The page for addresses that are none; it is sent at any depth, so that its links begin at the host.

    They are relative to the root where nobody said which host that is.
    """
    return renderer.page("not_found", NOT_FOUND, root=urlsplit(base_url).path, card=None).encode()
