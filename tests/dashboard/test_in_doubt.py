"""Step times in doubt, from a store to every output: they stand apart, and are in nothing else.

Two stores differ in nothing but those times. So whatever differs between two outputs has such a time in it: a
row, a cell or a line that shows it, which then says so. An aggregate that differs has taken it in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import doubt_store
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from doubt_store import NIGHTS, run_id
from page_text import words
from store_builder import NOW

from torchgauge.cli.main import cli
from torchgauge.dashboard import build_site
from torchgauge.dashboard.names import device_id
from torchgauge.harness.run.case_line import case_line
from torchgauge.harness.run.run_report import RunReport, report_plain
from torchgauge.harness.run.summary import brief_text, result_lines, summary_lines
from torchgauge.results import frames
from torchgauge.results.store import Store

FACTORS = (1.9 / 0.043, 7.7 / 0.043)
"""How many times as long as it is a step in doubt took: 1.9 s, and 7.7 s in the other store."""

MARKED = re.compile(r"unsteady|unchecked|\bdoubt\b")
NEWEST = run_id(NIGHTS - 1)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The two stores."""
    folder = tmp_path_factory.mktemp("stores")
    return tuple(
        doubt_store.doubtful_store(folder / str(place) / "store", factor)
        for place, factor in enumerate(FACTORS)
    )


@pytest.fixture(scope="module")
def sites(stores: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Their sites."""
    made = [tmp_path_factory.mktemp("site") / "site" for _ in stores]
    for store, out in zip(stores, made, strict=True):
        build_site(store, out, now=NOW)
    return tuple(made)


def differing(texts: tuple[str, ...], cut: str) -> list[str]:
    """The parts of two texts, which are cut before ``cut``, that are not alike."""
    left, right = (re.split(f"(?={cut})", text) for text in texts)
    return [part for pair in zip_longest(left, right, fillvalue="") if pair[0] != pair[1] for part in pair]


def _unmarked(parts: list[str]) -> list[str]:
    return [part[:300] for part in parts if not MARKED.search(part)]


def said(*arguments: str) -> Callable[[Path], str]:
    """What a command says of a store."""

    def run(store: Path) -> str:
        found = CliRunner().invoke(cli, [*arguments, "--store", str(store)])
        assert found.exception is None or isinstance(found.exception, SystemExit), found.output
        assert found.exit_code in (0, 1, 3), found.output  # verdicts; 2 is a mistake in this test
        return found.output.replace(str(store), "STORE")

    return run


def exported(form: str) -> Callable[[Path], str]:
    """The files of an export, one after the other."""

    def run(store: Path) -> str:
        out = store.parent / f"{form}.out"
        found = CliRunner().invoke(
            cli, ["results", "export", NEWEST, "--format", form, "--out", str(out), "--store", str(store)]
        )
        assert found.exit_code == 0, found.output
        files = sorted(out.iterdir()) if out.is_dir() else [out]
        left = [line for line in found.output.splitlines() if "left out" in line]
        return "\n".join([*(path.read_text() for path in files), *left])

    return run


def from_rows(render: Callable[[RunReport], str]) -> Callable[[Path], str]:
    """What is said at the end of a run with such rows."""

    def run(store: Path) -> str:
        report = RunReport("run", len(doubt_store.MODELS))
        for row in doubt_store.newest_rows(FACTORS[store.parent.name.endswith("1")]):
            report.add(row)
        return render(report)

    return run


def from_results(render: Callable[[list[Any]], str]) -> Callable[[Path], str]:
    return lambda store: render(doubt_store.newest_rows(FACTORS[store.parent.name.endswith("1")]))


def progress_lines(rows: list[Any]) -> str:
    """What is said of each row while a run goes on, each beside the eager row of its model."""
    eager = {row.case.workload: row for row in rows if row.case.configuration.name == "eager"}
    return "\n".join(
        case_line("[1/2]", row.case.workload.name, row, eager.get(row.case.workload)) for row in rows
    )


CLAIM = (
    "results",
    "claim",
    "inductor faster than eager",
    "--suite",
    "timm",
    "--device",
    "cpu",
    "--minimum",
    "1",
)
LINES: dict[str, tuple[str, Callable[[Path], str], str]] = {
    "results list": (r"\n", said("results", "list"), ""),
    "results show RUN": (r"\ntimm/", said("results", "show", NEWEST), "about 1.9 s"),
    "results show CASE": (
        r"\n",
        said("results", "show", "timm/loud:inference:float32:b8:eager@cpu"),
        "about 1.9 s",
    ),
    "results show --json": (r"\n \{", said("results", "show", NEWEST, "--json"), "unsteady"),
    "results query": (r"\n", said("results", "query", "model=loud"), ""),
    "results query --table summaries": (
        r"\n",
        said("results", "query", "--table", "summaries", "metric=latency"),
        "unsteady",
    ),
    "report markdown": (r"\n", said("report", NEWEST), "**Unsteady: 2**"),
    "report junit": (r"\n", said("report", NEWEST, "--format", "junit"), "unsteady step times"),
    "report json": (r"\n", said("report", NEWEST, "--format", "json"), "61 % of the cores"),
    "trend": (r"\n", said("results", "trend", "--all", "--no-keep"), "unsteady"),
    "trend --json": (r"\n", said("results", "trend", "--json", "--no-keep"), "unsteady"),
    "trend of speed-ups": (
        r"\n",
        said("results", "trend", "--all", "--no-keep", "--metric", "speedup"),
        "unsteady left out",
    ),
    "claim": (r"\n", said(*CLAIM, "--all"), "1 unsteady"),
    "claim --markdown": (r"\n", said(*CLAIM, "--markdown"), "unsteady"),
    "claim --json": (r"\n", said(*CLAIM, "--json"), '"unsteady": 1'),
    "compare": (r"\n(?! {8})", said("compare", run_id(NIGHTS - 2), NEWEST), "head is unsteady"),
    "compat": (r"\n", said("compat"), ""),
    "dynamo CSV": (r"\n", exported("dynamo-csv"), "the case is unsteady"),
    "dynamo expected": (r"\n", exported("dynamo-expected"), "the case is unchecked"),
    "HUD JSON": (r"\n", exported("hud-v3"), '"in_doubt": "unsteady"'),
    "last words of a run": (
        r"\n",
        from_rows(lambda report: "\n".join(summary_lines(report, Path("store")))),
        "1 of them unsteady",
    ),
    "run --json": (
        r"\n  \{",
        from_rows(lambda report: json.dumps(report_plain(report), indent=1)),
        '"unsteady"',
    ),
    "progress of a run": (r"\n(?! {4})", from_results(progress_lines), "about 1.4 s"),
    "one row in a line": (
        r"\ntimm/",
        from_results(brief_text),
        "unsteady",
    ),
    "one row in full": (
        r"\n",
        from_results(lambda rows: "\n".join(line for row in rows for line in result_lines(row))),
        "unsteady",
    ),
    "frames.matrix": (
        r"\n",
        lambda store: frames.matrix(Store.open(store), "latency").to_csv(),
        "",
    ),
}
"""By what is read: what parts it, how it is made, and what it says of the row in doubt."""


@pytest.mark.parametrize("what", LINES)
def test_nothing_but_what_is_marked_depends_on_a_time_in_doubt(stores: tuple[Path, ...], what: str) -> None:
    """Of every command, report and export; and each shows the mark where it shows the row."""
    cut, make, mark = LINES[what]
    texts = tuple(make(store) for store in stores)
    assert texts[0].strip()
    assert _unmarked(differing(texts, cut)) == []
    assert mark in texts[0]


def _columnar(left: Any, right: Any, marks: dict[str, list[int]]) -> bool:
    """Whether lists of numbers differ at marked places only; anything else is to be alike."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        marks = left.get("marks", marks) or marks
        return all(_columnar(left[key], right[key], marks) for key in left)
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        if any(isinstance(each, (dict, list)) for each in left):
            return all(_columnar(one, other, marks) for one, other in zip(left, right, strict=True))
        places = {place for name in ("unsteady", "unchecked") for place in marks.get(name, ())}
        return all(
            one == other or i in places for i, (one, other) in enumerate(zip(left, right, strict=True))
        )
    return bool(left == right)


def _rows_differ_where_marked(left: Path, right: Path) -> bool:
    one, other = (pq.read_table(path).to_pylist() for path in (left, right))
    return all(
        a == b or MARKED.search(f"{a.get('marks')}") or a.get("mark.unsteady") or a.get("mark.unchecked")
        for a, b in zip(one, other, strict=True)
    )


def _alike_but_for_marked(left: Path, right: Path) -> list[str]:
    """What two files of the sites have that differs and is not marked."""
    if left.suffix == ".parquet":
        return [] if _rows_differ_where_marked(left, right) else [left.name]
    texts = left.read_text(), right.read_text()
    if left.suffix == ".json" and left.name != "latest.json":
        return [] if _columnar(*map(json.loads, texts), {}) else [left.name]
    cut = r"<t[dh]\b|<li|<p\b|<svg" if left.suffix == ".html" else r"\n"
    return _unmarked(differing(texts, cut))


def test_no_file_of_a_site_depends_on_a_time_in_doubt(sites: tuple[Path, ...]) -> None:
    """Pages, their data, badges, feeds and downloads: but for the cells, rows and places that are marked."""
    seen, shown = 0, []
    for left in sorted(path for path in sites[0].rglob("*") if path.is_file()):
        name = left.relative_to(sites[0])
        if name.parts[0] == "state" or name.name == "manifest.json":
            continue  # digests of the others
        right = sites[1] / name
        seen += 1
        if left.read_bytes() != right.read_bytes():
            shown.append(name.as_posix())
            assert _alike_but_for_marked(left, right) == [], name
    assert seen >= 100
    assert {"performance-latency.html", "data/latest.csv", "data/latest.json", "data/latest.parquet"} <= set(
        shown
    )
    assert "trends.html" not in shown


PAGES = {
    "index.html": ("2 unchecked, 2 unsteady", "1 unsteady left out"),
    "performance.html": ("\N{EN DASH}unsteady", "about 1,900"),
    "performance-latency.html": ("about 1,900", "n 3; excluded: 1 unchecked, 1 unsteady"),
    "performance-device.html": ("unsteady",),
    "performance-previous.html": ("\N{EN DASH}unsteady",),
    "performance-speedup.html": ("about 57", "n 3; excluded: 1 unchecked, 1 unsteady"),
    "compatibility.html": ("unsteady",),
    "trends.html": ("1 unchecked, 1 unsteady left out",),
    "compare.html": ("unsteady on B",),
    "about.html": ("unstable step times",),
    "models/timm-loud.html": ("about 1.9 s", "61 % of the cores", "in doubt left out"),
    "models/timm-blind.html": ("the run was told --no-accuracy",),
}


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_is_in_doubt(sites: tuple[Path, ...], page: str) -> None:
    """By a word that stands there, with the reason where there is room."""
    (path,) = [each for each in sites[0].rglob("*.html") if _named(each, sites[0]) == page]
    text = words(path) + " ".join(re.findall(r'aria-label="([^"]*)"', path.read_text()))
    assert [word for word in PAGES[page] if word not in text] == []


def _named(path: Path, root: Path) -> str:
    """The name of a page without the digest at the end of a model's."""
    return re.sub(r"-[0-9a-f]{6,}(?=\.html)", "", path.relative_to(root).as_posix())


CPU = device_id("cpu")
LIVE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "two nights compared": (
        f"compare.html?ad={CPU}&bd={CPU}&metric=latency",
        "#result .verdicts",
        ("4 excluded", "unsteady on B", "unchecked on B"),
    ),
    "devices compared": (
        f"compare.html?a=newest&b=newest&ad={CPU}&bd={device_id('npusim')}&metric=speedup",
        "#result table",
        ("7 excluded", "unsteady on A", "unchecked on A"),
    ),
    "a chosen baseline": (
        "performance-latency.html?base=BASE",
        "main:has(td i:text('baseline')):has([data-baseline]:text('the chosen column'))",
        ("unsteady", "unchecked"),
    ),
    "a query": ("performance-latency.html?q=latency>1s", "tr[data-means]:not(:has-text('±'))", ()),
    "marks queried": (
        "performance-latency.html?q=unsteady",
        "tr[data-means]:has-text('\N{EN DASH}'):not(:has-text('\N{PLUS-MINUS SIGN}'))",
        ("about 1,900",),
    ),
    "sorted by a column": ("performance-latency.html?sort=-BASE", "[aria-sort]", ("about 1,900",)),
    "the mean drawn": (f"trends.html?device={CPU}", "figure details table", ("unsteady left out",)),
    "the chart of a model": ("MODEL", "figure details table", ("about 1.9 s", "unsteady")),
}


@pytest.mark.parametrize("what", LIVE)
def test_what_the_browser_works_out_is_marked_and_compared_alike(
    sites: tuple[Path, ...], serve: Callable[[Path], str], browser: Any, what: str
) -> None:
    """The modules follow the same rule as the pages that they stand in."""
    address, ready, wanted = LIVE[what]
    texts = tuple(_live(browser, serve(site), site, address, ready) for site in sites)
    assert _unmarked(differing(texts, r"\n(?!\t)")) == []
    assert [word for word in wanted if word not in texts[0]] == []


def _live(browser: Any, base: str, site: Path, address: str, ready: str) -> str:
    """What a reader sees at ``address``, with everything unfolded, a line for each row."""
    anchor = re.search(r'data-anchor="([^"]+)"', (site / "performance-latency.html").read_text())
    model = next((site / "models").glob("timm-loud*")).relative_to(site).as_posix()
    assert anchor is not None
    page = browser.new_page(viewport={"width": 1280, "height": 4000})  # rows out of sight have no text
    page.route("**/plotly-*.js", lambda route: route.abort())  # a chart's table stands in its place
    page.goto(base + address.replace("BASE", anchor[1]).replace("MODEL", model))
    if address == "MODEL":
        page.locator("[data-chart]").scroll_into_view_if_needed()
    page.locator(ready).first.wait_for(state="attached")
    page.evaluate(_UNFOLD)
    page.wait_for_function(_UNFOLDED)
    found: str = page.evaluate(_ROWS)
    page.close()
    return found


_UNFOLD = 'for (const each of document.querySelectorAll("details")) each.open = true;'
_UNFOLDED = (
    """() => [...document.querySelectorAll("#result details")].every((each) => each.children.length > 1)"""
)
_ROWS = """() => [...document.querySelectorAll("main tbody tr, main tfoot tr, main p, main li")]
  .filter((each) => each.getClientRects().length)
  .flatMap((each) => (each.cells?.length ? [...each.cells] : [each]))
  .map((each) => each.className + " " + each.innerText)
  .map((text) => text.replace(/\\s+/g, " ")).join("\\n")"""
