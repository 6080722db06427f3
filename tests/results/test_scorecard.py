"""The quality scorecard: what is measured, what is declared, what stays unknown, and when a level changes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import scorecard_store as made

from torchgauge.cli.main import cli
from torchgauge.errors import DataFileError, UsageError
from torchgauge.records import Modifier, Status, Workload
from torchgauge.results.scorecard.card import Card, Scored, Source
from torchgauge.results.scorecard.gathering import scorecards
from torchgauge.results.scorecard.levels import level_history, median, range_text
from torchgauge.results.scorecard.releases import Release, release_in
from torchgauge.results.scorecard.scorecard_file import bundled_scorecard
from torchgauge.results.scorecard.text import as_plain

FILE = bundled_scorecard()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Card:
    """The card of a device of which everything measured is there and good, and nothing is declared."""
    path = tmp_path_factory.mktemp("whole") / "store"
    made.nights(path)
    return scorecards([made.everything(path)], ["other"]).cards[0].card


def card(path: Path, **parts: object) -> Card:
    """The card of a store with everything but ``parts``."""
    return scorecards([made.some(path, **parts)], ["other"]).cards[0].card  # type: ignore[arg-type]


def item(of: Card, name: str) -> Scored:
    """One item of a card."""
    return next(each for each in of.items if each.item.name == name)


def told(of: Card, name: str) -> tuple[str, int, int]:
    """Its source, its points, and the points that are possible."""
    found = item(of, name)
    return found.source.value, found.points, found.at_most


def test_at_least_58_points_are_computed_from_rows(whole):
    """65 with all rows there; 59 without torchgauge's checks in the place of PyTorch's unit tests."""
    measured = [each for each in whole.items if each.source is Source.MEASURED]
    assert {each.item.name for each in measured} == {e.name for e in FILE.items if e.measured is not None}
    assert (whole.points(Source.MEASURED), whole.points(Source.DECLARED)) == (65, 0)
    assert sum(e.points for e in measured if e.item.name != "testing.unit") >= 58
    assert all(each.because for each in measured)


def test_an_empty_store_shows_nothing(tmp_path):
    """One check of no item: all is unknown, and every item that rows can show names a command."""
    store = made.publish(tmp_path / "s", "one", [made.row(Workload("conformance", "tensor.copy", "check"))])
    found = scorecards([store]).cards[0].card
    assert (found.lowest, found.highest, found.level) == (0, 124, "")
    assert found.points(Source.MEASURED) == found.points(Source.DECLARED) == 0
    silent = [each.item.name for each in found.items if each.item.measured is not None and not each.command]
    assert silent == []


BAD = {
    "prerequisites.smoke": {"checks": made.checks(operators__basics=Status.UNSUPPORTED)},
    "features.float8": {"checks": made.checks(quantization__float8=Status.ERROR)},
    "features.distributed": {"checks": made.checks(distributed__collectives=Status.CRASH)},
    "experience.profiler": {"checks": made.checks(profiler__device_side=Status.UNSUPPORTED)},
    "features.eager": {"timed": made.timed(0.5)},
    "features.training": {"timed": made.timed(0.5)},
    "testing.operators": {"operators": made.operators(passed=300)},
    "testing.benchmarks": {"benchmarks": made.benchmarks(0.4)},
}


@pytest.mark.parametrize("name", BAD)
def test_what_fails_earns_nothing(tmp_path, name):
    """A failure decides: it is measured, with no points, and says why."""
    found = card(tmp_path / "store", **BAD[name])
    assert told(found, name) == ("measured", 0, 0)
    assert item(found, name).because


@pytest.mark.parametrize(
    "modifier",
    [Modifier.DEGRADED, Modifier.UNSTEADY, Modifier.UNCHECKED, Modifier.FLAKY, Modifier.OTHER_MODEL],
)
def test_a_marked_pass_is_no_point(tmp_path, modifier):
    """A degraded pass is none; one that says nothing leaves its item open, with the command."""
    rows = [
        replace(each, modifiers=(modifier,)) if each.case.workload.model == "quantization.int4" else each
        for each in made.checks()
    ]
    found = item(card(tmp_path / "store", checks=rows), "features.int4")
    if modifier is Modifier.DEGRADED:
        assert (found.source, found.at_most) == (Source.MEASURED, 0)
    else:
        assert (found.source, found.points, found.at_most) == (Source.UNKNOWN, 0, 1)
        assert "quantization.int4" in found.command
        assert modifier.value in found.because


def test_a_model_whose_pass_is_in_doubt_is_said(tmp_path):
    """A store with one unsteady pass and one steady one does not say that one model was all."""
    rows = [
        made.row(Workload("toy", "mlp")),
        made.row(Workload("toy", "rnn"), modifiers=(Modifier.UNSTEADY,)),
    ]
    path = tmp_path / "store"
    made.publish(path, "two", rows)
    found = item(scorecards([str(path)]).cards[0].card, "testing.eager")
    assert found.because == "1 model passed in eager mode, 1 more in doubt, and 10 are needed"


def test_a_stale_row_is_no_point(tmp_path):
    """A check from three weeks before the newest row of its release says nothing any more."""
    old = made.row(Workload("conformance", "quantization.int4", "check"))
    store = made.publish(tmp_path / "store", "old", [old], days=10)
    made.publish(tmp_path / "store", "new", [made.row(Workload("toy", "mlp"))], days=31)
    found = item(scorecards([store]).cards[0].card, "features.int4")
    assert (found.source, found.because) == (
        Source.UNKNOWN, "checks without a result: quantization.int4 (stale)",
    )  # fmt: skip


def test_a_smoke_run_is_no_share_of_all_operators(tmp_path):
    """Fifty right operators of 692 say that 100 % is possible and nothing more."""
    rows = [made.row(Workload("ops", name, "forward", "float32")) for name in made.OPS.smoke]
    found = card(tmp_path / "store", operators=rows)
    assert told(found, "testing.operators") == ("unknown", 0, 6)
    assert "50 of 692" in item(found, "testing.operators").because
    assert item(found, "testing.operators").command == "torchgauge ops judge --device other --tier full"


def test_a_share_is_decided_where_nothing_missing_can_change_it(tmp_path):
    """One failure in 692 makes 100 % impossible and leaves 80 %."""
    assert told(card(tmp_path / "a", operators=made.operators(passed=691)), "testing.operators")[1:] == (4, 4)
    assert told(card(tmp_path / "b", benchmarks=made.benchmarks(0.6)), "testing.benchmarks")[1:] == (2, 2)


def test_a_speed_within_the_noise_is_not_decided(tmp_path):
    """5 % faster or slower than the processor is too close for a verdict."""
    for place, ratio in enumerate((0.95, 1.05)):
        found = item(card(tmp_path / str(place), timed=made.timed(ratio)), "features.graph")
        assert (found.source, found.at_most) == (Source.UNKNOWN, 1)
        assert "too close for a verdict" in found.because


def test_toys_are_not_in_the_mean_speed_and_are_counted(tmp_path):
    """Models are four times as fast as the processor, toys a hundredth as fast."""
    store = made.publish(tmp_path / "store", "all", made.timed() + made.timed(0.01, 2, "toy"))
    done = CliRunner().invoke(cli, ["results", "scorecard", "--store", store, "--device", "other", "--json"])
    (device,) = json.loads(done.stdout)["devices"]
    said = [each["because"] for each in device["items"] if each["item"] == "features.graph"]
    assert said == ["4.00 times as fast as the CPU, over 24 cases of 12 models (4 toy left out)"]


def test_a_question_that_makes_no_sense_is_left_out(tmp_path):
    """Checks that do not apply to a device are in no denominator."""
    rows = [
        replace(each, status=Status.UNSUPPORTED, reason="not applicable to it", measurements=(), summaries=())
        if each.case.workload.model.startswith("autoload.")
        else each
        for each in made.checks()
    ]
    found = card(tmp_path / "store", checks=rows)
    assert told(found, "testing.unit") == ("measured", 6, 6)
    assert told(found, "prerequisites.smoke") == ("measured", 8, 8)


def test_flaky_cases_and_outages(tmp_path):
    """One case in one environment that ended differently is more than 5 % of one; ten days are an outage."""
    path = tmp_path / "store"
    made.nights(path, [*range(0, 20, 2), *range(30, 40)])
    odd = made.row(Workload("conformance", "tensor.copy", "check"), Status.ERROR)
    made.publish(path, "odd", [odd], days=38.5)
    found = scorecards([str(path)], ["other"]).cards[0].card
    assert told(found, "automation.flaky") == ("measured", 0, 0)
    assert told(found, "automation.outages") == ("measured", 0, 0)
    assert told(found, "automation.delivery") == ("measured", 4, 4)


def test_imported_rows_are_not_measured_here(tmp_path):
    """A file of another tool earns no point."""
    rows = [replace(each, facts=(("imported_from", "x.csv"),)) for each in made.benchmarks()]
    assert told(card(tmp_path / "store", benchmarks=rows), "testing.benchmarks") == ("unknown", 0, 6)


def test_declarations_fill_what_rows_leave_open(tmp_path, whole):
    """With everything shown or declared the sum is 124, whatever the items of one section sum to."""
    path = tmp_path / "store"
    made.nights(path)
    made.everything(path)
    declared = made.declarations(tmp_path / "vendor.yaml")
    found = scorecards([str(path)], ["other"], [declared]).cards[0].card
    assert (found.lowest, found.highest, found.unknown, found.level) == (124, 124, 0, "stable")
    assert found.points(Source.MEASURED) + found.points(Source.DECLARED) == 126  # 16 of 14 in one section
    said = item(found, "hardware.access")
    assert (said.source, said.declaration and said.declaration.by) == (
        Source.DECLARED, "A person of the vendor",
    )  # fmt: skip
    assert whole.level == ""


def test_rows_win_over_declarations(tmp_path):
    """What rows decide nobody declares away, and the card says that somebody tried."""
    store = made.some(tmp_path / "store", checks=made.checks(quantization__int4=Status.ERROR))
    declared = made.declarations(tmp_path / "v.yaml", features__int4=1, testing__unit=6)
    found = scorecards([store], ["other"], [declared]).cards[0].card
    assert told(found, "features.int4") == ("measured", 0, 0)
    assert item(found, "features.int4").note == "declared: 1, but measured rows contradict this"
    assert told(found, "testing.unit") == ("measured", 4, 4)


def test_declarations_in_the_store_count_and_old_ones_do_not(tmp_path):
    """STORE/declared is read by itself; after 400 days somebody has to say it again."""
    store = made.some(tmp_path / "store")
    file = Path(made.declarations(tmp_path / "store" / "declared" / "other.yaml", hardware__access=4))
    assert told(scorecards([store], ["other"]).cards[0].card, "hardware.access") == ("declared", 4, 4)
    file.write_text(file.read_text().replace("2026-05-01", "2025-01-01"))
    found = item(scorecards([store], ["other"]).cards[0].card, "hardware.access")
    assert (found.source, found.note) == (
        Source.UNKNOWN,
        "the declaration is too old, or is for a later release",
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("points: 4", "points: 5", "the item has 4 points"),
        ("hardware.access", "hardware.acces", "did you mean hardware.access"),
        ("2026-05-01", "2026-02-31", "day is out of range"),
        ("https://example.org/hardware.access", "on our page", "link"),
        ("    statement: It is so, as the page says.\n", "", "statement"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path, old, new, words):
    """File, line and field, as in every data file."""
    store = made.some(tmp_path / "store")
    file = Path(made.declarations(tmp_path / "v.yaml", hardware__access=4))
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(DataFileError, match=words):
        scorecards([store], ["other"], [str(file)])


def test_an_item_is_declared_once(tmp_path):
    """Two files that speak of one item of one device are a mistake."""
    store = made.some(tmp_path / "store")
    files = [made.declarations(tmp_path / f"{name}.yaml", hardware__access=4) for name in "ab"]
    with pytest.raises(UsageError, match="declared twice"):
        scorecards([store], ["other"], files)


def test_two_operators_get_the_same_points(tmp_path):
    """Two machines, other times, other order of runs, one in two halves: the same points for each item."""
    one, other = tmp_path / "one", tmp_path / "other"
    made.nights(one)
    made.everything(one)
    made.nights(other, days=[each + 0.3 for each in range(0, 39, 2)])
    slow = made.timed(times_as_fast=2.5, number=14)
    rest = [*made.operators(), *made.benchmarks(), *made.distributed()]
    made.publish(other, "second", rest, "2.13.1+y", days=39)
    made.publish(other, "first", [*slow, *made.checks()], "2.13.1+y", days=38)
    cards = [scorecards([str(path)], ["other"]).cards[0].card for path in (one, other)]
    points = [[(e.item.name, e.source, e.points, e.at_most) for e in card.items] for card in cards]
    assert points[0] == points[1]
    assert cards[0].points(Source.MEASURED) == 65


def grades(*releases: tuple[str, str, str]) -> dict[Release, Card]:
    """Cards by release that grade from one level to another."""

    class Graded:
        def __init__(self, low: str, high: str) -> None:
            names = [level.name for level in FILE.levels]
            self.grades = names.index(low), names.index(high)

    return {release_in(name): Graded(low, high) for name, low, high in releases}  # type: ignore[misc]


E, U, S = "engineering", "unstable", "stable"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("2.12", S, S)], "engineering to stable"),
        ([("2.12", S, S), ("2.13", S, S)], S),
        ([("2.11", E, E), ("2.12", E, E), ("2.13", S, S)], E),
        ([("2.11", E, E), ("2.12", E, E), ("2.13", S, S), ("2.14", U, U)], U),
        ([("2.11", S, S), ("2.12", S, S), ("2.13", E, E)], S),
        ([("2.11", S, S), ("2.12", S, S), ("2.13", E, E), ("2.14", U, U)], U),
        ([("2.11", S, S), ("2.12", S, S), ("2.13", E, E), ("2.14", E, E)], E),
        ([("2.11", S, S), ("2.12", S, S), ("2.13", E, E), ("2.14", S, S), ("2.15", E, E)], S),
        ([("2.11", E, E), ("2.12", E, E), ("2.13", U, S), ("2.14", U, S)], "unstable to stable"),
        ([("2.10", U, U), ("2.11", U, U), ("2.13", S, S)], "unstable to stable"),
    ],
)
def test_a_level_changes_after_two_releases_in_a_row(given, expected):
    """Up as far as both are above, down as far as both are below; a missing release decides nothing."""
    history = level_history(FILE, grades(*given))
    assert range_text(FILE, history[-1].stands) == expected


def test_previews_are_no_releases():
    """Nightlies change no level."""
    cards = grades(("2.12", E, E), ("2.13", E, E), ("2.14.0.dev1", S, S), ("2.15.0a0+git", S, S))
    assert [each.release.name for each in level_history(FILE, cards)] == ["2.12", "2.13"]
    assert release_in("2.14.0.dev20261101+x") == Release(2, 14, False)
    assert release_in("2.13.1+x") == Release(2, 13)
    assert release_in("unknown") is release_in(None) is None
    assert median(2, 0, 1) == 1


def test_a_declared_level_is_where_the_history_begins(tmp_path):
    """A platform that PyTorch's documentation called unstable before stays that after one stable release."""
    path = tmp_path / "store"
    made.nights(path)
    made.everything(path)
    before = 'documented: {level: unstable, until: "2.13", link: https://example.org/level}\n'
    declared = made.declarations(tmp_path / "v.yaml", extra=before)
    found = scorecards([str(path)], ["other"], [declared])
    assert as_plain(found)["devices"][0]["level"] == "unstable"
    assert found.cards[0].card.level == "stable"
