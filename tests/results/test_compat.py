"""Devices side by side: what counts, what a device lacks, and what a store cannot say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import compat_store as made

from torchgauge.records import Cause, Modifier, Status
from torchgauge.results.compat import text
from torchgauge.results.compat.differences import coverage, lacking, only_differences
from torchgauge.results.compat.gathering import compare_devices
from torchgauge.results.compat.table import Table
from torchgauge.results.compat.words import cell_text
from torchgauge.results.store import Store


@pytest.fixture
def stores(tmp_path) -> list[str]:
    """Two devices, each in a store of its own."""
    return made.two_stores(tmp_path)


@pytest.fixture
def table(stores) -> Table:
    """Both devices side by side."""
    return compare_devices(stores)


def cells(table: Table, section: str) -> dict[str, list[str]]:
    """The cells of a section as text, by feature."""
    found = next(each for each in table.sections if each.key == section)
    return {
        feature.name: [cell_text(cell, feature.size) for cell in feature.cells] for feature in found.features
    }


def test_stores_are_merged_and_every_cell_says_something(table):
    """Groups count what says something; what does not apply stands beside it."""
    assert [column.name for column in table.columns] == ["host", "other"]
    assert cells(table, "capabilities") == {
        "tensor": ["2/2", "1/2 (1 error)"],
        "stream": ["not applicable", "pass"],
        "optim": ["unsupported", "crash"],
    }
    assert cells(table, "operators") == {"add": ["2/2", "1/2 (1 fail_accuracy)"], "conv": ["pass", "error"]}
    assert cells(table, "models") == {"toy/mlp inference": ["pass", "pass, fallback 12%"]}


def test_what_is_lacked_is_what_others_have(table):
    """Largest groups first; a missing operator names its group; what nobody has is counted apart."""
    host, other = lacking(table)
    assert (host.total, host.nowhere) == (0, (("optim", 1),))
    assert [(group.name, len(group.lacks)) for group in other.groups] == [
        ("tensor", 1),
        ("add", 1),
        ("aten::conv is missing", 1),
    ]
    assert other.groups[0].lacks[0].entry.reason == "a view is a copy"
    assert other.groups[0].lacks[0].others == ("host",)
    assert other.nowhere == (("optim", 1),)


def test_the_expectation_of_a_device_brings_its_link(tmp_path):
    """A deviation that the device's data file knows of carries its reason and link."""
    made.publish(tmp_path / "s", "r1", [made.check("optim.capturable", "cpu", Status.UNSUPPORTED)])
    made.publish(tmp_path / "s", "r2", [made.check("optim.capturable", "other")])
    table = compare_devices([str(tmp_path / "s")])
    entry = lacking(table)[0].groups[0].lacks[0].entry
    assert entry.link.startswith("https://")
    assert entry.link in text.terminal_of(table)
    assert f"<{entry.link}>" in text.markdown_of(table)


def test_only_differences_keeps_whole_counts(table):
    """A row stays where one device has what another lacks, and its cells count all of its parts."""
    shown = only_differences(table)
    assert cells(shown, "capabilities") == {"tensor": ["2/2", "1/2 (1 error)"]}
    assert [part.name for part in shown.sections[0].features[0].parts] == ["tensor.views"]
    assert cells(shown, "models") == {}
    said = text.terminal_of(table, differing=True)
    assert "2 of 3 rows without a difference are left out" in said
    assert "stream" not in said.split("Operators")[0]


def test_coverage_counts_every_part_once(table):
    """Planned is what any column knows; the statuses add up to what was measured."""
    found = {(each.section, each.column): each for each in coverage(table)}
    host = found["capabilities", "host"]
    assert (host.planned, host.measured, host.said, host.passed) == (4, 4, 3, 2)
    assert dict(host.statuses) == {"pass": 2, "not applicable": 1, "unsupported": 1}
    assert sum(count for _, count in host.statuses) == host.measured
    assert found["capabilities", "other"].unexpected == 2


def test_the_newest_row_counts_and_an_older_one_stands_in(tmp_path):
    """A newer pass replaces an error; a broken environment does not replace what is known."""
    path = tmp_path / "s"
    rows = [made.check("a.x", "d", Status.ERROR), made.check("a.y", "d")]
    made.publish(path, "r1", rows)
    lost = made.check("a.y", "d", Status.INFRA, cause=Cause.NO_DEVICE, reason="gone")
    made.publish(path, "r2", [made.check("a.x", "d"), lost], days=1)
    (feature,) = compare_devices([str(path)]).sections[0].features
    x, y = (part.entries[0] for part in feature.parts)
    assert (x.status, x.instead_of) == (Status.PASS, None)
    assert (y.status, y.instead_of, y.run_id) == (Status.PASS, Status.INFRA, "r1")
    assert cell_text(feature.cells[0], feature.size) == "2/2 (older row (infra since))"


def test_samples_of_an_operator_are_not_two_parts(tmp_path):
    """The newest row of an operator counts, however many samples it was asked to try."""
    rows = [made.op("add", "d", Status.ERROR)]
    made.publish(tmp_path / "s", "r1", rows)
    again = made.stored.case("add", "eager", "d")
    workload = made.Workload("ops", "add", "forward", "float32", shape=(("samples", 8),))
    newer = made.stored.result(made.replace(again, workload=workload), latency=None)
    made.publish(tmp_path / "s", "r2", [newer], days=1)
    assert cells(compare_devices([str(tmp_path / "s")]), "operators") == {"add": ["pass"]}


def test_another_torch_is_a_note_or_a_column_of_its_own(tmp_path):
    """The newest torch is shown; an older one can be asked for, and never mixes with it."""
    path = made.publish(tmp_path / "s", "r1", [made.check("a.x", "d", Status.ERROR)], torch="2.8.0")
    made.publish(path, "r2", [made.check("a.y", "d")], torch="2.9.0", days=1)
    table = compare_devices([str(path)])
    assert [(column.name, column.torch) for column in table.columns] == [("d", "2.9.0")]
    assert cells(table, "capabilities") == {"a": ["pass"]}
    assert any("d@2.8.0" in note for note in table.notes)
    assert not compare_devices([str(path)], ["d@2.8.0", "d"]).notes
    both = compare_devices([str(path)], ["d@2.8.0", "d@2.9.0"])
    assert cells(both, "capabilities") == {"a": ["0/1 (1 error, 1 not measured)", "1/1 (1 not measured)"]}


def test_an_old_row_tells_its_age(tmp_path):
    """From eight days before the newest row on, as on the pages, an age stands beside the status."""
    made.publish(tmp_path / "s", "r1", [made.check("a.x", "d")])
    made.publish(tmp_path / "s", "r2", [made.check("a.x", "e")], days=9)
    assert cells(compare_devices([str(tmp_path / "s")]), "capabilities") == {"a": ["pass, 9 d old", "pass"]}


def test_a_device_that_was_never_measured_is_a_gap_and_no_failure(stores):
    """Its cells say so, and a note names the devices that are there."""
    table = compare_devices(stores, ["host", "othr"])
    assert set(map(tuple, cells(table, "operators").values())) <= {
        ("2/2", "not measured"),
        ("pass", "not measured"),
    }
    assert any("did you mean other?" in note and "host, other" in note for note in table.notes)
    missing = lacking(table)[1]
    assert (missing.total, dict(missing.unknown)) == (0, {"capabilities": 2, "operators": 3, "models": 1})
    assert "What othr lacks that others have\n\nNot measured." in text.terminal_of(table)


def test_a_run_in_two_stores_counts_once(stores, tmp_path):
    """A copied store adds nothing but a note."""
    copy = made.publish(tmp_path / "copy", "run-a", made.host_rows())
    table = compare_devices([*stores, str(copy), stores[0]])
    assert table.columns[0].rows == 8
    assert sum("it counts once" in note for note in table.notes) == 1


def test_two_machines_of_one_device_are_named(tmp_path):
    """Rows of one device from two machines share a column that says so."""
    made.publish(tmp_path / "a", "r1", [made.check("a.x", "d")])
    made.publish(tmp_path / "b", "r2", [made.check("a.y", "d")], cpu__model="Other CPU", days=1)
    table = compare_devices([str(tmp_path / "a"), str(tmp_path / "b")])
    assert table.columns[0].machines == ("Other CPU, 2 cores, Linux", "Test CPU, 2 cores, Linux")
    assert any("2 machines" in note for note in table.notes)


def test_a_run_that_is_not_published_is_said(stores):
    """Rows of an unfinished run are not shown, and a note says so."""
    store = Store.open(stores[0])
    made.stored.run(store, "run-c", made.host_rows("late"), [made.stored.environment("late")], publish=False)
    table = compare_devices(stores)
    assert [column.name for column in table.columns] == ["host", "other"]
    assert any("1 run is not finished" in note for note in table.notes)


def test_another_model_under_a_name_is_neither_passed_nor_lacking(tmp_path):
    """It stands beside the counts with both numbers, in every form, also where it failed."""
    said = {"modifiers": (Modifier.OTHER_MODEL,), "facts": (("other_model", "36 built, 1,000 declared"),)}
    rows = [
        made.model("mlp", "posing", **said),
        made.model("conv", "posing", Status.ERROR, reason="no kernel", **said),
        made.model("mlp", "honest"),
        made.model("conv", "honest"),
    ]
    table = compare_devices([str(made.publish(tmp_path / "store", "r1", rows))])
    assert cells(table, "models") == {
        "toy/conv inference": ["pass", "another model"],
        "toy/mlp inference": ["pass", "another model"],
    }
    counts = {each.column: each for each in coverage(table) if each.section == "models"}
    assert (counts["posing"].passed, counts["posing"].said, counts["posing"].measured) == (0, 0, 2)
    assert dict(counts["posing"].statuses) == {"another model": 2}
    assert [each.total for each in lacking(table)] == [0, 0]
    assert only_differences(table).sections[-1].features == ()
    cell = json.loads(text.json_of(table))["sections"][-1]["features"][1]["cells"]["posing"]
    assert (cell["status"], cell["passed"], cell["others"]) == ("another model", 0, {"another model": 1})
    assert "another model" in text.markdown_of(table)
    assert "another model" in text.terminal_of(table)
