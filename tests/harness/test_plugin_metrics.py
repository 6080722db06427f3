"""What a package reports is kept: declared metrics as such, others with a note, nonsense as a status."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchgauge.records import Better, Status

SUITE = """
from torchgauge.records import Better, Measurement, Metric
from torchgauge.records.metrics import Compared
from torchgauge.suites.suite import ModelEntry


class Suite:
    name = "acme"
    doc = "For tests."
    builder = "acme:check"
    preload = ()
    install_hint = ""
    digest = "0123456789abcdef"
    unavailable = None
    environment = {}
    notes = ()

    def models(self):
        names = "declared unknown unit name twice text fact nothing number many long last".split()
        return tuple(
            ModelEntry(name, ("smoke",), {"check": 1}, framework="check", dtypes=("float32",))
            for name in names
        )


SUITE = Suite()
RATE = Metric("acme_rate", "1/s", Better.HIGHER, "what Acme counts", compared=Compared.RATIO, tolerance=0.1)


def check(workload, session):
    from torchgauge.suites.check import CheckOutcome

    said = {
        "declared": [Measurement("acme_rate", "1/s", (3.0, 1.0, 2.0))],
        "unknown": [Measurement("acme_tokens", "1/s", (3.0,)), Measurement("acme_rate", "1/s", (5.0,))],
        "unit": [Measurement("acme_rate", "1/h", (3.0,)), Measurement("acme_late", "s", (4.0,))],
        "name": [Measurement("../acme rate", "s", (3.0,))],
        "twice": [Measurement("acme_rate", "1/s", (3.0,)), Measurement("acme_rate", "1/s", (4.0,))],
        "text": ["acme_rate"],
        "fact": [],
        "many": [Measurement("acme_rate", "1/s", tuple(map(float, range(20_001))))],
        "long": [],
        "last": [],
    }
    if workload.model == "nothing":
        return None
    if workload.model == "number":
        return CheckOutcome(measurements=7)
    facts = {"fact": (("told", [1, 2]),), "long": (("told", "x" * 70_000),)}.get(workload.model, ())
    return CheckOutcome(measurements=tuple(said[workload.model]), facts=facts)
"""
NAMES = (
    "declared",
    "unknown",
    "unit",
    "name",
    "twice",
    "text",
    "fact",
    "nothing",
    "number",
    "many",
    "long",
    "last",
)
POINTS = """[torchgauge.suites]
acme = acme:SUITE
[torchgauge.metrics]
acme_rate = acme:RATE
acme_late = acme:NOT_THERE
"""


@pytest.fixture
def acme(tmp_path: Path) -> str:
    """A PYTHONPATH entry with a package that has checks and metrics of its own."""
    folder = tmp_path / "plugin"
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "acme.py").write_text(SUITE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return str(folder)


@pytest.mark.torch
def test_what_a_package_reports_of_its_own_never_ends_a_run(sandbox, acme: str) -> None:
    """One run with every kind: each check has its row, and what was measured is in it."""
    path = os.pathsep.join([sandbox.environment["PYTHONPATH"], acme])
    done = sandbox.measure("acme", "--mode", "check", "--device", "cpu", "--config", "eager", PYTHONPATH=path)
    assert done.returncode == 1, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    assert set(rows) == set(NAMES)
    wrong = {"unit", "name", "twice", "text", "fact", "nothing", "number", "many", "long"}
    assert {name for name, row in rows.items() if row.status is Status.ERROR} == wrong
    assert {name for name, row in rows.items() if row.status is Status.PASS} == set(NAMES) - wrong
    (rate,) = rows["declared"].summaries
    assert (rate.metric, rate.unit, rate.better, rate.median) == ("acme_rate", "1/s", Better.HIGHER, 2.0)
    assert "undeclared" not in dict(rows["declared"].facts)
    tokens, known = rows["unknown"].summaries
    assert (tokens.metric, tokens.better, tokens.median) == ("acme_tokens", Better.NEITHER, 3.0)
    assert known.better is Better.HIGHER
    note = dict(rows["unknown"].facts)["undeclared"]
    assert "acme_tokens" in note
    assert "suite acme" in note
    assert all("acme" in rows[name].reason for name in wrong), [rows[name].reason for name in wrong]
    assert "1/h" in rows["unit"].reason
    assert "acme_late" in dict(rows["unit"].facts)["undeclared"]
    assert "NOT_THERE" in dict(rows["unit"].facts)["undeclared"]
    assert rows["unit"].measurements[0].samples == (4.0,)
