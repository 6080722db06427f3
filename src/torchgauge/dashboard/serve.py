"""Serving a built site on this machine, for looking at it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from torchgauge.errors import UsageError

NOT_FOUND = "404.html"
"""The name under which hosts of static pages look for the page for addresses that are none."""

_ROOT = re.compile(r'href="([^"]*)static/style\.css"')
"""Where the links of that page begin, which depends on where the site will be."""

COMPRESSED = frozenset({".html", ".css", ".js", ".json", ".csv", ".svg", ".xml"})
"""Endings of files that are sent under gzip."""


class QuietHandler(SimpleHTTPRequestHandler):
    """Files of the site, with the types that modules need, and no line per request."""

    extensions_map = {  # noqa: RUF012  the base class declares it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
        ".parquet": "application/vnd.apache.parquet",
        ".svg": "image/svg+xml",
        ".xml": "application/xml",
    }

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Text goes out under gzip where the browser takes it, as page hosts send it."""
        try:
            name = self.translate_path(self.path)
            path = Path(name) / "index.html" if name.endswith("/") else Path(name)
            wanted = "gzip" in self.headers.get("Accept-Encoding", "")
            if not wanted or path.suffix not in COMPRESSED or not path.is_file():
                return super().send_head()
            data = gzip.compress(path.read_bytes(), 6, mtime=0)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", self.guess_type(str(path)))
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Vary", "Accept-Encoding")
            self.end_headers()
            return BytesIO(data)
        except (OSError, ValueError):  # a name that no file can have: too long, or with a zero byte in it
            self.send_error(HTTPStatus.NOT_FOUND)
            return None

    def list_directory(self, path: object) -> None:
        """A folder without a page is none: hosts of static pages list no folders."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The site's own page for an address that is none; it was built for another host than this one."""
        page = Path(self.directory) / NOT_FOUND
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        text = page.read_text(encoding="utf-8")
        found = _ROOT.search(text)
        root = re.escape(found[1] if found else "")
        data = re.sub(rf'\b(href|src)="{root}(?![a-z]+:|[#/])', r'\1="/', text).encode()
        self.send_response(HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing."""


def serve_site(site: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve ``site`` on 127.0.0.1 until interrupted; ``ready`` gets the address.

    Raises :class:`UsageError` where ``site`` is no built site or the port is taken.
    """
    if not (Path(site) / "index.html").is_file():
        raise UsageError(f"{site} contains no site", hint="torchgauge dashboard build STORE --out SITE")
    handler = partial(QuietHandler, directory=site)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="--port 0 selects a free port"
        ) from error
    with server:
        ready(f"http://127.0.0.1:{server.server_address[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
