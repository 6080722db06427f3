"""What a package reports is kept: declared metrics as such, others with a note, nonsense as a status."""

from __future__ import annotations

import json
import os
import sysconfig
import venv
from pathlib import Path

import pytest

from torchgauge.records import Better, Status

SUITE = r"""
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
        names = "declared unknown unit name twice below escapes text fact nothing number many long last"
        return tuple(
            ModelEntry(name, ("smoke",), {"check": 1}, framework="check", dtypes=("float32",))
            for name in names.split()
        )


SUITE = Suite()
RATE = Metric("acme_rate", "1/s", Better.HIGHER, "what Acme counts", compared=Compared.RATIO, tolerance=0.1)


def check(workload, session):
    from torchgauge.errors import UsageError
    from torchgauge.suites.check import CheckOutcome

    said = {
        "declared": [Measurement("acme_rate", "1/s", (3.0, 1.0, 2.0))],
        "unknown": [Measurement("acme_tokens", "1/s", (3.0,)), Measurement("acme_rate", "1/s", (5.0,))],
        "unit": [Measurement("acme_rate", "1/h", (3.0,)), Measurement("acme_late", "s", (4.0,))],
        "name": [Measurement("../acme rate", "s", (3.0,))],
        "twice": [Measurement("acme_rate", "1/s", (3.0,)), Measurement("acme_rate", "1/s", (4.0,))],
        "below": [Measurement("acme_rate", "1/s", (3.0, -1.0))],
        "escapes": [],
        "text": ["acme_rate"],
        "fact": [],
        "many": [Measurement("acme_rate", "1/s", tuple(map(float, range(20_001))))],
        "long": [],
        "last": [],
    }
    if workload.model == "nothing":
        return None
    if workload.model == "escapes":
        raise UsageError("\x1b[2Kacme\rforged: pass\nin two lines")
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
    "below",
    "escapes",
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
    wrong = set(NAMES) - {"declared", "unknown", "last"}
    assert {name for name, row in rows.items() if row.status is Status.ERROR} == wrong
    assert {name for name, row in rows.items() if row.status is Status.PASS} == set(NAMES) - wrong
    (rate,) = rows["declared"].summaries
    assert (rate.metric, rate.unit, rate.better, rate.median) == ("acme_rate", "1/s", Better.HIGHER, 2.0)
    assert "undeclared" not in dict(rows["declared"].facts)
    tokens, known = rows["unknown"].summaries
    assert (tokens.metric, tokens.better, tokens.median) == ("acme_tokens", Better.NEITHER, 3.0)
    assert known.better is Better.HIGHER
    note = dict(rows["unknown"].facts)["undeclared"]
    assert "which is never below 0" in rows["below"].reason
    assert rows["escapes"].reason.startswith("acme forged: pass in two lines")
    assert "\x1b" not in done.stderr
    assert "acme_tokens" in note
    assert "suite acme" in note
    assert all("acme" in rows[name].reason for name in wrong), [rows[name].reason for name in wrong]
    assert "1/h" in rows["unit"].reason
    assert "acme_late" in dict(rows["unit"].facts)["undeclared"]
    assert "NOT_THERE" in dict(rows["unit"].facts)["undeclared"]
    assert rows["unit"].measurements[0].samples == (4.0,)


@pytest.mark.torch
def test_metrics_of_another_interpreter_are_known_here(sandbox, acme: str, tmp_path: Path) -> None:
    """Where the package is installed beside the target's torch alone, its metrics have their meaning too."""
    there = tmp_path / "there"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(there)
    (site,) = there.glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    for each in Path(acme).iterdir():
        (site / each.name).symlink_to(each)
    words = ("acme", "--models", "declared,unknown,name", "--mode", "check", "--device", "cpu")
    done = sandbox.measure(*words, "--config", "eager", "--python", str(there / "bin" / "python"))
    assert done.returncode == 1, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    (rate,) = rows["declared"].summaries
    assert (rate.metric, rate.unit, rate.better) == ("acme_rate", "1/s", Better.HIGHER)
    assert "undeclared" not in dict(rows["declared"].facts)
    assert "acme_tokens" in dict(rows["unknown"].facts)["undeclared"]
    assert rows["name"].status is Status.ERROR
    assert "suite acme" in rows["name"].reason


BACKEND = """
import os

from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.records import Better, Measurement, Metric
from torchgauge.records.metrics import Compared

RULE = {"compared": Compared.RATIO, "tolerance": 0.1, "launches": 2}
RATE = Metric("acme_rate", "1/s", Better.HIGHER, "for tests", **RULE)
BACKEND = BackendDescriptor("acme", "for tests", __name__)


def prepare(subject, configuration, session):
    from torchgauge.harness.backends.prepared import Prepared

    rate = float(os.environ["ACME_RATE"])
    call = lambda *args, **kwargs: subject.module(*args, **kwargs)
    return Prepared(call, measurements=[Measurement("acme_rate", "1/s", (rate,) * 6)])
"""


@pytest.mark.torch
def test_a_metric_of_a_package_is_judged_where_two_builds_are_compared(sandbox, tmp_path: Path) -> None:
    """By the rule and in the direction that the package declares: half of a rate is a regression."""
    info = tmp_path / "plugin" / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "acme_backend.py").write_text(BACKEND)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[torchgauge.backends]\nacme = acme_backend:BACKEND\n"
        "[torchgauge.metrics]\nacme_rate = acme_backend:RATE\n"
    )
    (tmp_path / "mine.yaml").write_text("configurations:\n  - {name: mine, doc: x, backend: acme}\n")
    done = sandbox.run(
        *("ab", "toy", "--models", "mlp", "--device", "cpu", "--config", "mine", "--json"),
        *("--config-file", str(tmp_path / "mine.yaml"), "--base-env", "ACME_RATE=10"),
        *("--head-env", "ACME_RATE=5", "--max-launches", "2", "--no-control", *sandbox.quick),
        *("--store", str(sandbox.store_path)),
        PYTHONPATH=os.pathsep.join([sandbox.environment["PYTHONPATH"], str(info.parent)]),
    )
    found = {each["metric"]: each for each in json.loads(done.stdout)["verdicts"]}
    assert (found["acme_rate"]["verdict"], found["acme_rate"]["ratio"]) == ("regression", 0.5), done.stderr
