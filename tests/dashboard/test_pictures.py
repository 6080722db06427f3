"""Pictures: what is drawn is what the store holds, for every reader; nothing unknown is drawn."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import doubt_store
import pyarrow.parquet as pq
import pytest
import subject_store
from picture_file import SVG, PictureFile, words
from site_files import generator, small_shape
from store_builder import (
    ACCURACY,
    CPU,
    DAY,
    EAGER,
    NOW,
    NPU,
    RunBuilder,
    environment,
    result,
    timings,
    workloads,
)

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pages.number_text import TIMES
from torchgauge.dashboard.pictures import ink
from torchgauge.records import Case, Measurement, Status, Workload
from torchgauge.results.trends.trend_outcomes import TrendState


def pictures(site: Path, kind: str) -> list[Path]:
    found = sorted((site / "pictures").glob(f"{kind}*.svg"))
    return [path for path in found if not path.stem.endswith(("-narrow", "-card"))]


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store of nine nights, of which one device was lost in some, and its site."""
    folder = tmp_path_factory.mktemp("long")
    generator().generate(folder, small_shape(nights=9, models=6, silent=2))
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "store", folder / "site"


def test_each_ratio_stands_where_its_number_says(store: Path, site: Path) -> None:
    """Dots and whiskers, read back from the axis of the picture, are speed-ups by the store's numbers."""
    (path,) = pictures(site, "devices")
    picture = PictureFile(path)
    one, unit = picture.log_axis()
    by_device = [
        {row["case_key"]: row for row in pq.read_table(path).to_pylist() if row["metric"] == "latency"}
        for path in sorted((store / "tables" / "summaries").glob("20260101*.parquet"))
    ]
    summaries = {key: row for part in by_device for key, row in part.items()}
    rows, whiskers = picture.rows(), picture.whiskers()
    assert len(rows) == 15
    for workload in workloads():
        cases = [Case(workload, EAGER, device) for device in (CPU, NPU)]
        if workload.name not in rows:
            continue
        base, own = (summaries[case.key] for case in cases)
        ratio = base["median"] / own["median"]
        said, x, y = rows[workload.name]
        assert math.isclose(x, one + unit * math.log(ratio), abs_tol=0.5)
        assert float(said.partition("x")[0]) == pytest.approx(ratio, abs=5e-3)
        up = math.hypot(math.log(own["median"] / own["low"]), math.log(base["high"] / base["median"]))
        down = math.hypot(math.log(own["high"] / own["median"]), math.log(base["median"] / base["low"]))
        ends = [one + unit * (math.log(ratio) + each) for each in (-down, up)]
        assert whiskers[y] == pytest.approx(ends, abs=0.5)
    assert sorted(rows, key=lambda name: rows[name][2]) == sorted(rows, key=lambda name: rows[name][1:])
    codes = Counter(words(each) for each in picture.texts if each.attrib["class"].startswith("i-"))
    assert codes == Counter(["acc", "err", "OOM", "T/O", "crash", "n/a", "skip"])


def test_each_column_is_as_high_as_the_store_counts(long_site: tuple[Path, Path]) -> None:
    """The passes of every snapshot, and the snapshots in which a device was lost."""
    store, site = long_site
    passed: dict[str, int] = {}
    for path in sorted((store / "tables" / "results").glob("*.parquet")):
        rows = pq.read_table(path).to_pylist()
        number = sum(
            row["status"] == "pass"
            and not {"degraded", "unchecked", "other_model"} & set(row["modifiers"] or ())
            for row in rows
            if row["device"] == "cpu"
        )
        date = f"{rows[0]['run_created_at']:%Y-%m-%d}"
        passed[date] = passed.get(date, 0) + number
    path = next(path for path in pictures(site, "coverage-cpu"))
    picture = PictureFile(path)
    columns = picture.columns("pass")
    (top,) = (each for each in picture.texts if words(each) == "10")
    (zero,) = (each for each in picture.texts if words(each) == "0")
    unit = (float(zero.attrib["y"]) - float(top.attrib["y"])) / 10
    assert [round(height / unit) for _, height in columns] == [count for count in passed.values() if count]
    other = PictureFile(next(path for path in pictures(site, "coverage-cuda")))
    assert "2 of 9 snapshots have no result" in other.description
    hatched = [
        each.attrib["d"] for each in other.root.iter(f"{SVG}path") if each.get("fill") == "url(#hatching)"
    ]
    assert hatched[-1].count("M") == 2


def test_what_is_in_doubt_is_no_point_of_a_picture(tmp_path: Path) -> None:
    """It stands at the edge with its reason, and moves nothing else."""
    found = []
    for place, factor in enumerate((1.0, 50.0)):
        build_site(
            doubt_store.doubtful_store(tmp_path / f"s{place}", factor), tmp_path / f"o{place}", now=NOW
        )
        (path,) = pictures(tmp_path / f"o{place}", "devices")
        picture = PictureFile(path)
        assert len(picture.rows()) == 3
        chips = {words(each) for each in picture.texts if each.attrib["class"].startswith("i-lack")}
        assert chips == {"unsteady", "unchecked"}
        found.append(path.read_bytes())
    assert found[0] == found[1]


def _one_night(path: Path, devices: tuple[Any, ...], samples: int) -> Path:
    run = RunBuilder("20260101T100000Z-bbbbbbbb", NOW - DAY)
    for device in devices:
        run.environments.append(environment(device.name))
        walls = tuple(0.01 * (1 + i / 100) for i in range(samples))
        series = Measurement("latency", "s", walls, tuple(range(samples)), "perf_counter")
        result(run, Case(Workload("timm", "m"), EAGER, device), measurements=[series])
    run.write(path)
    return path


@pytest.mark.parametrize(
    ("devices", "samples", "why"),
    [
        ((CPU,), 9, "Fewer than two devices have results of models in the same configuration."),
        ((CPU, NPU), 3, "There is no ratio to draw: 1 no interval."),
    ],
)
def test_where_there_is_nothing_to_draw_a_sentence_says_why(
    devices: tuple[Any, ...], samples: int, why: str, tmp_path: Path
) -> None:
    """Also for numbers without an interval: a ratio of them would look sure."""
    build_site(_one_night(tmp_path / "s", devices, samples), tmp_path / "o", now=NOW)
    drawn = " ".join(path.read_text() for path in pictures(tmp_path / "o", "devices"))
    assert (why in drawn) is (len(devices) > 1)  # the address of two devices lasts
    text = (tmp_path / "o" / "pictures" / "index.html").read_text()
    assert why in text
    assert "a trend requires 2" in text


def test_a_picture_has_a_name_a_description_and_a_table(site: Path) -> None:
    """Each is named for those who do not see it, and its page has the same rows as text."""
    drawn = [path for path in pictures(site, "") if path.stem != "changes"]  # nothing is known of any
    assert len(drawn) == 5
    for path in drawn:
        picture = PictureFile(path)
        assert picture.root.attrib["role"] == "img"
        assert picture.root.attrib["aria-labelledby"] == "title desc"
        assert len(picture.title) > 5
        assert len(picture.description) > 60
        page = path.with_suffix(".html").read_text()
        assert f'alt="{picture.description}"' in page
        assert picture.title in page
        assert page.count("<tr>") > 2
        assert not re.search(r"https?://(?!www\.w3\.org|YOUR-SITE)", page + path.read_text())


@pytest.mark.parametrize("colours", [ink.LIGHT, ink.DARK])
def test_the_colours_can_be_told_from_what_is_behind_them(colours: dict[str, str]) -> None:
    """Text by 4.5 to 1 and marks by 3 to 1, as WCAG asks."""
    for ground, text in (
        ("page", "ink"),
        ("page", "muted"),
        ("head", "muted"),
        ("page", "better"),
        ("page", "worse"),
    ):
        assert _contrast(colours[ground], colours[text]) >= 4.5, (ground, text)
    for name in ("pass", "acc", "err", "limit", "none"):
        assert _contrast(colours[name], colours[f"{name}-ink"]) >= 4.5, name


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_reader_sees_the_picture_in_both_schemes_and_the_narrow_one_on_a_phone(
    site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """The image is there, in its own colours, and nothing of the page is wider than the screen."""
    base = serve(site)
    page_name = pictures(site, "devices")[0].with_suffix(".html").name
    for width, scheme, end in ((1440, "light", ".svg"), (390, "dark", "-narrow.svg")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{base}pictures/{page_name}")
        image = page.locator("img.picture")
        assert image.evaluate("(each) => each.decode().then(() => each.currentSrc)").endswith(end)
        assert image.evaluate("(each) => each.naturalWidth") > 300
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(image.evaluate("(each) => each.currentSrc"))
        fill = page.evaluate("getComputedStyle(document.querySelector('rect.page')).fill")
        assert fill == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 27)")
        context.close()


def _chart_rows(path: Path) -> list[list[str]]:
    """The rows of the table beside a picture, as text."""
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in body.split("<tr>")[1:]
    ]


def test_two_versions_are_compared_case_by_case(tmp_path: Path) -> None:
    """The newest of each release, both known; a case that one side failed is counted and is no point."""
    rng = random.Random(5)
    for day, version in ((3, "2.12.1"), (2, "2.12.1"), (1, "2.13.0")):
        run = RunBuilder(f"2025123{day}T020000Z-aaaaaaa{day}", NOW - day * DAY)
        base = environment("cpu")
        identity = tuple((key, version if key == "torch" else value) for key, value in base.identity)
        run.environments.append(
            replace(base, identity=tuple(each for each in identity if each[0] != "torch_commit"))
        )
        for place, workload in enumerate(workloads()[:6]):
            status = Status.ERROR if day == 1 and place == 5 else Status.PASS
            scale = 0.5 if day == 1 and place == 0 else 1.0
            times = timings(rng, 0.01 * scale, None, "cpu") if status is Status.PASS else ()
            result(
                run,
                Case(workload, EAGER, CPU),
                status,
                measurements=times,
                accuracy=ACCURACY,
                environment_id=run.environments[0].id,
            )
        run.write(tmp_path / "s")
    build_site(tmp_path / "s", tmp_path / "o", now=NOW)
    (path,) = pictures(tmp_path / "o", "versions")
    picture = PictureFile(path)
    assert picture.title == "torch 2.13.0 against 2.12.1, cpu"
    rows = _chart_rows(path)
    assert len(rows) == 6
    first = next(row for row in rows if row[0] == workloads()[0].name)
    assert float(first[3].removesuffix(TIMES)) == pytest.approx(2.0, rel=0.05)
    assert [row[-1] for row in rows if not row[3]] == ["err"]
    assert "1 faster, 4 undecided, 1 without a ratio" in picture.description


def test_the_changes_of_the_week_are_those_that_trend_found(tmp_path: Path) -> None:
    """By size, the suspected ones hollow; older ones and changes of the machine are left out."""
    subject_store.night(tmp_path / "s", 29, {"a": Status.PASS})
    subject_store.night(tmp_path / "s", 30, {"a": Status.PASS})
    found = [
        subject_store.finding(
            "big", key="1" * 16, size=0.5, low=0.4, high=0.6, suspect_at=NOW - DAY, state=TrendState.CONFIRMED
        ),
        subject_store.finding(
            "small", key="2" * 16, size=-0.1, low=-0.12, high=-0.08, worse=False, suspect_at=NOW - 2 * DAY
        ),
        subject_store.finding("few", key="3" * 16, size=0.3, low=None, high=None, suspect_at=NOW - DAY),
        subject_store.finding("old", key="4" * 16, suspect_at=NOW - 9 * DAY),
        subject_store.finding("machine", key="5" * 16, suspect_at=NOW - DAY, state=TrendState.ENVIRONMENT),
    ]
    subject_store.keep_findings(tmp_path / "s", *found)
    build_site(tmp_path / "s", tmp_path / "o", now=NOW)
    (path,) = pictures(tmp_path / "o", "changes")
    picture = PictureFile(path)
    rows = picture.rows()
    assert [name.split(":")[0] for name in rows] == ["toy/big", "toy/small"], (rows, picture.description)
    assert [said.partition(" ")[0] for said, _, _ in rows.values()] == ["0.667x", "1.11x"]
    hollow = [each for each in picture.root.iter(f"{SVG}circle") if "page" in each.attrib["class"]]
    assert len(hollow) == 1
    assert "3 metrics changed: 2 got worse; 1 confirmed" in picture.description
    assert [row[-1] for row in _chart_rows(path)][2:] == ["no interval"]
