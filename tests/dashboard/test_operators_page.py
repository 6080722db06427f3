"""Operator coverage: verdicts by device and dtype, reasons on pages by letter, and a bounded size."""

from __future__ import annotations

import gzip
import re
from importlib import resources
from pathlib import Path

import pytest
from store_builder import CPU, EAGER, NOW, NPU, RunBuilder, environment, failure, result
from subject_store import HOSTILE, operator, subject_store

from torchgauge.dashboard import build_site, site
from torchgauge.dashboard.pages import operators, support_style
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Case, Status, Workload
from torchgauge.results.store import Store


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)).replace(" ,", ",")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of two devices with three operators."""
    folder = tmp_path_factory.mktemp("operators")
    build_site(subject_store(folder / "store"), folder / "site", now=NOW)
    return folder / "site"


def test_every_operator_has_a_verdict_by_device_and_dtype(built: Path) -> None:
    """The worst over the variants, a star where some pass, nothing where nothing was measured."""
    page = (built / "operators.html").read_text()
    (body,) = re.findall(r'grid ops">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = {
        _text(row).split()[0]: re.findall(r'<td class="(\w+)">([^<]*)</td>', row)
        for row in body.strip().splitlines()
    }
    assert rows["add"] == [("p", "pass")] * 4
    assert rows["topk"] == [("p", "pass"), ("z", ""), ("e", "err*"), ("z", "")]
    assert next(iter(rows)) == "topk"


def test_coverage_is_counted_per_dtype(built: Path) -> None:
    """Operators all of whose variants pass, over those that say something."""
    text = _text((built / "operators.html").read_text())
    assert "cpu float32 3/3 100%" in text
    assert "npusim float32 2/3 66.7%" in text
    assert "npusim bfloat16 2/2 100%" in text


def test_reasons_stand_on_the_page_of_the_letter(built: Path) -> None:
    """An operator leads to its variants; namespaces do not decide the letter."""
    page = (built / "operators.html").read_text()
    (link,) = re.findall(r'<a href="(operators/t\.html#[^"]+)">topk', page)
    details = (built / "operators/t.html").read_text()
    assert f'id="{link.partition("#")[2]}"' in details
    assert "no kernel for topk" in details
    assert "nn.functional.conv1d" in (built / "operators/c.html").read_text()


def test_blocked_models_are_named_per_operator(tmp_path: Path) -> None:
    """A model that failed for want of an operator is what implementing it would unblock."""
    run = RunBuilder("run-1", NOW - 60)
    run.environments.append(environment("npusim"))
    missing = failure("aten::_fused_sdp is not implemented")
    result(run, Case(operator("topk"), EAGER, NPU))
    result(
        run, Case(Workload("toy", "wanting"), EAGER, NPU), Status.ERROR, failure=missing, reason="no kernel"
    )
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = _text((tmp_path / "site/operators.html").read_text())
    assert "What blocks models on npusim" in text
    assert "Implementing aten::_fused_sdp would unblock 1 model, of which 1 was seen to fail" in text
    assert "toy/wanting:inference" in text
    assert "torchgauge ops blockers --device npusim" in text


def test_the_first_load_stays_small(tmp_path: Path) -> None:
    """677 operators in two dtypes on two devices, a tenth of them failing each in its own way."""
    run = RunBuilder("run-1", NOW - 60)
    run.environments += [environment("cpu"), environment("npusim")]
    for number in range(677):
        for dtype in ("float32", "bfloat16"):
            named = operator(f"ns{number % 7}.op_{number}", dtype=dtype)
            result(run, Case(named, EAGER, CPU))
            if number % 10:
                result(run, Case(named, EAGER, NPU))
            else:
                result(run, Case(named, EAGER, NPU), Status.ERROR, failure=failure(f"no kernel {number}"))
    run.write(tmp_path / "store")
    store = Store.open(tmp_path / "store")
    context = site._context(read_site_data(store, NOW), "")
    style = resources.files("torchgauge.dashboard").joinpath("static/style.css").read_bytes()
    files = {**dict(operators.build(context)), **dict(support_style.build(context)), "style": style}
    sizes = {name: len(gzip.compress(content)) for name, content in files.items()}
    shared = sizes.pop("style") + sizes.pop(support_style.FILE)
    assert "operators.html" in sizes
    assert all(size + shared < 60_000 for size in sizes.values()), sizes


def test_hostile_operators_are_text(tmp_path: Path) -> None:
    """Names, dtypes and reasons from elsewhere act on nothing."""
    run = RunBuilder("run-1", NOW - 60)
    run.environments.append(environment("cpu"))
    for bad in HOSTILE:
        named = operator(bad[:500], dtype=bad[:50].replace(" ", "_") or "float32")
        result(run, Case(named, EAGER, CPU), Status.ERROR, reason=bad)
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    for page in (tmp_path / "site/operators.html", *(tmp_path / "site/operators").iterdir()):
        assert not re.search(r"<(script(?! type=\"module\")|img|a href='https)", page.read_text()), page.name
