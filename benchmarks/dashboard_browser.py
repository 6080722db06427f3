"""What a reader of the dashboard waits for: a built site in a real headless Chromium over a thin line.

The site is served on this machine as page hosts do it: text under gzip, and a range of a compressed file
answered with the whole of it. Chromium (``TORCHGAUGE_CHROMIUM``, else /usr/bin/chromium) is throttled over
its own protocol to 10 Mbit/s with 40 ms of latency, and every load is a first one, with an empty cache. Bytes
are those on the line with their headers, as the browser counts them.

- *first load*: bytes and requests of a page before anybody touches it; of a page with charts without the
  bundle that draws them. *First contentful paint* is what the browser says.
- *keystroke*: what a letter in the query box costs until the page is laid out again: its handler with a
  forced layout, and the layout of the frame after it. The slowest letter may take 100 ms, as any other
  interaction; half of that for the median one is a goal of our own.
- *elements*: how many stand in a matrix before anybody scrolls. *Interaction*: sorting a column, the worst
  rows first, folding, hiding a device, the compact view, each as the CPU time of the main thread until the
  page has painted again; *longest task* is what the browser reports of the load, and while that is done.
- *trend on demand*: from choosing a device on the page of trends until the chart stands there, its data and
  the bundle included; likewise for the chart of a model when it comes into view.
- *largest shard* under gzip (level 6), the site's bytes, CSP violations, messages on the console and requests
  to anybody else.

::

    python benchmarks/dashboard_browser.py SITE [--repeat 3] [--json OUT]
    python benchmarks/dashboard_browser.py --build WORK ...      from the store of dashboard_build.py in WORK

Medians of ``--repeat`` loads; the load of the machine is printed beside them, and the CPU time of the page's
main thread, which says what an idle machine would take: the line adds 1.3 s for the bundle.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MEGABITS, LATENCY_MS = 10, 40
SHARDS = ("cases", "series", "snapshots", "trends", "latest")
COMPRESSED = {".html", ".css", ".js", ".json", ".csv", ".svg", ".xml"}

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: "longtask", buffered: true });
"""

_PRESS = """
(label) => new Promise((done) => {
  const found = [...document.querySelectorAll("main button, main input")].find((each) =>
    (each.labels?.[0] ?? each).textContent.trim().startsWith(label));
  found.click();
  requestAnimationFrame(() => setTimeout(done));
})
"""

_PAINT = """
() => new Promise((done) => {
  const first = () => performance.getEntriesByName("first-contentful-paint")[0];
  if (first()) return done(first().startTime);
  const seen = new PerformanceObserver(() => first() && done(first().startTime));
  seen.observe({ type: "paint", buffered: true });
})
"""

_KEYSTROKE = """
(text) => new Promise((done) => {
  const field = document.querySelector("input[type=search], .controls input");
  const began = performance.now();
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  document.body.getBoundingClientRect();
  const forced = performance.now() - began;
  requestAnimationFrame(() => {
    const waited = performance.now();
    document.body.getBoundingClientRect();
    setTimeout(() => done({ forced, frame: performance.now() - waited, whole: performance.now() - began }));
  });
})
"""


@dataclass
class Figures:
    """What was seen; times in seconds, sizes in bytes."""

    pages: dict[str, dict[str, float]] = field(default_factory=dict)
    keystrokes_ms: dict[str, float] = field(default_factory=dict)
    keystroke_cpu_ms: dict[str, float] = field(default_factory=dict)
    elements: dict[str, int] = field(default_factory=dict)
    interaction_ms: dict[str, float] = field(default_factory=dict)
    longest_task_ms: dict[str, float] = field(default_factory=dict)
    trend_s: dict[str, float] = field(default_factory=dict)
    trend_cpu_s: dict[str, float] = field(default_factory=dict)
    largest_shard: dict[str, Any] = field(default_factory=dict)
    site_bytes: int = 0
    site_files: int = 0
    violations: int = 0
    messages: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    load: list[float] = field(default_factory=list)


@lru_cache(maxsize=256)
def _compressed(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), 6, mtime=0)


class PageHost(SimpleHTTPRequestHandler):
    """Files as page hosts send them: text under gzip; ranges are not answered as asked."""

    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012  the base class declares it so
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
    }

    def send_head(self) -> BytesIO | BinaryIO | None:
        """The whole file, whatever range was asked for."""
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        data = _compressed(str(path))
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        return BytesIO(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    """A server to which a browser that leaves a page early is no error."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that was cut."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(site: Path) -> Iterator[str]:
    """The address under which ``site`` is served."""
    with _Server(("127.0.0.1", 0), partial(PageHost, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@contextmanager
def thin_line(browser: Any, base: str, figures: Figures) -> Iterator[tuple[Any, dict[str, float]]]:
    """A page with an empty cache behind a thin line, and what went over that line."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(_WATCH)
    page = context.new_page()
    session = context.new_cdp_session(page)
    moved = {"bytes": 0.0, "requests": 0.0}
    pending: dict[str, str] = {}

    def sent(event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if url.startswith("data:"):
            return
        if not url.startswith(base):
            figures.foreign.append(url)
        pending[event["requestId"]] = url
        moved["requests"] += 1

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] in pending:
            moved["bytes"] += event["encodedDataLength"]

    session.on("Network.requestWillBeSent", sent)
    session.on("Network.loadingFinished", finished)
    page.on("console", lambda message: figures.messages.append(message.text))
    page.on("pageerror", lambda error: figures.messages.append(str(error)))
    session.send("Network.enable")
    rate = MEGABITS * 1e6 / 8
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": LATENCY_MS, "downloadThroughput": rate, "uploadThroughput": rate},
    )
    try:
        yield page, moved
        figures.violations += len(page.evaluate("window.violations"))
    finally:
        context.close()


def cpu_clock(page: Any) -> Callable[[], float]:
    """Reads the CPU seconds of the page's main thread, which other processes do not lengthen much."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    return read


def first_loads(browser: Any, site: Path, base: str, figures: Figures, repeat: int) -> None:
    """Every page at the top, and one of each folder."""
    names = [path.name for path in sorted(site.glob("*.html"))]
    for folder in ("models", "devices", "runs", "operators"):
        found = sorted((site / folder).glob("*.html"))
        names += [f"{folder}/{found[len(found) // 2].name}"] if found else []
    for name in names:
        seen = []
        for _ in range(repeat):
            with thin_line(browser, base, figures) as (page, moved):
                page.goto(base + name, wait_until="networkidle")
                seen.append((page.evaluate(_PAINT) / 1e3, moved["bytes"], moved["requests"]))
        figures.pages[name] = {
            "fcp_s": round(statistics.median(each[0] for each in seen), 3),
            "bytes": max(each[1] for each in seen),
            "requests": max(each[2] for each in seen),
        }


def keystrokes(browser: Any, base: str, figures: Figures, repeat: int) -> None:
    """A query typed letter by letter into the largest matrices: the median letter, and the slowest one."""
    typed = ("n", "ne", "net", "net0", "net01", "net0", "net", "", "cpu:pass", "cpu:pass 1")
    for name in ("compatibility.html", "performance.html"):
        times: dict[int, list[float]] = {}
        spent: dict[int, list[float]] = {}
        with thin_line(browser, base, figures) as (page, _):
            page.goto(base + name, wait_until="networkidle")
            page.wait_for_selector("[data-controls] input")
            for text in ("x", ""):  # the language of queries is loaded with the first letter
                page.evaluate(_KEYSTROKE, text)
                page.wait_for_timeout(1_000)
            clock = cpu_clock(page)
            for _number in range(repeat):
                for place, text in enumerate(typed):
                    began = clock()
                    seen = page.evaluate(_KEYSTROKE, text)
                    spent.setdefault(place, []).append(1e3 * (clock() - began))
                    times.setdefault(place, []).append(seen["forced"] + seen["frame"])
                    page.wait_for_timeout(300)
            busy = [statistics.median(each) for each in spent.values()]
        figures.keystroke_cpu_ms[f"{name}, median letter"] = round(statistics.median(busy), 1)
        figures.keystroke_cpu_ms[f"{name}, slowest letter"] = round(max(busy), 1)
        letters = [statistics.median(each) for each in times.values()]
        figures.keystrokes_ms[f"{name}, median letter"] = round(statistics.median(letters), 1)
        figures.keystrokes_ms[f"{name}, slowest letter"] = round(max(letters), 1)


def interactions(browser: Any, base: str, figures: Figures, repeat: int) -> None:
    """What a reader may do with a large matrix, there and back: the slowest of each, and the longest task."""
    for name in ("compatibility.html", "performance.html"):
        with thin_line(browser, base, figures) as (page, _):
            page.goto(base + name, wait_until="networkidle")
            page.wait_for_selector("[data-controls] input")
            figures.elements[name] = page.evaluate("document.querySelectorAll('*').length")
            figures.longest_task_ms[f"{name}, loading"] = round(page.evaluate("window.longest"), 1)
            page.evaluate("window.longest = 0")
            clock = cpu_clock(page)
            labels = ["workload", "cpu", "Worst rows first", "Compact view", "Fold configurations"]
            for label in labels if name.startswith("comp") else labels[:-1]:
                spent = []
                for _number in range(2 * max(1, repeat)):
                    began = clock()
                    page.evaluate(_PRESS, label)
                    spent.append(1e3 * (clock() - began))
                    page.wait_for_timeout(200)
                figures.interaction_ms[f"{name}, {label}"] = round(max(spent), 1)
            figures.longest_task_ms[f"{name}, afterwards"] = round(page.evaluate("window.longest"), 1)


def trends(browser: Any, site: Path, base: str, figures: Figures, repeat: int) -> None:
    """From asking for a chart until it stands there."""
    device = json.loads((site / "manifest.json").read_bytes())["devices"][0]["id"]
    models = sorted((site / "models").glob("*.html"))
    drawn = ".plot[data-ready=true] .main-svg"

    def chosen(page: Any) -> None:
        page.goto(f"{base}trends.html", wait_until="networkidle")
        page.evaluate("window.began = performance.now()")
        page.locator("#explore select").first.select_option(device)

    def scrolled(page: Any) -> None:
        page.goto(f"{base}models/{models[len(models) // 2].name}", wait_until="networkidle")
        page.evaluate("window.began = performance.now(); document.querySelector('.chart').scrollIntoView()")

    asked: tuple[tuple[str, Callable[[Any], None]], ...] = (
        ("trends.html", chosen),
        ("a model's page", scrolled),
    )
    for name, ask in asked:
        times, spent = [], []
        for _ in range(repeat):
            with thin_line(browser, base, figures) as (page, _moved):
                clock = cpu_clock(page)
                ask(page)
                began = clock()
                page.wait_for_selector(drawn, timeout=120_000)
                times.append(page.evaluate("(performance.now() - window.began) / 1000"))
                spent.append(clock() - began)
        figures.trend_cpu_s[name] = round(statistics.median(spent), 3)
        figures.trend_s[name] = round(statistics.median(times), 3)


def files(site: Path, figures: Figures) -> None:
    """Sizes on the disk of whoever hosts the site."""
    for path in site.rglob("*"):
        if path.is_file():
            figures.site_bytes += path.stat().st_size
            figures.site_files += 1
    sizes = {
        path: len(gzip.compress(path.read_bytes(), 6))
        for folder in SHARDS
        for path in sorted((site / folder).rglob("*.json"), key=lambda path: -path.stat().st_size)[:12]
    }
    if sizes:
        largest = max(sizes, key=lambda path: sizes[path])
        figures.largest_shard = {"name": largest.relative_to(site).as_posix(), "gzipped": sizes[largest]}


def build(store: Path, out: Path) -> None:
    """Build the site of ``store``."""
    from dashboard_store import morning_after

    from torchgauge.dashboard import build_site

    build_site(store, out, now=morning_after(store))


def table(figures: Figures) -> list[tuple[str, str, str, bool]]:
    """Lines of limit, figure and whether it is met."""
    lines = []
    for what, key, scale, limit, unit in (
        ("first load", "bytes", 1000, 60, "KB"),
        ("requests", "requests", 1, 12, ""),
        ("first contentful paint", "fcp_s", 1, 1.0, "s"),
    ):
        worst = max(figures.pages, key=lambda name: figures.pages[name][key])
        value = figures.pages[worst][key] / scale
        lines.append((what, f"<= {limit} {unit}".strip(), f"{value:.4g} {unit} ({worst})", value <= limit))
    lines += [
        ("keystroke to layout", f"<= {limit} ms", f"{value} ms ({name})", value <= limit)
        for name, value in figures.keystrokes_ms.items()
        for limit in [50 if "median" in name else 100]
    ]
    for what, found, limit, unit in (
        ("elements", figures.elements, 5_000, ""),
        ("interaction, CPU", figures.interaction_ms, 100, "ms"),
        ("longest task", figures.longest_task_ms, 200, "ms"),
    ):
        lines += [
            (what, f"<= {limit} {unit}".strip(), f"{value} {unit} ({name})", value <= limit)
            for name, value in found.items()
        ]
    for name, value in figures.trend_s.items():
        lines.append(("trend on demand", "<= 3.0 s", f"{value:.2f} s ({name})", value <= 3.0))
    shard = figures.largest_shard
    if shard:
        told = f"{shard['gzipped'] / 1024:.1f} KiB ({shard['name']})"
        lines.append(("largest shard", "<= 64 KiB", told, shard["gzipped"] <= 64 * 1024))
    size = figures.site_bytes / 1e6
    lines.append(
        ("site with plotly.js", "<= 255 MB", f"{size:.1f} MB in {figures.site_files} files", size <= 255)
    )
    bad = figures.violations + len(figures.messages) + len(figures.foreign)
    told = f"{figures.violations}, {len(figures.messages)}, {len(figures.foreign)}"
    return [*lines, ("CSP, console, foreign", "0", told, not bad)]


def measure(site: Path, repeat: int) -> Figures:
    """All figures of ``site``."""
    from playwright.sync_api import sync_playwright

    figures = Figures(load=[round(os.getloadavg()[0], 2)])
    files(site, figures)
    executable = os.environ.get("TORCHGAUGE_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        with serving(site) as base:
            first_loads(browser, site, base, figures, repeat)
            keystrokes(browser, base, figures, max(3, repeat))
            interactions(browser, base, figures, repeat)
            trends(browser, site, base, figures, repeat)
        browser.close()
    figures.load.append(round(os.getloadavg()[0], 2))
    return figures


def main() -> None:
    """Measure, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, nargs="?")
    parser.add_argument("--build", type=Path, metavar="WORK")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    site = chosen.site
    if chosen.build:
        site = chosen.build / "site"
        build(chosen.build / "store", site)
    if site is None:
        parser.error("name a built site, or --build WORK")
    figures = measure(site, chosen.repeat)
    print(f"{'what':24} {'asked':10} {'met':4} measured")
    for what, asked, told, met in table(figures):
        print(f"{what:24} {asked:10} {'yes' if met else 'NO':4} {told}")
    print(f"\n{'page':40} {'KB':>8} {'requests':>9} {'FCP s':>7}")
    for name, page in figures.pages.items():
        print(f"{name:40} {page['bytes'] / 1000:8.1f} {page['requests']:9.0f} {page['fcp_s']:7.2f}")
    print(f"\nCPU of the main thread: ms per letter {figures.keystroke_cpu_ms}")
    print(f"  s per trend {figures.trend_cpu_s}")
    print(f"\nload of the machine before and after: {figures.load}; {os.cpu_count()} CPUs")
    for each in (*figures.messages[:10], *figures.foreign[:10]):
        print(each, file=sys.stderr)
    if chosen.json:
        chosen.json.write_text(json.dumps(asdict(figures), indent=1) + "\n")


if __name__ == "__main__":
    main()
