"""Devices side by side: what counts, what a device lacks, and what a store cannot say."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import compat_store as made

from torchgauge.errors import DamagedJournalError, NothingSelectedError, UsageError
from torchgauge.records import Cause, Modifier, Status
from torchgauge.results.compat import text
from torchgauge.results.compat.differences import coverage, lacking, only_differences
from torchgauge.results.compat.gathering import compare_devices
from torchgauge.results.compat.table import Entry, Table, cell_of
from torchgauge.results.compat.words import cell_text
from torchgauge.results.store import Store
from torchgauge.suites.check import NotOnThisDeviceError
from torchgauge.suites.conformance.check_context import CheckContext

HOSTILE = "<img src=x onerror=alert(1)> | `x` @team \x1b[31m \u202e =1+1"


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


def test_a_column_says_what_its_rows_were_measured_with(table):
    """Torch, packages and machine come from the store, and ages from the newest row."""
    host, other = table.columns
    assert (host.torch, host.packages, other.packages) == ("2.9.0", (), ("torch-other 1.2",))
    assert host.machines == ("Test CPU, 2 cores, Linux",)
    assert other.newest_at - host.newest_at == 3 * 86_400
    assert "host: torch 2.9.0" in text.terminal_of(table)
    assert "3 d older than the newest" in text.terminal_of(table)


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


def test_groups_of_lacks_are_ordered_by_size(tmp_path):
    """The group that holds most comes first, whatever its name."""
    rows = [made.check(f"zoo.{i}", "b", Status.ERROR) for i in range(3)] + [
        made.check("art.0", "b", Status.ERROR)
    ]
    made.publish(tmp_path / "s", "r1", rows)
    made.publish(tmp_path / "s", "r2", [made.check(each.case.workload.model, "a") for each in rows])
    groups = lacking(compare_devices([str(tmp_path / "s")]))[1].groups
    assert [(group.name, len(group.lacks)) for group in groups] == [("zoo", 3), ("art", 1)]


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
    """From two weeks before the newest row on, an age stands beside the status."""
    made.publish(tmp_path / "s", "r1", [made.check("a.x", "d")])
    made.publish(tmp_path / "s", "r2", [made.check("a.x", "e")], days=20)
    assert cells(compare_devices([str(tmp_path / "s")]), "capabilities") == {"a": ["pass, 20 d old", "pass"]}


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


def test_one_device_alone_has_nothing_to_be_compared_with(stores):
    """The table is shown all the same."""
    said = text.terminal_of(compare_devices(stores, ["other"]))
    assert "There is no other column to compare with" in said
    assert "1/2 (1 error)" in said


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


def test_a_damaged_run_is_a_gap(stores):
    """What can be read is shown; what cannot is named. Nothing readable at all is an error."""
    store = Store.open(stores[1])
    store.table_path("results", "run-b").write_bytes(b"no parquet")
    table = compare_devices(stores)
    assert [column.name for column in table.columns] == ["host"]
    assert "run-b" in table.gaps[0]
    assert "gap: run run-b" in text.terminal_of(table)
    with pytest.raises(DamagedJournalError, match="no run of the stores can be read"):
        compare_devices(stores[1:])


def test_a_run_that_is_not_published_is_said(stores):
    """Rows of an unfinished run are not shown, and a note says so."""
    store = Store.open(stores[0])
    made.stored.run(store, "run-c", made.host_rows("late"), [made.stored.environment("late")], publish=False)
    table = compare_devices(stores)
    assert [column.name for column in table.columns] == ["host", "other"]
    assert any("1 run is not finished" in note for note in table.notes)


def test_stores_without_anything_to_compare_are_errors(stores, tmp_path):
    """No store, an empty one, devices and sections without rows: each says what to try."""
    Store.open(tmp_path / "empty", create=True)
    with pytest.raises(UsageError, match="no store at"):
        compare_devices([str(tmp_path / "nowhere")])
    with pytest.raises(NothingSelectedError, match="no published rows"):
        compare_devices([str(tmp_path / "empty")])
    with pytest.raises(NothingSelectedError, match="none of gpu was ever measured") as caught:
        compare_devices(stores, ["gpu"])
    assert "host, other" in caught.value.hint or "host,other" in caught.value.hint
    made.publish(tmp_path / "checks", "r", [made.check("a.x", "d")])
    with pytest.raises(NothingSelectedError, match="no rows of models"):
        compare_devices([str(tmp_path / "checks")], what=["models"])


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_a_word_and_only_failures_are_lacks(status):
    """Ten statuses, ten words; a skip and a broken environment say nothing of the device."""
    entry = Entry(status, "r", "c")
    assert cell_text(cell_of([entry]), 1) == status.value
    silent = status in (Status.PASS, Status.SKIPPED, Status.INFRA, Status.NOT_RUN)
    assert entry.lacks is not silent


def test_the_words_of_a_check_that_does_not_apply_are_known():
    """What a check says where its question makes no sense is not counted against the device."""

    class Session:
        name = "d"

    with pytest.raises(NotOnThisDeviceError) as caught:
        Host(Session()).not_on_host("it has no streams")  # type: ignore[arg-type]
    assert not Entry(Status.UNSUPPORTED, "r", "c", reason=str(caught.value)).applicable
    assert Entry(Status.UNSUPPORTED, "r", "c", reason="no kernel").applicable


class Host(CheckContext):
    """A context on the host."""

    on_host = True


def test_json_has_a_schema_and_every_entry(table):
    """The same numbers as the table, with ages and runs; nothing that is no JSON."""
    data = json.loads(text.json_of(table), parse_constant=pytest.fail)
    assert (data["schema"], data["version"]) == ("torchgauge.compat", 1)
    tensor = data["sections"][0]["features"][0]
    assert tensor["cells"]["other"] == {
        "status": "error", "passed": 1, "said": 2, "others": {"error": 1}, "not_measured": 0, "degraded": 0,
        "marks": [],
    }  # fmt: skip
    assert tensor["parts"][1]["entries"]["other"]["reason"] == "a view is a copy"
    assert tensor["parts"][0]["entries"]["host"]["age_s"] == 3 * 86_400
    mlp = data["sections"][2]["features"][0]["parts"][0]["entries"]["other"]
    assert mlp["fallback"] == {"operators": 1, "share": 0.12, "names": "aten::topk"}
    assert [each["column"] for each in data["lacking"]] == ["host", "other"]


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


def test_csv_has_one_line_per_part_and_column(stores):
    """A part that was not measured has its line too."""
    table = compare_devices(stores, ["host", "nothing"])
    rows = list(csv.DictReader(io.StringIO(text.csv_of(table))))
    assert len(rows) == 2 * 8
    assert {row["status"] for row in rows if row["device"] == "nothing"} == {"not measured"}


def test_hostile_text_does_nothing_in_any_form(tmp_path):
    """No formula, no Markdown, no terminal sequence, no direction mark."""
    rows = [
        made.check(f"{HOSTILE}.x", HOSTILE, Status.ERROR, reason=HOSTILE),
        made.op("=1+1", HOSTILE, Status.ERROR, reason="=cmd|'/c calc'!A1"),
    ]
    path = made.publish(tmp_path / "s", "r", rows)
    good = [made.check(f"{HOSTILE}.x", "d"), made.op("=1+1", "d")]
    made.publish(path, "r2", good, torch=HOSTILE)
    table = compare_devices([str(path)])
    spreadsheet = list(csv.reader(io.StringIO(text.csv_of(table))))
    assert not [cell for row in spreadsheet for cell in row if cell.startswith(("=", "+", "@"))]
    shown = text.markdown_of(table, expand=True)
    assert "<img" not in shown.replace("`<img", "")
    assert len({line.count(" | ") for line in shown.splitlines() if line.startswith("|")}) == 1
    for form in (text.terminal_of(table, expand=True), shown, text.csv_of(table)):
        assert "\x1b" not in form
        assert "\u202e" not in form
    (first, _) = json.loads(text.json_of(table))["columns"]
    assert (first["name"], first["rows"]) == (HOSTILE, 2)


def test_where_nothing_could_look_for_fallbacks_is_said(tmp_path):
    """A reason stands once per device, with the number of rows it is of."""
    facts = (("fallback_unknown", "the profiler is off"),)
    rows = [made.model("a", "d", facts=facts), made.model("b", "d", facts=facts), made.model("c", "d")]
    made.publish(tmp_path / "s", "r", rows)
    said = "d: fallbacks to the host are not known in 2 of 3 rows: the profiler is off"
    assert said in text.terminal_of(compare_devices([str(tmp_path / "s")]))


def test_a_fallback_has_its_footnote(table):
    """The mark in the cell is explained below the table."""
    note = "1 operator ran on the host through a fallback, 12% of the step's time: aten::topk"
    assert note in text.terminal_of(table)
    assert note in text.markdown_of(table)
    assert "pass, fallback 12%" in text.terminal_of(table, expand=True)
