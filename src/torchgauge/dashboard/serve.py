"""Serving a built site on this machine, for looking at it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from torchgauge.errors import UsageError


class QuietHandler(SimpleHTTPRequestHandler):
    """Files of the site, with the types that modules need, and no line per request."""

    extensions_map = {  # noqa: RUF012  the base class declares it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
    }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing."""


def serve_site(site: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve ``site`` on 127.0.0.1 until interrupted; ``ready`` gets the address.

    Raises :class:`UsageError` where ``site`` is no built site or the port is taken.
    """
    if not (Path(site) / "index.html").is_file():
        raise UsageError(f"{site} holds no site", hint="torchgauge dashboard build STORE --out SITE")
    handler = partial(QuietHandler, directory=site)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", hint="--port 0 takes a free one"
        ) from error
    with server:
        ready(f"http://127.0.0.1:{server.server_address[1]}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
