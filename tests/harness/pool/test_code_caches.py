"""The parent's half of compiled code: which cache a job uses, and what a crash or a pass means for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.harness.compile_cache import FACT, builds, folder_name
from torchgauge.harness.pool.code_caches import CodeCaches
from torchgauge.harness.pool.derived_status import DerivedStatuses
from torchgauge.records import (
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Environment,
    Group,
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)

EAGER, COMPILED = (
    PlannedCase(
        Case(Workload("toy", "mlp"), Configuration(name, name), DeviceTarget("any")),
        Tolerance(0.0, 0.0, 1.0, "none"),
    )
    for name in ("eager", "inductor")
)
GROUP = Group("00", (EAGER, COMPILED))
HERE = Environment("any", (("torch.version", "2.13.0"),))


def caches(tmp_path: Path, cold: str = "none", folder: str | None = "kept") -> CodeCaches:
    """The caches of a run of the group, opened."""
    where = None if folder is None else str(tmp_path / folder)
    settings = replace(RunSettings(), cold_compile=cold, compile_cache=where)
    made = CodeCaches(Plan("run", 0.0, ("torchgauge",), settings, (GROUP,)), tmp_path / "shared_budget")
    assert made.open(HERE, 1.0) == ""
    return made


def ended(planned: PlannedCase, status: Status, **facts: str) -> Outcome:
    """An outcome of ``planned``."""
    cause = Cause.SIGNAL if status is Status.CRASH else None
    return Outcome(
        planned.case.key, status, Phase.COMPILE, cause, "signal 7", facts=tuple(sorted(facts.items()))
    )


@pytest.mark.parametrize(("cold", "expected"), [("all", True), ("none", False)])
def test_a_job_is_told_where_its_code_is(tmp_path, cold, expected) -> None:
    """The folder of the build, whether the group compiles cold, and the shared budget."""
    made = caches(tmp_path, cold)
    (build,) = builds(tmp_path / "kept")
    assert made.of_group(GROUP) == {
        "kept": str(build.folder),
        "cold": expected,
        "shared_budget": str(tmp_path / "shared_budget"),
    }
    assert made.of_fresh(ended(COMPILED, Status.PASS, **{FACT: "kept"})) == {"kept": str(build.folder)}
    assert made.of_fresh(ended(COMPILED, Status.PASS, **{FACT: "empty"})) == {"kept": ""}
    made.close()


def test_without_a_folder_nothing_is_kept(tmp_path) -> None:
    """No folder of caches, no folder in the job, and nothing to take over or give back."""
    made = caches(tmp_path, folder=None)
    assert made.of_group(GROUP)["kept"] == ""
    made.keep([(COMPILED, ended(COMPILED, Status.PASS))], tmp_path)
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_a_note(tmp_path) -> None:
    """The run goes on without."""
    (tmp_path / "kept").touch()
    settings = replace(RunSettings(), compile_cache=str(tmp_path / "kept"))
    made = CodeCaches(Plan("run", 0.0, ("torchgauge",), settings, (GROUP,)), tmp_path / "shared_budget")
    assert "no compile cache is kept" in made.open(HERE, 1.0)
    assert made.of_group(GROUP)["kept"] == ""


def test_a_crash_with_kept_code_is_tried_again_without(tmp_path) -> None:
    """Once, and the row says why; what crashes with an empty cache is believed."""
    made = caches(tmp_path)
    derived = DerivedStatuses({COMPILED.case.key: ended(COMPILED, Status.CRASH)}, charged=COMPILED.case.key)
    made.take_back(GROUP.cases, derived, GROUP)
    assert (derived.outcomes, derived.again, derived.charged) == ({}, [COMPILED], "")
    assert made.of_group(GROUP)["kept"] == ""
    passed = made.said(ended(COMPILED, Status.PASS, **{FACT: "empty"}))
    assert dict(passed.facts)[FACT] == "empty, after the kept one failed: signal 7"
    again = DerivedStatuses({COMPILED.case.key: ended(COMPILED, Status.CRASH)})
    made.take_back(GROUP.cases, again, GROUP)
    assert again.outcomes[COMPILED.case.key].status is Status.CRASH
    made.close()


@pytest.mark.parametrize(
    ("cold", "planned", "status"),
    [
        ("all", COMPILED, Status.CRASH),
        ("none", EAGER, Status.CRASH),
        ("none", COMPILED, Status.TIMEOUT),
    ],
)
def test_other_ends_are_believed(tmp_path, cold, planned, status) -> None:
    """A crash of an empty cache's code or of eager, and a timeout, are not the kept cache's."""
    made = caches(tmp_path, cold)
    derived = DerivedStatuses({planned.case.key: ended(planned, status)})
    made.take_back(GROUP.cases, derived, GROUP)
    assert planned.case.key in derived.outcomes
    made.close()


@pytest.mark.parametrize(
    ("status", "said", "comes", "replaces"),
    [
        (Status.PASS, "empty", True, False),
        (Status.PASS, "empty, after the kept one failed: x", True, True),
        (Status.FAIL_ACCURACY, "empty", False, False),
        (Status.PASS, "kept", False, False),
    ],
)
def test_what_passed_serves_the_next_night(tmp_path, status, said, comes, replaces) -> None:
    """Only code of passing cases comes; it replaces what is there where that has failed."""
    made = caches(tmp_path)
    name = folder_name(COMPILED.case.configuration)
    fresh, kept = tmp_path / "fresh" / name, made.kept.folder / name
    for folder, text in ((fresh, "new"), (kept, "old")):
        folder.mkdir(parents=True)
        (folder / "both.so").write_text(text)
    (fresh / "one.so").write_text("new")
    made.keep([(COMPILED, ended(COMPILED, status, **{FACT: said}))], tmp_path / "fresh")
    assert (kept / "one.so").exists() is comes
    assert (kept / "both.so").read_text() == ("new" if replaces else "old")
    made.close()
