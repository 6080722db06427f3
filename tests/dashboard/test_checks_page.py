"""The page of device checks: groups by device, open to the reasons, and only where there are checks."""

from __future__ import annotations

import re
from pathlib import Path

from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result
from subject_store import check, night

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Status


def _page(store: Path, out: Path, name: str = "checks.html") -> str:
    build_site(store, out, now=NOW)
    return (out / name).read_text()


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_a_store_without_checks_has_no_such_page(tmp_path: Path) -> None:
    """No page, and no link to it."""
    night(tmp_path / "store", 1, {"a": Status.PASS})
    about = _page(tmp_path / "store", tmp_path / "site", "about.html")
    assert not (tmp_path / "site/checks.html").exists()
    assert not (tmp_path / "site/operators.html").exists()
    assert "checks.html" not in about
    assert "This store contains no device checks" in about


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
    assert "1 result with torch 2.12.0" in text
