"""The pages of features: both sides of the trade, what ran in words, and only where there are such rows."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from store_builder import CPU, EAGER, INDUCTOR, NOW, RunBuilder, environment, result, timings

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Measurement, Modifier, Status, Workload

WORKLOAD = Workload("features", "compile.autograd-stack2", "training", shape=(("blocks", 2),))
CAPTURED = replace(INDUCTOR, name="inductor-compiled-autograd", backend="compiled_autograd")
HOSTILE = "<script>alert(1)</script> captured nothing"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family with a baseline, a pass, a degraded pass and a refusal, and another family."""
    folder, rng = tmp_path_factory.mktemp("features"), random.Random(1)
    run = RunBuilder("20260101T000000Z-0", NOW - 3_600, environments=[environment("cpu")])
    result(run, Case(WORKLOAD, EAGER, CPU), measurements=timings(rng, 0.01, None, "cpu"))
    captures = Measurement("autograd_captures", "count", (0.0,))
    result(
        run,
        Case(WORKLOAD, CAPTURED, CPU),
        measurements=[*timings(rng, 0.01, 2.0, "cpu"), captures],
        modifiers=(Modifier.DEGRADED,),
        facts=(("compiled_share", 0.4), ("degraded", HOSTILE)),
    )
    result(
        run,
        Case(replace(WORKLOAD, mode="inference"), CAPTURED, CPU),
        Status.UNSUPPORTED,
        reason="the mode has no backward pass to capture",
    )
    result(run, Case(Workload("features", "attention.sdpa-small"), EAGER, CPU))
    for way, seconds, facts in (
        ("on", 2.0, {"extensions": "xyz (torch-xyz 1.2.3)", "device_visible": "yes"}),
        ("raising", 3.0, {"device_visible": "no", "raised": HOSTILE}),
    ):
        result(
            run,
            Case(Workload("features", f"device.autoload-{way}", "check"), EAGER, CPU),
            measurements=[Measurement("import_time", "s", (seconds,) * 6)],
            facts=tuple(facts.items()),
        )
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def _text(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.read_text()))


def test_every_family_has_a_page_that_the_navigation_leads_to(site: Path) -> None:
    """The counts of each family stand beside its question."""
    text = _text(site / "features.html")
    assert re.search(r"compile\.autograd How much of the backward pass is captured.*? 1 1 1 0 3", text)
    assert re.search(r"attention\.sdpa Which backend .*? 1 0 0 0 1", text)
    assert 'href="features.html"' in (site / "index.html").read_text()


def test_a_family_shows_cost_gain_and_what_ran(site: Path) -> None:
    """Compile time stands beside step time, evidence and reasons in words, and hostile text as text."""
    (page,) = (site / "features").glob("compile-autograd*.html")
    text = _text(page)
    assert "requested device status step speed-up peak memory cold call warm call executed path" in text
    assert re.search(
        r"inductor-compiled-autograd cpu \S+ [\d.]+ ms ±[\d.]+% 2\.\d+ \S ±.{0,40} [\d.]+ s [\d.]+ s ", text
    )
    assert "captured nothing; 1 graph, 0 backward captures, 40% of the time in compiled code" in text
    assert "the mode has no backward pass to capture" in text
    assert "<script>alert" not in page.read_text()
    assert len(page.read_bytes()) < 60_000
    for link in re.findall(r'href="\.\./(models/[^"#]+)', page.read_text()):
        assert (site / link).is_file()


def test_checks_of_a_family_show_their_time_and_lead_to_their_row(site: Path) -> None:
    """A check has no page of a model: its links lead to the page of checks."""
    (page,) = (site / "features").glob("device-autoload*.html")
    text = _text(page)
    assert "requested device status import executed path" in text
    assert re.search(r"2\.\d+ s ±0\S* extensions xyz \(torch-xyz 1\.2\.3\), device visible: yes", text), text
    assert re.search(r"3\.\d+ s ±0\S* device visible: no, raised &lt;script&gt;", text), text
    anchors = re.findall(r'href="\.\./checks\.html#([^"]+)', page.read_text())
    assert len(anchors) == 4
    checks = (site / "checks.html").read_text()
    assert all(f'id="{anchor}"' in checks for anchor in anchors)
    for shown in (text, _text(site / "checks.html")):
        assert not re.search("float32|batch 1|b1|eager", shown.partition("Reproduce")[0])


def test_a_store_without_features_has_no_such_page(tmp_path: Path) -> None:
    """No page, and no link to one."""
    run = RunBuilder("20260101T000000Z-0", NOW - 3_600, environments=[environment("cpu")])
    result(run, Case(Workload("toy", "mlp"), EAGER, CPU))
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert not (tmp_path / "site/features.html").exists()
    assert "features.html" not in (tmp_path / "site/index.html").read_text()
