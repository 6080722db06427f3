"""What is said of devices above every page: one sentence each, and one line where several have one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import axe_core
import pytest
from page_text import words
from store_builder import DAY, EAGER, INDUCTOR, NOW, RunBuilder, environment, result, timings

from torchgauge.dashboard import build_site
from torchgauge.dashboard.device_notices import LATE, LOST, DeviceNotice, DeviceNotices
from torchgauge.records import Case, DeviceTarget, Status, Workload

PASS, INFRA = Status.PASS, Status.INFRA
NAMES = ("well", "fine", "fresh", "good", "calm", "gone", "never", "whole")
SENTENCES = (
    "gone stopped reporting: no result since 2025-12-28 11:31 UTC; before, one came every 1 d.",
    (
        "never lost the nightly run of 2026-01-01: none of 24 cases has a result (no runner). "
        "No older result exists."
    ),
    (
        "whole lost the nightly run of 2026-01-01: none of 24 cases has a result (no runner). "
        "No result since 2025-12-30 11:31 UTC; before, one came every 1 d."
    ),
)
LINE = "3 devices have no new data: gone, never, whole"


def _status(name: str, ago: int) -> Status | None:
    """What a device says in the night of ``ago`` days ago; None where nobody asked it."""
    if name == "gone" and ago < 4:
        return None
    return INFRA if name == "never" or (name == "whole" and ago < 2) else PASS


def _site(folder: Path, names: tuple[str, ...]) -> Path:
    rng = random.Random(5)
    for ago in range(6, -1, -1):
        run = RunBuilder(f"night-{ago}", NOW - ago * DAY - 1_800)
        for name, status in ((name, _status(name, ago)) for name in names):
            if status is None:
                continue
            run.environments.append(environment(name))
            for number in range(24):
                configuration = (EAGER, INDUCTOR)[number % 2]
                case = Case(Workload("toy", f"m{number // 2}"), configuration, DeviceTarget(name))
                if status is PASS:
                    speedup = 1.3 if configuration is INDUCTOR else None
                    result(run, case, measurements=timings(rng, 0.02, speedup, name))
                else:
                    result(run, case, status, reason="no runner")
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site on which three of eight devices have no new data."""
    return _site(tmp_path_factory.mktemp("three"), NAMES)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site on which one of six has none."""
    return _site(
        tmp_path_factory.mktemp("one"), tuple(name for name in NAMES if name not in ("gone", "never"))
    )


def _notices(page: Path) -> str:
    """What stands above the title of a page, in words."""
    return words(page.read_text().partition("static/start.js is missing")[2].partition("<h1")[0]).strip()


def test_a_device_has_one_sentence_however_much_is_wrong_with_it(three: Path) -> None:
    """A device whose runs came and said nothing did not stop reporting; several share one line."""
    pages = sorted(three.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = _notices(page)
        assert " ".join((LINE, *SENTENCES)) in text, page
        assert text.count("stopped reporting") == 1
        assert page.read_text().count('<details class="notice loud"><summary>') == 1


def test_a_lost_night_after_which_nothing_is_late_is_not_loud() -> None:
    """What is shown is of the night before."""
    lost, late = DeviceNotice("a", LOST, ""), DeviceNotice("b", LATE, "")
    assert [DeviceNotices(each).loud for each in ((), (lost,), (lost, late))] == [False, False, True]


# -- In a browser -------------------------------------------------------------------------------------------


@contextmanager
def _screen(browser: Any, **how: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, **how)
    context.clock.install(time=datetime.fromtimestamp(NOW, timezone.utc))  # or the page is out of date
    try:
        yield context.new_page()
    finally:
        context.close()


FIRST_CELL = {
    "index.html": ".tile .value",
    "compatibility.html": ".matrix tbody td",
    "performance.html": ".matrix tbody td",
}
"""The first piece of data of a page."""


@pytest.mark.parametrize("name", FIRST_CELL)
@pytest.mark.parametrize("wrong", ["one", "three"])
def test_on_a_phone_the_first_data_is_on_the_first_screen_whatever_is_wrong(
    request: pytest.FixtureRequest, browser: Any, serve: Callable[[Path], str], wrong: str, name: str
) -> None:
    """At 390 by 844, with the scripts' own controls in place."""
    with _screen(browser) as page:
        page.goto(serve(request.getfixturevalue(wrong)) + name, wait_until="networkidle")
        assert page.locator("main > .notice.loud:not([hidden])").count() == 1
        box = page.locator(FIRST_CELL[name]).first.bounding_box()
        assert box["y"] + box["height"] < 844


def test_the_keyboard_unfolds_the_line_and_folds_it_again(
    three: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """The sentences are there then, and only then."""
    with _screen(browser) as page:
        page.goto(serve(three) + "compatibility.html")
        line = page.locator("details.notice > summary")
        assert line.inner_text() == LINE
        told = page.get_by_text("stopped reporting")
        for seen in (False, True, False):
            assert told.is_visible() is seen
            line.focus()
            page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_it(
    three: Path, browser: Any, serve: Callable[[Path], str], scheme: str
) -> None:
    """Folded and unfolded."""
    text, why = axe_core.source()
    if not text:
        (pytest.fail if axe_core.required() else pytest.skip)(why)
    found = []
    with _screen(browser, color_scheme=scheme) as page:
        page.goto(serve(three) + "index.html")
        page.evaluate(text)
        for _ in range(2):
            found += page.evaluate("axe.run('main').then((all) => all.violations.map(({ id }) => id))")
            page.locator("details.notice > summary").click()
    assert found == []
