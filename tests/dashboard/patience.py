"""How long a test waits for a page, and how: a slow machine makes it late, never wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

PATIENCE_MS = 120_000
"""What success may take. It costs nothing where the page is quick; only a failure lasts that long."""

LATENCY_MS = 300
"""How much later each answer of the server comes to a slowed browser, and ``rate`` times that each event."""

_LATE = """{
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (kind, listener, ...rest) {
    const late = (event) => setTimeout(() => listener.call(this, event), MS);
    return add.call(this, kind, ["toggle", "popstate"].includes(kind) ? late : listener, ...rest);
  };
}"""
"""Events that browsers do not dispatch within a click but after it, whenever the machine has time."""


def until(page: Any, script: str) -> None:
    """Wait until ``script`` is true; the policy of the pages forbids the ``eval`` of Playwright's own way."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(script):
        assert time.monotonic() < deadline, script
        page.wait_for_timeout(20)


def held(page: Any, pattern: str, count: int, ask: Callable[[], object]) -> list[Any]:
    """``count`` requests or more that ``ask`` leads to; none is answered before ``let_through``."""
    routes: list[Any] = []

    def hold(route: Any) -> None:
        routes.append(route)

    page.route(pattern, hold)
    ask()
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while len(routes) < count:
        assert time.monotonic() < deadline, f"{len(routes)} requests of {pattern}"
        page.wait_for_timeout(20)
    return routes


def let_through(page: Any, routes: Iterable[Any]) -> None:
    """Answer the requests, each after the page has read the one before."""
    for route in routes:
        route.continue_()
        route.request.response().finished()
        page.evaluate("fetch('manifest.json').then((answer) => answer.json())")  # later than its own


def patient(chromium: Any) -> Any:
    """``chromium``, each page of which waits ``PATIENCE_MS``.

    TORCHGAUGE_SLOW_BROWSER=10 makes its processor ten times slower, its network and its events late: what a
    test reads without having waited for it is then not there yet, on a quick machine too.
    """
    rate = float(os.environ.get("TORCHGAUGE_SLOW_BROWSER", "1"))
    plain = chromium.new_context

    def new_context(**options: Any) -> Any:
        context = plain(**options)
        context.set_default_timeout(PATIENCE_MS)
        if rate > 1:
            context.add_init_script(_LATE.replace("MS", str(rate * LATENCY_MS)))
            make = context.new_page
            context.new_page = lambda: _slowed(make(), rate)
        return context

    chromium.new_context = new_context
    return chromium


def _slowed(page: Any, rate: float) -> Any:
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
    session.send("Network.enable")
    line = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", line)
    return page
