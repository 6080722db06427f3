"""The page of a device: what to fix first, on what it ran, and whether it still reports."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from page_text import broken_links, words
from store_builder import (
    CPU,
    DAY,
    EAGER,
    INDUCTOR,
    NOW,
    NPU,
    RunBuilder,
    environment,
    failure,
    result,
    workloads,
)

from torchgauge.dashboard import build_site
from torchgauge.records import Calibration, Case, Cause, Environment, Status, Workload


def _site(tmp_path: Path) -> Path:
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    return tmp_path / "site"


def _device(site: Path, name: str) -> Path:
    return next((site / "devices").glob(f"{name}-*.html"))


def test_failures_are_grouped_by_fingerprint_the_largest_first(tmp_path: Path) -> None:
    """One group per cause with its operator, frame, models and one command; the rest has no fingerprint."""
    run = RunBuilder("r", NOW - 60)
    result(run, Case(workloads()[0], EAGER, NPU))
    other = replace(failure("another"), fingerprint="aaaa", missing_op="")
    result(run, Case(workloads()[2], EAGER, NPU), Status.ERROR, failure=other)
    for workload in workloads()[4:8:2]:
        for configuration in (EAGER, INDUCTOR):
            message = failure(f"aten::_fused_sdp is not implemented ({workload.model})")
            result(run, Case(workload, configuration, NPU), Status.ERROR, failure=message)
    result(run, Case(workloads()[9], EAGER, NPU), Status.OOM, cause=Cause.DEVICE, reason="tried 2 GiB")
    run.write(tmp_path / "store")
    page = _device(_site(tmp_path), "npusim")
    groups = re.findall(r'<article class="card group".*?</article>', page.read_text(), re.DOTALL)
    assert [int(words(group).split("×")[0]) for group in groups] == [4, 1, 1]  # noqa: RUF001
    first = words(groups[0])
    for part in (
        "NotImplementedError",
        "aten::_fused_sdp",
        "torch/_inductor/graph.py:call",
        "5f2d0a9c11aa07e3",
        "eager, inductor",
        "timm/mobilenetv3_small_100 (2)",
        "timm/efficientnet_b0 (2)",
    ):
        assert part in first
    assert all(group.count("data-copy") == 1 for group in groups)
    assert "tried 2 GiB" in words(page)
    assert "1/7 planned cases of models pass" in words(page)


def test_checks_and_operators_are_in_no_headline(tmp_path: Path) -> None:
    """They have a row in the table of suites and a section of failures of their own."""
    run = RunBuilder("r", NOW - 60)
    result(run, Case(workloads()[0], EAGER, CPU))
    check = Workload("conformance", "event.elapsed_time", "check")
    result(run, Case(check, EAGER, CPU), Status.ERROR, failure=failure("no event"))
    run.write(tmp_path / "store")
    site = _site(tmp_path)
    text = words(_device(site, "cpu"))
    assert "1/1 planned cases of models pass" in text
    assert "conformance checks 0/1 0/1 1 err" in text
    assert "Failures by cause None." in text
    assert "NotImplementedError: no event" in text.partition("Failures of checks and operators")[2]
    devices = words(site / "devices" / "index.html")
    assert "conformance, checks: 0/1 pass (not in the numbers above: not models)" in devices


def test_when_the_driver_and_the_build_of_torch_changed(tmp_path: Path) -> None:
    """Every change of a fact has its date and run; builds of torch have a table of their own."""
    base = environment("npusim")

    def having(**changes: str) -> Environment:
        return replace(base, identity=tuple((k, changes.get(k, v)) for k, v in base.identity))

    newer = {"torch": "2.14.0", "torch_commit": "0123456789abcdef"}
    for night, env in ((3, base), (2, having(driver="1.3.0")), (1, having(driver="1.3.0")),
                       (0, having(driver="1.3.0", **newer))):  # fmt: skip
        run = RunBuilder(f"night-{9000 - night}", NOW - 600 - night * DAY, environments=[env])
        run.calibrations.append(Calibration("npusim", "start", 1.4e11, 1.1e10, 2e-6))
        result(run, Case(workloads()[0], EAGER, NPU), environment_id=env.id)
        run.write(tmp_path / "store")
    site = _site(tmp_path)
    page = _device(site, "npusim")
    text = words(page)
    changed = text.partition("Other changes between runs")[2].partition("All environments")[0]
    assert "2025-12-30 11:50 UTC, run night-8998 driver 1.2.0 → 1.3.0" in changed
    assert changed.count("→") == 1
    builds = text.partition("Builds of torch in the recent snapshots")[2].partition("What else")[0]
    assert "2.14.0 0123456789ab 2026-01-01 2026-01-01 1 " in builds
    assert "2.13.0+cpu 9ab1b31d2f7c 2025-12-29 2025-12-31 3 " in builds
    assert "140 GFLOP/s" in text
    card = text.partition("As of 2026-01-01 11:50 UTC")[2].partition("Calibration")[0]
    assert "driver 1.3.0" in card
    assert "torch 2.14.0" in card
    assert text.count("8 facts") == 3
    assert not broken_links(site, "devices/*.html", "models/*.html", "runs.html")


def test_fallbacks_are_listed_by_model(tmp_path: Path) -> None:
    """The largest share first; cases that were looked at and had none are counted."""
    run = RunBuilder("r", NOW - 60)
    for place, (ops, share) in enumerate(((1, 0.02), (3, 0.4), (0, 0.0))):
        facts = (("fallback_ops", ops), ("fallback_share", share), ("fallback_names", f"aten::op{place}"))
        result(run, Case(workloads()[2 * place], EAGER, NPU), facts=facts)
    result(run, Case(workloads()[0], EAGER, CPU))
    run.write(tmp_path / "store")
    site = _site(tmp_path)
    text = words(_device(site, "npusim")).partition("CPU fallbacks")[2]
    assert "2 of 3 checked cases" in text
    assert "timm/resnet50 40.0% 1 aten::op1 timm/resnet18 2.0% 1 aten::op0" in text
    assert "aten::op2" not in text
    assert "Not checked" in words(_device(site, "cpu"))


def test_an_index_of_one_device_with_an_index_finds_its_environment(tmp_path: Path) -> None:
    """Environments know the plugin only; the second device of a machine has the same page of facts."""
    run = RunBuilder("r", NOW - 60, environments=[environment("npusim")])
    result(run, Case(workloads()[0], EAGER, replace(NPU, index=1)))
    run.write(tmp_path / "store")
    site = _site(tmp_path)
    assert "driver 1.2.0" in words(next((site / "devices").glob("npusim-1-*.html")))
    assert not broken_links(site, "devices/*.html", "models/*.html", "runs.html")
