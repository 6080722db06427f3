"""Several nights through their commands: what they suspect is measured again, and absence is never green."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from replayed_nights import BUILD, MODELS, PLUGIN, SOURCE, Nights, copied, measured, times

from torchgauge import registry
from torchgauge.records import Cause, Modifier, Result, Status
from torchgauge.results.trends.trend_findings import TrendFindings, read_findings
from torchgauge.results.trends.trend_outcomes import TrendState, read_outcomes

FACTOR = 20.0
SLOW, SAME = BUILD.format(factor=FACTOR), BUILD.format(factor=1)
FAILING = "echo the wheel is gone >&2; exit 1\n"
DYING = """kill -9 "$(cut -d' ' -f4 "/proc/$PPID/stat")"; sleep 60"""
"""Above the shell stands its keeper, and above that the command."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    """Twenty calm nights of two models, from one that was measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        patch.setenv("PYTHONPATH", f"{SOURCE}:{PLUGIN}")
        patch.delenv("GITHUB_ACTIONS", raising=False)
        registry._installed.cache_clear()
        found = Nights(tmp_path_factory.mktemp("nights"))
        found.configure(*MODELS)
        yield measured(found)
    registry._installed.cache_clear()


@pytest.fixture
def nights(known: Nights, tmp_path: Path) -> Nights:
    return copied(known, tmp_path / "repository")


@pytest.fixture(scope="module")
def suspected(known: Nights, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """One model takes twenty times as long for two nights: the second night suspects it."""
    nights = copied(known, tmp_path_factory.mktemp("suspected") / "repository")
    slower = times(FACTOR, "steady")
    first = nights.night(slower)
    assert first.exit_code == 0, first.output  # one night is no level
    second = nights.night(slower)
    assert second.exit_code == 3
    assert "undecided: " in second.output
    assert "and not measured again: 1 case" in second.output
    return nights


@pytest.fixture
def slowed(suspected: Nights, tmp_path: Path) -> Nights:
    return copied(suspected, tmp_path / "repository")


def test_a_suspicion_is_measured_by_the_night_and_stays_red_until_it_recovers(slowed: Nights) -> None:
    """On the machine's own copy of the history; the answer comes back, and every later night knows it."""
    (leg,) = slowed.legs()
    assert (leg["pool"], leg["runs_on"], leg["install"]) == (
        "bench",
        ["self-hosted", "tg-bench"],
        "sh build.sh",
    )
    assert (leg["good_sha"], leg["suspect_sha"]) == ("a" * 40, "b" * 40)
    done = slowed.confirm(leg, SAME, SLOW)
    assert done.returncode == 0, done.stderr
    assert "CONFIRMED: measured again, speed-up" in done.stderr
    assert "CONFIRMED racers/steady" in slowed.settle().output
    (outcome,) = read_outcomes(slowed.store)
    assert outcome.low is not None
    assert outcome.low > 1.0
    (shown,) = (read_findings(slowed.store) or TrendFindings()).standing(read_outcomes(slowed.store))
    assert (shown.state, shown.case_id) == (
        TrendState.CONFIRMED,
        outcome.case_id,
    )  # as the dashboard reads it
    evidence = slowed.folder / f"confirmed-{slowed.number}" / "set" / "comparisons" / outcome.comparison
    assert (evidence / "journal.jsonl").is_file()
    red = slowed.gate()
    assert (red.exit_code, "confirmed tonight: racers/steady" in red.output) == (1, True)
    later = slowed.night(times(FACTOR, "steady"))
    assert (later.exit_code, "confirmed and not recovered: racers/steady" in later.output) == (1, True)
    assert slowed.legs() == []
    entry = '"racers/steady:*": {metrics: {latency: {action: report, reason: the price of a fix}}}'
    (slowed.folder / "policy.yml").write_text(f"patterns: {{{entry}}}\n")
    assert slowed.gate("--policy", "policy.yml").exit_code == 0
    codes = [slowed.night().exit_code for _ in range(4)]
    assert codes[0] == 1
    assert codes[-1] == 0


def test_what_does_not_repeat_is_closed(slowed: Nights) -> None:
    """Builds that do not differ: the night and the next one are green, and nothing is dispatched again."""
    for _ in range(3):  # beside other work an answer may stay undecided; the next night asks again
        (leg,) = slowed.legs()
        done = slowed.confirm(leg, SAME, SAME)
        assert done.returncode == 0, done.stderr
        slowed.settle()
        (outcome,) = read_outcomes(slowed.store)
        if outcome.state is not TrendState.NOT_CONFIRMABLE:
            break
        assert slowed.night(times(FACTOR, "steady")).exit_code == 3
    assert outcome.state in (TrendState.NOT_REPRODUCED, TrendState.ENVIRONMENT), outcome
    assert slowed.gate().exit_code == 0
    assert slowed.night(times(FACTOR, "steady")).exit_code == 0
    assert slowed.legs() == []


def test_what_cannot_be_confirmed_is_said_every_night_and_tried_again(slowed: Nights) -> None:
    """The suspect build cannot be made: its last words are in each gate, which is not green."""
    for _ in range(2):
        (leg,) = slowed.legs()
        assert slowed.confirm(leg, SAME, FAILING).returncode == 0
        slowed.settle()
        found = slowed.gate("--undecided", "success")
        assert (found.exit_code, "NOT_CONFIRMABLE: racers/steady" in found.output) == (3, True)
        assert slowed.night(times(FACTOR, "steady")).exit_code == 3
    outcomes = read_outcomes(slowed.store)
    assert [each.state for each in outcomes] == [TrendState.NOT_CONFIRMABLE]
    assert "the wheel is gone" in outcomes[0].reason


def test_a_job_that_dies_leaves_the_suspicion_open(slowed: Nights) -> None:
    """Killed while it makes a build: this night and the next suspect the same, and dispatch it again."""
    (leg,) = slowed.legs()
    assert slowed.confirm({**leg, "install": DYING}, SAME, SLOW).returncode == -signal.SIGKILL
    assert "still open: racers/steady" in slowed.settle().output
    assert read_outcomes(slowed.store) == []
    assert slowed.gate().exit_code == 3
    later = slowed.night(times(FACTOR, "steady"))
    assert (later.exit_code, "and not measured again: 1 case" in later.output) == (3, True)
    (again,) = slowed.legs()
    assert (again["good_run"], again["suspect_run"]) == (leg["good_run"], leg["suspect_run"])


def test_one_build_of_one_commit_needs_no_machine(slowed: Nights) -> None:
    """Nothing that could have changed it differs: it was the environment, and no job is dispatched."""
    files = list((slowed.folder / "history" / "runs").glob("*/provenance.json"))
    assert files
    for file in files:
        file.write_text(file.read_text().replace(slowed.good, slowed.suspect))
    assert slowed.legs() == []
    assert slowed.outputs["suspected"] == "true"
    assert "ENVIRONMENT racers/steady" in slowed.settle().output
    assert slowed.gate().exit_code == 0


def test_a_pool_that_is_gone_cannot_confirm(slowed: Nights) -> None:
    """It is said; a pool that tonight merely leaves out is no reason."""
    config = slowed.folder / "torchgauge.yml"
    before = config.read_text()
    config.write_text(before.replace("name: bench", "name: other"))
    slowed.plan()
    assert slowed.legs() == []
    config.write_text(before + before.partition("pools:")[2].replace("bench", "other"))
    assert "still open: racers/steady" in slowed.settle().output
    config.write_text(before.replace("name: bench", "name: other"))
    assert "the change is of pool bench, which torchgauge.yml does not list" in slowed.settle().output
    (outcome,) = read_outcomes(slowed.store)
    assert outcome.state is TrendState.NOT_CONFIRMABLE


def test_evidence_of_no_true_name_is_not_kept(slowed: Nights) -> None:
    """An answer names its A/B run, of which readers make links: a name that is no run's is left out."""
    (leg,) = slowed.legs()
    slowed.confirm(leg, SAME, FAILING)
    file = slowed.folder / f"confirmed-{slowed.number}" / "set" / "outcomes.json"
    told = file.read_text()
    assert told.count('"comparison": ""') == 1
    file.write_text(told.replace('"comparison": ""', '"comparison": "index.html"'))
    slowed.settle()
    (outcome,) = read_outcomes(slowed.store)
    assert (outcome.state, outcome.comparison) == (TrendState.NOT_CONFIRMABLE, "")


def test_an_answer_to_another_question_is_refused(slowed: Nights) -> None:
    """Of another campaign, of a run that is not suspected, or one that confirms nothing."""
    (leg,) = slowed.legs()
    slowed.confirm(leg, SAME, FAILING)
    file = slowed.folder / f"confirmed-{slowed.number}" / "set" / "outcomes.json"
    told = file.read_text()
    for old, new, words in (
        ('"campaign_id": "2026', '"campaign_id": "2025', "the set is not from campaign 2026"),
        (leg["suspect_run"], "another-run", "not, or no longer, suspected"),
        ('"not_confirmable"', '"confirmed"', "without a ratio"),
        ('"not_confirmable"', '"not_reproduced"', "without a ratio"),
        ('"not_confirmable"', '"environment"', "without a ratio"),
        ('"pool": "bench"', '"pool": "other"', "belongs to another pool"),
        ("{", "[", "refused set"),
    ):
        assert old in told
        file.write_text(told.replace(old, new))
        assert words in slowed.settle().output
    assert read_outcomes(slowed.store) == []


ENDINGS = {
    "skipped": {"status": Status.SKIPPED, "cause": Cause.MISSING_PACKAGE, "reason": "no package"},
    "unsupported": {"status": Status.UNSUPPORTED, "reason": "not on this device"},
    "degraded": {"modifiers": (Modifier.DEGRADED,), "facts": (("degraded", "nothing was captured"),)},
}


@pytest.mark.parametrize(("ended", "code"), [("skipped", 3), ("unsupported", 3), ("degraded", 1)])
def test_a_night_in_which_nothing_was_measured_is_not_green(nights: Nights, ended: str, code: int) -> None:
    """However its cases ended; the next night that measures them is green again."""

    def spoilt(row: Result) -> Result:
        without = {} if ended == "degraded" else {"measurements": (), "summaries": (), "accuracy": None}
        return replace(row, **ENDINGS[ended], **without)

    found = nights.night(spoilt)
    assert (found.exit_code, f"measured before, {ended} now: 2 cases" in found.output) == (code, True)
    assert "none of 2 cases was measured" in found.output
    assert nights.night().exit_code == 0


def test_half_of_the_cases_of_the_night_before_are_missed(nights: Nights) -> None:
    """A campaign that plans fewer cases says so for a night."""
    nights.configure(MODELS[0])
    found = nights.night()
    assert (found.exit_code, "measured before, not planned now: 1 case" in found.output) == (3, True)
    assert nights.night().exit_code == 0
