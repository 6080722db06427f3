"""The noisy search: few tests, the right build, and never a build made of nothing."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.errors import DataFileError, UsageError
from torchgauge.harness.ab.reading import Answer, Reading, reading_of
from torchgauge.harness.bisect.bisection import Bisection, step_line
from torchgauge.harness.bisect.builds import (
    Build,
    BuildFailedError,
    Builds,
    load_builds,
    make_build,
    named_builds,
)
from torchgauge.harness.bisect.search import Ending, begin, search
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.store import Store


class Simulated:
    """A comparison with the errors of the real one: an interval about the truth, and a share of lies."""

    def __init__(
        self, culprit: int, effect: float, seed: int, *, spread: float = 0.01, lies: float = 0.0
    ) -> None:
        self.culprit, self.effect, self.spread, self.lies = culprit, effect, spread, lies
        self.random = random.Random(seed)
        self.asked: list[int] = []

    def __call__(self, build: int) -> Reading:
        self.asked.append(build)
        true = math.log1p(self.effect) if build >= self.culprit else 0.0
        if self.random.random() < self.lies:
            true = math.log1p(self.effect) - true
        measured = self.random.gauss(true, self.spread)
        low, high = measured - 1.96 * self.spread, measured + 1.96 * self.spread
        undecided = Answer.SAME if abs(measured) < 0.02 else Answer.UNCLEAR
        answer = Answer.CHANGED if low > 0 or high < 0 else undecided
        return Reading(answer, *(math.exp(each) for each in (measured, low, high)))


def labels(count: int) -> list[str]:
    return [f"b{number}" for number in range(count)]


@pytest.mark.parametrize("count", [2, 3, 5, 16, 100])
def test_the_culprit_is_found_wherever_it_is(count):
    """With an exact comparison every place is found, in at most log2 n + 3 tests, the ends first."""
    for culprit in {1, 2, count // 2, count - 1} & set(range(1, count)):
        compare = Simulated(culprit, 0.10, 1, spread=0.004)
        ended = search(begin(labels(count)), compare)
        assert ended.ending is Ending.FOUND, ended.explanation()
        assert ended.best()[0] == (culprit,)
        assert compare.asked[0] == count - 1
        assert len(compare.asked) <= math.ceil(math.log2(count)) + 3
        assert ended.explanation().startswith(f"b{culprit} is the first build that differs")


def test_noisy_comparisons_seldom_mislead():
    """Where one comparison in fifty is wrong, nine of ten searches name the culprit and few a wrong build."""
    right = wrong = 0
    for seed in range(300):
        culprit = 1 + seed % 31
        ended = search(begin(labels(32)), Simulated(culprit, 0.05, seed, spread=0.01, lies=0.02))
        if ended.ending is Ending.FOUND:
            right += ended.best()[0] == (culprit,)
            wrong += ended.best()[0] != (culprit,)
        assert ended.tests <= 8
    assert right >= 240
    assert wrong <= 20


def test_ends_that_do_not_differ_end_the_search():
    """One comparison, and it says so."""
    compare = Simulated(99, 0.10, 1, spread=0.002)
    ended = search(begin(labels(8)), compare)
    assert (ended.ending, compare.asked) == (Ending.NOT_REPRODUCED, [7])
    assert "not reproduced" in ended.explanation()


@pytest.mark.parametrize("answer", [Answer.UNCLEAR, Answer.UNUSABLE])
def test_ends_that_cannot_be_told_apart_are_no_result(answer):
    """Undecided ends, or an end that does not run, leave the search incomplete with the reason."""
    ended = search(begin(labels(4)), lambda _: Reading(answer, reason="no torch"))
    assert ended.ending is Ending.INCOMPLETE
    assert "no torch" in ended.explanation()
    assert len(ended.steps) == 1


def test_a_build_that_does_not_run_is_passed_over():
    """Unusable builds away from the change cost no test and change nothing."""
    compare = Simulated(6, 0.10, 1, spread=0.004)

    def sometimes(build: int) -> Reading:
        return Reading(Answer.UNUSABLE, reason="does not build") if build in (3, 9) else compare(build)

    ended = search(begin(labels(12)), sometimes)
    assert (ended.ending, ended.best()[0]) == (Ending.FOUND, (6,))
    assert {step.build for step in ended.skipped} <= {3, 9}


def test_unusable_builds_around_the_change_are_named_together():
    """What no test can tell apart is no finding: incomplete, with all candidates."""
    compare = Simulated(4, 0.10, 1, spread=0.004)

    def sometimes(build: int) -> Reading:
        return Reading(Answer.UNUSABLE, reason="does not build") if build in (3, 4) else compare(build)

    ended = search(begin(labels(8)), sometimes)
    assert ended.ending is Ending.INCOMPLETE
    assert ended.best()[0] == (3, 4, 5)
    assert "b3, b4, b5" in ended.explanation()


def test_a_search_that_stays_unclear_ends():
    """Comparisons that say nothing use up the tests and name nobody."""
    compare = Simulated(3, 0.10, 1, spread=0.004)
    unclear = Reading(Answer.UNCLEAR, reason="busy")
    ended = search(begin(labels(8)), lambda build: compare(build) if build == 7 else unclear)
    assert ended.ending is Ending.INCOMPLETE
    assert ended.tests == ended.limit


def bisection(path: Path, compare, say=lambda _: None) -> Bisection:
    builds = Builds(tuple(Build(f"b{n}", python=sys.executable) for n in range(8)))
    return Bisection(Store.open(path / "store", create=True), builds, "toy/sum", "latency", compare, say)


def test_a_killed_search_goes_on_where_it_was(tmp_path):
    """After a kill in the third comparison, the same command makes that one and not the two before it."""
    real = Simulated(5, 0.10, 1, spread=0.004)
    made: list[str] = []

    def killed(base, head):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(head.label)
        return real(int(head.label[1:]))

    with pytest.raises(KeyboardInterrupt):
        bisection(tmp_path, killed).run()
    said: list[str] = []
    later: list[str] = []

    def goes_on(base, head):
        later.append(head.label)
        return real(int(head.label[1:]))

    second = bisection(tmp_path, goes_on, said.append)
    ended = second.run()
    assert (ended.ending, ended.best()[0]) == (Ending.FOUND, (5,))
    assert [step.label for step in ended.steps] == made + later
    assert said[0].startswith("going on after 2 steps")
    assert bisection(tmp_path, lambda *_: pytest.fail("measured again")).run() == ended
    assert "b" in step_line(ended, 0)
    later.clear()
    assert bisection(tmp_path, goes_on).run(fresh=True).ending is Ending.FOUND
    assert later[0] == "b7"


def test_a_damaged_state_says_what_to_do(tmp_path):
    """A state that is no state is refused with the way out."""
    one = bisection(tmp_path, lambda *_: Reading(Answer.SAME, 1.0, 0.99, 1.01))
    one.run()
    one.path.write_text("{}")
    with pytest.raises(DataFileError, match="--fresh"):
        one.run()


BAD_FILES = {
    "builds: [{label: a, python: x}, {label: b, pyhton: y}]": "did you mean python",
    "builds: [{label: a, python: x}]": "but 1 given",
    "builds: [{label: a, python: x}, {label: a, python: y}]": "two builds have the name 'a'",
    "builds: [{label: a, python: x}, {label: b, python: x}]": "both ends, 'a' and 'b', are the same",
    "builds: [{label: a, python: x}, {label: b, commit: c}]": "no command `build`",
    "builds: [{label: a, spec: x}, {label: b, spec: y}]\ninstall: [pip, '{wheel}']": "unknown placeholder",
    "builds: [{label: a, python: x}, {label: b, commit: 1234567}]": "write it in quotes",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_file_of_builds_is_strict(tmp_path, text):
    """Each mistake is refused with the file and what is wrong."""
    path = tmp_path / "builds.yaml"
    path.write_text(text)
    with pytest.raises(DataFileError) as raised:
        load_builds(path)
    assert BAD_FILES[text] in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("arguments", [["a"], ["=x"], ["a=/no/such/python", "b=x"], [f"a={sys.executable}"]])
def test_builds_on_the_command_line_are_checked(arguments):
    with pytest.raises(UsageError):
        named_builds(arguments)


def test_a_commit_is_built_once_and_a_failure_is_said(tmp_path):
    """The build command runs in the source folder, leaves an interpreter, and is not repeated."""
    source = tmp_path / "source"
    source.mkdir()
    script = "import os, sys; open('log', 'a').write(sys.argv[1])"
    script += "; os.makedirs(sys.argv[2] + '/bin', exist_ok=True)"
    script += "; os.symlink(sys.executable, sys.argv[2] + '/bin/python'); sys.exit(sys.argv[1] == 'bad')"
    builds = Builds(
        (Build("one", commit="good"), Build("two", commit="bad")),
        build=(sys.executable, "-c", script, "{commit}", "{folder}"),
        source=str(source),
    )
    python = make_build(builds, builds.builds[0], tmp_path / "made")
    assert subprocess.run([python, "-c", ""], check=False).returncode == 0
    assert make_build(builds, builds.builds[0], tmp_path / "made") == python
    assert (source / "log").read_text() == "good"
    with pytest.raises(BuildFailedError, match="ended with status 1"):
        make_build(builds, builds.builds[1], tmp_path / "made")


def test_a_build_that_fails_is_skipped_with_its_reason(tmp_path):
    """The search asks for the next build and keeps the reason in the step."""
    builds = Builds(
        (
            Build("b0", python=sys.executable),
            Build("b1", python="/no/such/python"),
            Build("b2", python=sys.prefix),
        )
    )
    real = Simulated(2, 0.10, 1, spread=0.004)
    store = Store.open(tmp_path / "store", create=True)
    ended = Bisection(store, builds, "toy/sum", "latency", lambda base, head: real(int(head.label[1:]))).run()
    assert ended.ending is Ending.INCOMPLETE
    assert "no such file" in ended.skipped[0].reading.reason
    assert ended.best()[0] == (1, 2)


SLOW = """
import sys
def local(frame, event, argument):
    return local
sys.settrace(lambda frame, event, argument: local if frame.f_code.co_name == "step" else None)
"""


@pytest.mark.full
def test_a_real_search_between_interpreters(tmp_path):
    """Four interpreters, of which the last two are made slow: the real comparison finds the third."""
    from torchgauge.harness.ab.quick_measure import QuickCase, measure_case

    builds = []
    for number in range(4):
        folder = tmp_path / f"build{number}"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        if number >= 2:
            (next(folder.glob("lib/python*/site-packages")) / "sitecustomize.py").write_text(SLOW)
        builds.append(Build(f"b{number}", python=str(folder / "bin" / "python")))
    store = Store.open(tmp_path / "store", create=True)
    case = QuickCase("toy/sum", "fake")
    compare = measure_case(store, case, "latency")
    ended = Bisection(store, Builds(tuple(builds)), case.text, "latency", compare).run()
    assert ended.ending is Ending.FOUND, ended.explanation()
    assert ended.best()[0] == (2,)
    assert all(step.reading.comparison for step in ended.steps)


def test_a_build_that_cannot_run_is_no_likeliest_one_alone():
    """The change came in with it or with the next one that runs: both are named."""
    answers = {3: Answer.CHANGED, 1: Answer.SAME, 2: Answer.UNUSABLE}
    ended = search(begin(labels(4)), lambda build: Reading(answers[build], reason="said"))
    assert (ended.ending, ended.best()[0]) == (Ending.INCOMPLETE, (2, 3))
    assert "likeliest b2 or b3 (" in step_line(ended, len(ended.steps) - 1)
    begun = (
        begin(labels(4)).with_reading(3, Reading(Answer.CHANGED)).with_reading(2, Reading(Answer.UNUSABLE))
    )
    assert begun.explanation().startswith("b2 or b3 is the likeliest, at 67%; ")


@pytest.mark.parametrize("culprit", [1, 7])
def test_a_change_of_status_is_found_without_any_ratio(culprit):
    """A reading that says changed or alike is enough."""

    def compare(build: int) -> Reading:
        return Reading(Answer.CHANGED if build >= culprit else Answer.SAME, reason="head ends with crash")

    ended = search(begin(labels(8)), compare)
    assert (ended.ending, ended.best()[0]) == (Ending.FOUND, (culprit,))


@pytest.mark.parametrize(
    ("verdict", "reason", "answer"),
    [
        (Verdict.BROKEN, "head ends with crash in measure", Answer.CHANGED),
        (Verdict.NOT_COMPARABLE, "both fail: base ends with crash; head ends with crash", Answer.SAME),
        (Verdict.NOT_COMPARABLE, "head ends with infra", Answer.UNUSABLE),
        (Verdict.UNDECIDED, "in one of 3 launches, and did not recur", Answer.UNCLEAR),
    ],
)
def test_the_status_is_read_as_any_metric(verdict, reason, answer):
    """For a bisection on it; on a time, a build that does not pass is passed over."""
    status = MetricVerdict("k", "toy/sum", "b", "h", "status", "", "exact", verdict, reason)
    assert reading_of([status], "status").answer is answer
    assert reading_of([status], "latency").answer is Answer.UNUSABLE
