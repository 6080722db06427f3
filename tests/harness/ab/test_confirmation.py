"""What becomes of a suspicion: every outcome, and no measurement where nothing could be learnt."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest

from torchgauge.harness.ab.confirmation import (
    Confirmer,
    contradiction,
    judged,
    moved_with,
)
from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.results.trends.change_points import ChangePoint
from torchgauge.results.trends.trend import Night, Series, Suspicion
from torchgauge.results.trends.trend_outcomes import TrendState

DAY = 86_400.0


class FixedClock:
    def now(self) -> float:
        return 7.0

    def steady(self) -> float:
        return 0.0


def night(number: int, value: float, version: str, python: str = sys.executable) -> Night:
    return Night(f"run-{number}", number * DAY, value, version, f"env-{version}", python)


def suspicion(size: float = 0.10, good: str = "2.1", suspect: str = "2.2", **more) -> Suspicion:
    """A change of ``size`` between night 19 and night 20."""
    nights = tuple(
        night(n, 1.0 if n < 20 else 1.0 + size, good if n < 20 else suspect, **more) for n in range(30)
    )
    series = Series("k" * 16, "toy/sum:inference:float32:b1:eager@fake", "toy", "sum", "fake", "eager",
                    "latency", "s", "lower", "m", nights)  # fmt: skip
    change = ChangePoint(20, 20, 20, 21, size, 1.0, 1.0 + size, 9.0)
    return Suspicion(series, change, nights[19], nights[20])


def reference(step: float, count: int = 30) -> Series:
    """The pinned build's series, which moves by ``step`` at the same night."""
    nights = tuple(night(n, 5.0 * (1.0 + step if n >= 20 else 1.0), "2.0") for n in range(count))
    return Series("k" * 16, "c", "toy", "sum", "fake", "eager", "latency", "s", "lower", "m", nights)


def reading(ratio: float, answer: Answer, width: float = 0.01, base: float | None = 1.0) -> Reading:
    return Reading(answer, ratio, ratio * (1 - width), ratio * (1 + width), base, None, "", "comparison-1")


def confirmer(measured: Reading, pinned: Series | None = None, **more) -> Confirmer:
    versions = iter(("2.1", "2.2"))
    pythons = {"2.1": sys.executable, "2.2": f"{sys.prefix}/bin/python3"}
    more.setdefault("builds", pythons)
    more.setdefault("version_of", lambda _: next(versions))
    return Confirmer(lambda *_: measured, reference=lambda _: pinned, clock=FixedClock(), **more)


@pytest.fixture(autouse=True)
def _two_names_of_one_python():
    """The tests name one interpreter by two paths, as two builds would have."""
    import pathlib

    if not pathlib.Path(sys.prefix, "bin", "python3").exists() or sys.executable.endswith("python3"):
        pytest.skip("needs an environment with bin/python and bin/python3")


def test_builds_that_differ_confirm_it():
    """The outcome has the ratio, its evidence and both runs."""
    outcome = confirmer(reading(1.098, Answer.CHANGED)).confirm(suspicion())
    assert outcome.state is TrendState.CONFIRMED
    assert (outcome.ratio, outcome.comparison, outcome.decided_at) == (1.098, "comparison-1", 7.0)
    assert (outcome.good_run, outcome.suspect_run) == ("run-19", "run-20")


def test_one_build_of_two_commits_is_measured():
    """Packages of one version may differ where they come from the repository."""
    same = suspicion(good="2.1", suspect="2.1")
    assert confirmer(reading(1.1, Answer.CHANGED)).confirm(same).state is TrendState.ENVIRONMENT
    good, suspect = (replace(each, commit=each.run_id) for each in (same.good, same.suspect))
    builds = {good.run_id: sys.executable, suspect.run_id: f"{sys.prefix}/bin/python3"}
    measured = confirmer(reading(1.1, Answer.CHANGED), builds=builds, version_of=lambda _: "2.1")
    assert measured.confirm(replace(same, good=good, suspect=suspect)).state is TrendState.CONFIRMED


def test_a_build_that_could_not_be_made_is_not_confirmable():
    """The reason is in the outcome."""
    outcome = confirmer(reading(1.1, Answer.CHANGED), missing={"run-19": "pip failed"}).confirm(suspicion())
    assert (outcome.state, outcome.reason) == (
        TrendState.NOT_CONFIRMABLE,
        "torch 2.1 cannot be measured: pip failed",
    )


@pytest.mark.parametrize(("found", "same"), [("2.1", True), ("2.1+cu1", True), ("2.2", False), ("", False)])
def test_a_package_may_lack_what_torch_says_behind_the_plus(found, same):
    """Of one build the package says 2.1 and torch 2.1+cu1; two such suffixes are two builds."""
    versions = {sys.executable: found, f"{sys.prefix}/bin/python3": "2.2"}
    told = suspicion(good="2.1+cu1" if found else "2.1")
    builds = {told.good.torch_version: sys.executable, "2.2": f"{sys.prefix}/bin/python3"}
    outcome = confirmer(reading(1.1, Answer.CHANGED), builds=builds, version_of=versions.get).confirm(told)
    assert (outcome.state is TrendState.CONFIRMED) is same


def test_builds_that_do_not_differ_do_not():
    """The same builds side by side are equal: not reproduced."""
    outcome = confirmer(reading(1.001, Answer.SAME), reference(0.0)).confirm(suspicion())
    assert outcome.state is TrendState.NOT_REPRODUCED


def test_a_change_the_other_way_is_no_confirmation():
    """Quicker is not slower."""
    assert confirmer(reading(0.9, Answer.CHANGED)).confirm(suspicion()).state is TrendState.NOT_REPRODUCED


def test_a_small_difference_is_no_confirmation_of_a_large_one():
    """Four per cent side by side are not the change to twice the time, whatever they are; a part of it is."""
    assert judged(suspicion(1.0), reading(1.04, Answer.CHANGED, 0.03), "")[0] is TrendState.NOT_REPRODUCED
    assert judged(suspicion(1.0), reading(1.2, Answer.CHANGED, 0.03), "")[0] is TrendState.CONFIRMED
    assert judged(suspicion(0.1), reading(1.04, Answer.CHANGED, 0.01), "")[0] is TrendState.CONFIRMED
    assert judged(suspicion(-0.5), reading(0.97, Answer.CHANGED, 0.01), "")[0] is TrendState.NOT_REPRODUCED


@pytest.mark.parametrize("size", [1.0, -0.3])
@pytest.mark.parametrize("answer", [Answer.CHANGED, Answer.SAME, Answer.UNCLEAR])
@pytest.mark.parametrize("ratio", [0.5, 1.001, 1.1])
def test_what_we_answer_ourselves_contradicts_nothing(size, answer, ratio):
    """Builds are the same within the tolerance: others that a file calls the same are refused."""
    outcome = confirmer(reading(ratio, answer)).confirm(suspicion(size))
    half = math.sqrt(1.0 + size)
    room = outcome.high >= half if size > 0 else outcome.low <= half
    odd = answer is Answer.SAME and room and not 0.94 < ratio < 1.05
    told = contradiction(outcome, suspicion(size), 0.055)
    assert told == ("a rejected change, although half of it lies within the interval" if odd else "")


@pytest.mark.parametrize(
    ("state", "ratio", "low", "high", "words"),
    [
        (TrendState.NOT_REPRODUCED, 1.98, 1.97, 1.99, "although half of it lies within the interval"),
        (TrendState.NOT_REPRODUCED, 1.98, None, None, "without an interval"),
        (TrendState.CONFIRMED, 1.9, 0.9, 2.5, "that its interval does not support"),
        (TrendState.NOT_REPRODUCED, 1.0, 1.97, 1.99, "outside its interval"),
        (TrendState.NOT_REPRODUCED, None, None, None, "without a ratio"),
        (TrendState.CONFIRMED, None, 0.9, 1.1, "has only one bound"),
        (TrendState.CONFIRMED, 0.5, 0.4, 0.6, "that its interval does not support"),
    ],
)
def test_an_answer_whose_numbers_say_something_else_is_seen_through(state, ratio, low, high, words):
    """A stranger's file may say anything: of a change to twice the time."""
    told = confirmer(reading(2.0, Answer.CHANGED)).confirm(suspicion(1.0))
    lie = replace(told, state=state, ratio=ratio, low=low, high=high)
    assert words in contradiction(lie, suspicion(1.0), 0.05)


def test_a_reference_that_moved_as_well_is_the_environment():
    """The pinned build became slower on the same night, and the builds do not differ."""
    outcome = confirmer(reading(1.001, Answer.SAME), reference(0.09)).confirm(suspicion())
    assert outcome.state is TrendState.ENVIRONMENT
    assert "+9.0%" in outcome.reason


def test_a_last_good_build_that_is_slow_today_is_the_environment():
    """Without a reference the last good build is one: it is where the suspect was."""
    outcome = confirmer(reading(1.0, Answer.SAME, base=1.10)).confirm(suspicion())
    assert outcome.state is TrendState.ENVIRONMENT
    assert "the last good build, measured again, differs by" in outcome.reason


def test_an_interval_without_room_for_the_change_decides():
    """Undecided about 3 % is decided about 10 %; wide intervals are neither."""
    assert judged(suspicion(), reading(1.01, Answer.UNCLEAR, 0.02), "")[0] is TrendState.NOT_REPRODUCED
    assert judged(suspicion(), reading(1.04, Answer.UNCLEAR, 0.08), "")[0] is TrendState.NOT_CONFIRMABLE
    assert judged(suspicion(-0.1), reading(0.99, Answer.UNCLEAR, 0.02), "")[0] is TrendState.NOT_REPRODUCED


def never(*_: object) -> Reading:
    pytest.fail("nothing could be learnt from this measurement")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"python": "/gone/python"}, "/gone/python no longer exists"),
        ({"python": ""}, "did not record the interpreter"),
        ({"python": sys.executable}, "now; try: --build 2.1=PYTHON"),
    ],
)
def test_a_build_that_is_gone_is_not_confirmable(more, words):
    """An interpreter that is gone, unknown or has another torch by now: said, with the way to name one."""
    found = Confirmer(never, version_of=lambda _: "3.0").confirm(suspicion(**more))
    assert found.state is TrendState.NOT_CONFIRMABLE
    assert words in found.reason


def test_one_build_on_both_nights_cannot_have_changed():
    """Equal environments are one build: the environment did it, whatever moved."""
    found = Confirmer(never).confirm(suspicion(good="2.2", suspect="2.2"))
    assert found.state is TrendState.ENVIRONMENT
    assert "both nightly runs used build" in found.reason


def test_one_interpreter_for_both_builds_is_refused():
    """Two labels for one interpreter compare nothing."""
    found = Confirmer(never, builds={"2.1": sys.executable, "2.2": sys.executable},
                      version_of=lambda _: next(versions))  # fmt: skip
    versions = iter(("2.1", "2.2"))
    outcome = found.confirm(suspicion())
    assert outcome.state is TrendState.NOT_CONFIRMABLE
    assert "have the same interpreter" in outcome.reason


def test_a_reference_that_moved_otherwise_explains_nothing():
    """Half of the change in its direction is the least; too few nights say nothing."""
    assert moved_with(suspicion(), reference(0.02)) == ""
    assert moved_with(suspicion(), reference(-0.10)) == ""
    assert moved_with(suspicion(), reference(0.10, count=20)) == ""
    assert moved_with(suspicion(), None) == ""
