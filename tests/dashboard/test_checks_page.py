"""The page of device checks: groups by device, open to the reasons, and only where there are checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result
from subject_store import HOSTILE, check, night, subject_store

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Status


def _page(store: Path, out: Path, name: str = "checks.html") -> str:
    build_site(store, out, now=NOW)
    return (out / name).read_text()


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of two devices."""
    folder = tmp_path_factory.mktemp("checks")
    return _page(subject_store(folder / "store"), folder / "site")


def test_groups_stand_by_device_with_counts_and_reasons(page: str) -> None:
    """N of m per group and device, each check under it, with its reason."""
    text = _text(page)
    assert re.search(r"tensor ✓ 2/2 ✓ 2/2", text)
    assert re.search(r"stream ○ 1 not applicable .*◐ 1/2 .*1 crash", text)
    assert "SIGSEGV in a stream" in text
    assert "tensor.copy" in text
    assert "torchgauge check --device npusim" in text
    assert page.count("<details>") == 2


def test_models_and_operators_are_not_on_the_page(page: str) -> None:
    """They have pages of their own."""
    assert "toy/mlp" not in page
    assert "topk" not in page


def test_a_store_without_checks_has_no_such_page(tmp_path: Path) -> None:
    """No page, and no link to it."""
    night(tmp_path / "store", 1, {"a": Status.PASS})
    about = _page(tmp_path / "store", tmp_path / "site", "about.html")
    assert not (tmp_path / "site/checks.html").exists()
    assert not (tmp_path / "site/operators.html").exists()
    assert "checks.html" not in about
    assert "This store holds no checks of devices" in about


def test_what_only_an_older_torch_measured_stays(tmp_path: Path) -> None:
    """A check that no newer torch ran is shown with its age, and the page says which torch it was."""
    for number, (name, torch) in enumerate((("tensor.copy", "2.12.0"), ("tensor.views", "2.13.0"))):
        run = RunBuilder(f"run-{number}", NOW - (40 - 30 * number) * DAY)
        found = environment("cpu")
        identity = tuple(sorted({**dict(found.identity), "torch": torch}.items()))
        run.environments.append(type(found)("cpu", identity))
        result(run, Case(check(name), EAGER, CPU), environment_id=run.environments[0].id)
        run.write(tmp_path / "store")
    text = _text(_page(tmp_path / "store", tmp_path / "site"))
    assert "tensor.copy" in text
    assert "30 d old" in text
    assert "1 row with torch 2.12.0" in text


def test_hostile_checks_are_text(tmp_path: Path) -> None:
    """Names and reasons from elsewhere act on nothing, and a strange shape or suite takes no page down."""
    run = RunBuilder("run-1", NOW - 60)
    run.environments.append(environment("cpu"))
    for place, bad in enumerate(HOSTILE):
        named = check(bad[:500], suite="conformance" if place % 2 else f"vendor {bad[:100]}")
        result(run, Case(named, EAGER, CPU), Status.ERROR, reason=bad)
    run.write(tmp_path / "store")
    page = _page(tmp_path / "store", tmp_path / "site")
    assert not re.search(r"<(script(?! type=\"module\")|img|a href='https)", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "Other checks" in page
    assert len(page) < 400_000
