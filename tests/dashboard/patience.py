"""How a test waits for a page, as long as for anything else, and how a browser is slowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from waiting import PATIENCE_S, wait_until

PATIENCE_MS = 1000 * PATIENCE_S

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
    wait_until(lambda: page.evaluate(script), script, lambda: page.wait_for_timeout(20))


def held(page: Any, pattern: str, count: int, ask: Callable[[], object]) -> list[Any]:
    """``count`` requests or more that ``ask`` leads to; none is answered before ``let_through``."""
    routes: list[Any] = []

    def hold(route: Any) -> None:
        routes.append(route)

    page.route(pattern, hold)
    ask()
    wait_until(
        lambda: len(routes) >= count,
        lambda: f"{count} requests of {pattern}; {len(routes)} came",
        lambda: page.wait_for_timeout(20),
    )
    return routes


def let_through(page: Any, routes: Iterable[Any]) -> None:
    """Answer the requests, each after the page has read the one before."""
    for route in routes:
        route.continue_()
        route.request.response().finished()
        page.evaluate("fetch('manifest.json').then((answer) => answer.json())")  # later than its own


def patient(chromium: Any) -> Any:
    """Return ``chromium``, whose pages wait ``PATIENCE_MS``, as do expectations of Playwright.

    TORCHGAUGE_SLOW_BROWSER=10 makes its processor ten times slower, its network and its events late: what a
    test reads without having waited for it is then not there yet, on a quick machine too.
    """
    from playwright.sync_api import expect

    rate = float(os.environ.get("TORCHGAUGE_SLOW_BROWSER", "1"))
    plain_context, plain_page = chromium.new_context, chromium.new_page

    def prepare(context: Any) -> None:
        context.set_default_timeout(PATIENCE_MS)
        context.set_default_navigation_timeout(PATIENCE_MS)
        if rate > 1:
            context.add_init_script(_LATE.replace("MS", str(rate * LATENCY_MS)))

    def new_context(**options: Any) -> Any:
        context = plain_context(**options)
        prepare(context)
        if rate > 1:
            make = context.new_page
            context.new_page = lambda: _slowed(make(), rate)
        return context

    def new_page(**options: Any) -> Any:
        page = plain_page(**options)
        prepare(page.context)
        return _slowed(page, rate) if rate > 1 else page

    expect.set_options(timeout=PATIENCE_MS)
    chromium.new_context, chromium.new_page = new_context, new_page
    return chromium


def _slowed(page: Any, rate: float) -> Any:
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
    session.send("Network.enable")
    line = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", line)
    return page
