"""Ten questions that readers ask of a dashboard, as clicks and seconds in a real headless Chromium.

Every task begins on the front page. A click is one on a link, a button or a heading that unfolds which a
reader sees there; what is typed into the query box counts as one more. An answer is text that the browser
shows: what is folded away, hidden by a query or outside of the page's main part is none. Seconds are from
the first click until the answer stands there, with an empty cache, on this machine: no reader's time to look
is in them.

::

    python benchmarks/dashboard_tasks.py SITE [--device xpu] [--other cpu] [--json OUT]
    python benchmarks/dashboard_tasks.py --build WORK ...     a store of 40 nights, and its site, in WORK

It prints a table as Markdown, and exits with 1 where a task has no answer or takes more than two clicks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dashboard_browser import FLAGS, serving

MOST_CLICKS = 2
PATIENCE_MS = 120_000
NIGHTS, MODELS = 40, 40


@dataclass(frozen=True)
class Asked:
    """Names that the tasks speak of: a device, and another one that it is compared with."""

    device: str
    other: str


class Reader:
    """Somebody who sees a page, and clicks on what stands there."""

    def __init__(self, page: Any, base: str, asked: Asked) -> None:
        """``page`` is shown the front page, which lies at ``base``."""
        self.page, self.base, self.device, self.other = page, base, asked.device, asked.other
        self.clicks = 0
        page.goto(base + "index.html", wait_until="networkidle")

    def click(self, where: Any) -> None:
        """Click on the first of ``where``, a selector or a locator, that a reader sees."""
        found = self.page.locator(where) if isinstance(where, str) else where
        found = found.filter(visible=True).first
        found.wait_for(state="visible")
        found.click()
        self.clicks += 1

    def menu(self, name: str) -> None:
        """Follow a link of the navigation."""
        self.click(
            self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True)
        )

    def ask(self, query: str) -> None:
        """Type a query into the box of a matrix."""
        self.page.locator("input[type=search]").first.fill(query)
        self.clicks += 1
        self.see(r"\d+ of \d+ rows")

    def see(self, pattern: str, within: str = "main") -> str:
        """What the browser shows of ``pattern`` in an element, as one line."""
        deadline = time.monotonic() + PATIENCE_MS / 1e3
        while True:
            shown = " ".join(self.page.locator(within).filter(visible=True).all_inner_texts())
            found = re.search(pattern, re.sub(r"\s+", " ", shown))
            if found:
                return found[0].strip()
            if time.monotonic() > deadline:
                name = self.page.url.removeprefix(self.base)
                raise LookupError(f"{name} does not show {pattern}")
            self.page.wait_for_timeout(10)


Answer = Callable[[Reader], str]


def broke(reader: Reader) -> str:
    """The causes under the device's heading on the page of regressions."""
    row = f".devices tr:has(th:has-text({json.dumps(reader.device)}))"
    reader.click(f"{row} a[href^='regressions.html#night-broke']")
    return reader.see(rf"(?i)\b{re.escape(reader.device)} \(\d+\) \S.{{0,60}}")


def faster(reader: Reader) -> str:
    """The mean under the device's first column, over the rows that a query leaves."""
    reader.click("a[href='performance-device.html']")
    whole = reader.see("geometric mean.*", ".matrix tfoot")
    reader.ask("suite:huggingface")
    reader.see(rf"^(?!{re.escape(whole)})geometric mean.*", ".matrix tfoot")
    heads = reader.page.locator(".matrix thead th").evaluate_all("all => all.map((th) => th.dataset.device)")
    place = heads.index(reader.device) + 1
    return reader.see(r"\d\.\d+\S ?±\d+(\.\d+)?%.{0,12}", f".matrix tfoot tr > :nth-child({place})")


def slow_since(reader: Reader) -> str:
    """The list of open regressions has the commit and the night."""
    return reader.see(
        r"latency \[[^]]*\] since \d{4}-\d\d-\d\d, \S.{0,40}", "#regressions + p, #regressions + ul"
    )


def operator(reader: Reader) -> str:
    """The list of missing operators has the one that most models fail for first."""
    return reader.see(r"\d+ models? \S+ \w+", "ul[aria-label='Missing operators']")


def not_measured(reader: Reader) -> str:
    """The list of what was not measured has a reason."""
    return reader.see(r"\d+ (infra|not run) .{5,60}", "ul[aria-label='Not measured']")


def reproduce(reader: Reader) -> str:
    """From a new failure to its case, which has the command."""
    reader.click("ul[aria-label='New failures by cause'] li a")
    anchor = reader.page.url.rpartition("#")[2]
    return reader.see(r"torchgauge run \S+ --case '[^']*'", f"xpath=//*[@id='{anchor}']/following::pre")


def made_by(reader: Reader) -> str:
    """From a number of the matrix to its case, which names torch and machine."""
    reader.menu("Performance")
    reader.click(".matrix tbody td.p")
    reader.page.wait_for_url("**/models/*")
    anchor = reader.page.url.rpartition("#")[2]
    case = f"xpath=//*[@id='{anchor}']/following::"
    torch = reader.see(r"torch \d\S+", f"{case}dl")
    return torch + ", " + reader.see(r"\S+ on .+, environment \S+", f"{case}p[@class='where'][1]")


def lacks(reader: Reader) -> str:
    """The rows that a query leaves."""
    reader.menu("Compatibility")
    reader.ask(f"{reader.device}/inductor:fail {reader.other}/inductor:pass")
    return reader.see(r"\d+ of \d+ rows") + ": " + reader.see(r"\S+/\S+", ".matrix tbody th")


def compile_cost(reader: Reader) -> str:
    """The view of compile times has the model's row."""
    reader.menu("Performance")
    reader.click("nav.views a:has-text('cold cache')")
    return reader.see(r"\d+\.\d", ".matrix tbody td.p") + " s"


def raw_data(reader: Reader) -> str:
    """The page about the data has the files."""
    reader.menu("Data & about")
    return reader.see(r"\S*latest\.(csv|parquet)\S*")


TASKS: tuple[tuple[str, Answer], ...] = (
    ("What broke tonight on {device}?", broke),
    ("Is {device} faster than {other} for attention models?", faster),
    ("Since when is this model slow?", slow_since),
    ("Which operator should I write next?", operator),
    ("What was not measured tonight, and why?", not_measured),
    ("How do I reproduce this failure?", reproduce),
    ("Which torch build and machine made this number?", made_by),
    ("Which models does {device} lack that {other} has?", lacks),
    ("What does compiling cost on this model?", compile_cost),
    ("Where do I get the raw data?", raw_data),
)


@dataclass
class Figure:
    """One task: ``answer`` is what was read, ``problem`` why there is none."""

    question: str
    clicks: int
    seconds: float
    answer: str
    problem: str = ""

    @property
    def met(self) -> bool:
        """Whether the task has an answer within the clicks that it may take."""
        return not self.problem and self.clicks <= MOST_CLICKS


def perform(browser: Any, base: str, question: str, answer: Answer, asked: Asked) -> Figure:
    """One task in a browser that has seen nothing."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    try:
        reader = Reader(context.new_page(), base, asked)
        began = time.perf_counter()
        told, problem = "", ""
        try:
            told = answer(reader)
        except Exception as error:  # noqa: BLE001  a task that fails is a figure
            problem = str(error).splitlines()[0]
        return Figure(question, reader.clicks, round(time.perf_counter() - began, 2), told, problem)
    finally:
        context.close()


def measure(site: Path, asked: Asked) -> list[Figure]:
    """All tasks on ``site``."""
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("TORCHGAUGE_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright, serving(site) as base:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        figures = [
            perform(browser, base, question.format(**vars(asked)), answer, asked)
            for question, answer in TASKS
        ]
        browser.close()
    return figures


def table(figures: list[Figure]) -> str:
    """The figures as Markdown."""
    lines = ["| question | clicks | seconds | what the page says |", "|---|---|---|---|"]
    for each in figures:
        said = (each.problem or each.answer).replace("|", "\\|")
        mark = "" if each.met else "**missed**: "
        lines.append(f"| {each.question} | {each.clicks} | {each.seconds} | {mark}{said[:110]} |")
    return "\n".join(lines)


def built(work: Path) -> Path:
    """A site of a generated store in ``work``, with what trend finds in it."""
    from dashboard_store import Shape, generate, morning_after

    from torchgauge.dashboard import build_site
    from torchgauge.results.store import Store
    from torchgauge.results.trends.trend import trend
    from torchgauge.results.trends.trend_findings import TrendFilter, keep

    store = work / "store"
    if not store.is_dir():
        generate(work, Shape(nights=NIGHTS, models=MODELS, silent=3))
        opened, wanted = Store.open(store), TrendFilter()
        keep(opened, trend(opened, wanted), wanted, time.time())
    build_site(store, work / "site", now=morning_after(store))
    return work / "site"


def main() -> int:
    """Perform the tasks, print the table, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, nargs="?")
    parser.add_argument("--device", default="xpu")
    parser.add_argument("--other", default="cpu")
    parser.add_argument("--build", type=Path, metavar="WORK")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    site = built(chosen.build) if chosen.build else chosen.site
    if site is None:
        parser.error("name a built site, or --build WORK")
    figures = measure(site, Asked(chosen.device, chosen.other))
    print(table(figures))
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f}; {os.cpu_count()} CPUs")
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(each) for each in figures], indent=1) + "\n")
    return 0 if all(each.met for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
