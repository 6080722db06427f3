"""The set of a pull request's gate: what is written is read, what is poisoned is refused with a reason."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from gate_parts import ORIGIN, WORSE, gate_set, of, pair, report, zipped

from torchgauge.errors import UsageError
from torchgauge.records.comparison import Verdict
from torchgauge.results.comparing.gate_verdict import GateVerdict, Headline
from torchgauge.results.journal import RunState
from torchgauge.results.reports.report import Counts
from torchgauge.workflows.gate_set import read_gate_set
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError


def edit(folder: Path, change: Callable[[dict[str, Any]], Any], *, file: str = "report.json") -> Path:
    """Change one file of a set and stamp it anew, as a forger would."""
    path = folder / file
    told = json.loads(path.read_text())
    text = change(told)
    data = (text if isinstance(text, str) else json.dumps(told)).encode()
    path.write_bytes(data)
    if file == "report.json":
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"] = [{"name": file, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}]
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def reason_of(path: Path, pool: str = "cpu", origin=ORIGIN) -> Reason:
    with pytest.raises(RefusedSetError) as caught:
        read_gate_set(path, origin, pool)
    return caught.value.reason


def test_a_set_is_read_as_it_was_written_from_a_folder_and_a_zip(tmp_path) -> None:
    """With the command and the false alarms left out, which a stranger should not tell us."""
    made = report(of(Verdict.REGRESSION), of(Verdict.UNCHANGED, "conv"))
    folder = gate_set(tmp_path, made)
    found = read_gate_set(folder, ORIGIN, "cpu")
    assert found.report == replace(made, command=())
    assert (found.verdict, found.manifest.head) == (GateVerdict.REGRESSION, "torch==2.13.0")
    archive = tmp_path / "set.zip"
    archive.write_bytes(zipped(folder))
    assert read_gate_set(archive, ORIGIN, "cpu") == found


def test_a_set_without_a_measurement_is_incomplete(tmp_path) -> None:
    """And says why."""
    folder = gate_set(tmp_path, None, trouble="torch==9 could not be installed")
    found = read_gate_set(folder, ORIGIN, "cpu")
    assert (found.verdict, found.manifest.trouble) == (
        GateVerdict.INCOMPLETE,
        "torch==9 could not be installed",
    )


def test_a_set_is_written_once(tmp_path) -> None:
    """A second one has another name."""
    gate_set(tmp_path, report(of(Verdict.UNCHANGED)))
    with pytest.raises(UsageError, match="exists"):
        gate_set(tmp_path, report(of(Verdict.UNCHANGED)))


def test_the_headline_is_made_of_the_verdicts(tmp_path) -> None:
    """A set that calls a regression unchanged is a regression; one that counts others is counted again."""
    flattering = replace(
        report(of(Verdict.REGRESSION)), headline=Headline.UNCHANGED, counts=Counts(9, 0, 9, 0, 0, 0)
    )
    found = read_gate_set(gate_set(tmp_path, flattering), ORIGIN, "cpu")
    assert (found.verdict, found.report.counts.planned) == (GateVerdict.REGRESSION, 1)
    cut = report(of(Verdict.UNCHANGED), state=RunState.OUT_OF_BUDGET, headline=Headline.UNCHANGED)
    found = read_gate_set(gate_set(tmp_path / "cut", cut), ORIGIN, "cpu")
    assert found.verdict is GateVerdict.INCOMPLETE


def test_hostile_text_of_a_run_is_written_plainly(tmp_path) -> None:
    """What the writer cleans needs no mercy of the reader."""
    bad = of(Verdict.UNDECIDED, reason="\x1b[31mred\u202eevil\nline")
    found = read_gate_set(gate_set(tmp_path, report(bad)), ORIGIN, "cpu")
    assert found.report.verdicts[0].reason == "red[U+202E]evil\nline"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda told: told["verdicts"][0].update(ratio=-1.0), Reason.NUMBER),
        (lambda told: told["verdicts"][0].update(p=2.0), Reason.NUMBER),
        (lambda told: told["verdicts"][0].update(low=1.2, high=1.1), Reason.NUMBER),
        (lambda told: told["verdicts"][0].update(unit="`|@x"), Reason.NUMBER),
        (lambda told: json.dumps(told).replace("1.1,", "NaN,"), Reason.JSON),
        (lambda told: json.dumps(told).replace("1.1,", "1e999,"), Reason.NUMBER),
        (lambda told: told.update(marker="x --> <script>"), Reason.TEXT),
        (lambda told: told.update(run_id="../../x"), Reason.RUN_ID),
        (lambda told: told.update(run_id="CON"), Reason.RUN_ID),
        (lambda told: told.update(run_id="index.html"), Reason.RUN_ID),
        (lambda told: told.update(created_at=1e12), Reason.TIME),
        (lambda told: told.update(version=2), Reason.SCHEMA),
        (lambda told: told["verdicts"].append(told["verdicts"][0]), Reason.CASE_TWICE),
        (lambda told: told["verdicts"][0].update(pair_key="zz"), Reason.FOREIGN_CASE),
        (lambda told: told["verdicts"][0].update(reason="\u202e"), Reason.TEXT),
        (lambda told: "[" * 100_000, Reason.JSON),
    ],
)
def test_a_poisoned_report_is_refused(tmp_path, change, reason) -> None:
    """Whatever it says, with the stamp of the forger on it."""
    folder = gate_set(tmp_path, report(of(Verdict.REGRESSION)))
    found = reason_of(edit(folder, change))
    deep = (Reason.JSON, Reason.DEPTH, Reason.SCHEMA)
    assert found is reason or (reason is Reason.JSON and found in deep)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"head_sha": "b" * 40}, Reason.FOREIGN_SHA),
        ({"head_sha": "main"}, Reason.FOREIGN_SHA),
        ({"run_id": 78}, Reason.FOREIGN_CAMPAIGN),
        ({"repository": "other/project"}, Reason.FOREIGN_CAMPAIGN),
        ({"attempt": 2}, Reason.FOREIGN_CAMPAIGN),
        ({"pool": "npu"}, Reason.ARTIFACT_NAME),
        ({"schema": "pr-gate-v2"}, Reason.NOT_A_SET),
        ({"files": []}, Reason.HASH),
    ],
)
def test_a_manifest_of_something_else_is_refused(tmp_path, change, reason) -> None:
    """Another commit, run, repository, pool or schema."""
    folder = gate_set(tmp_path, report(of(Verdict.UNCHANGED)))
    assert reason_of(edit(folder, lambda told: told.update(change), file="manifest.json")) is reason


def test_files_that_do_not_belong_are_refused(tmp_path) -> None:
    """One more, one less, a link, a report that is not the stamped one."""
    made = report(of(Verdict.UNCHANGED))
    more = gate_set(tmp_path / "more", made)
    (more / "run.sh").write_text("x")
    less = gate_set(tmp_path / "less", made)
    (less / "report.json").unlink()
    link = gate_set(tmp_path / "link", made)
    (link / "report.json").unlink()
    (link / "report.json").symlink_to("/etc/passwd")
    other = gate_set(tmp_path / "other", made)
    (other / "report.json").write_text("{}")
    found = [reason_of(each) for each in (more, less, link, other)]
    assert found[1:] == [Reason.MISSING_FILE, Reason.NOT_A_FILE, Reason.HASH]
    assert found[0] in (Reason.EXTRA_FILE, Reason.TOO_MANY_FILES)


def test_more_verdicts_than_a_gate_measures_are_refused(tmp_path, monkeypatch) -> None:
    """Before anything is rendered."""
    monkeypatch.setattr("torchgauge.workflows.gate_set.MOST_VERDICTS", 1)
    verdicts = [of(Verdict.REGRESSION), of(Verdict.REGRESSION, "conv")]
    assert reason_of(gate_set(tmp_path, report(*verdicts))) is Reason.TOO_LARGE
    assert pair().key != pair("conv").key
    assert WORSE["ratio"] > 1


def test_more_facts_than_machines_have_are_refused(tmp_path, monkeypatch) -> None:
    """Of environments and variables, side by side, before the report is held a second time."""
    monkeypatch.setattr("torchgauge.workflows.gate_set.MOST_FACTS", 3)
    side = report().base
    three = replace(side, variables=(("A", "1"),), environments=(("fake", (("x", "1"),)),))
    found = read_gate_set(gate_set(tmp_path / "three", report(base=three)), ORIGIN, "cpu")
    assert found.report.base == three
    four = replace(three, variables=(("A", "1"), ("B", "2")))
    for place, sides in enumerate(({"base": four}, {"head": four})):
        assert reason_of(gate_set(tmp_path / f"four-{place}", report(**sides))) is Reason.TOO_LARGE
