"""One plan, several workers, one run: whatever happens to a worker, each case has one row that says where."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from torchgauge import __version__
from torchgauge.records import SCHEMA_VERSION, Result
from torchgauge.results.dataset import read_table
from torchgauge.results.journal import Kind, read

GATE = "TORCHGAUGE_FAULTS_GATE"
"""As the suite ``slow`` has it: a folder with a ticket for each model that may go on."""


class Parts:
    """A plan file of three models, and the folders of those who measure it."""

    def __init__(self, sandbox: Any, *selection: str) -> None:
        self.sandbox, self.folder = sandbox, sandbox.store_path.parent
        device = () if "--device" in selection else ("--device", "fake")
        self.selection = (*selection, *device, "--config", "eager", *sandbox.quick)
        done = sandbox.run("plan", *self.selection, "--json")
        assert done.returncode == 0, done.stderr
        self.plan = self.folder / "plan.json"
        self.plan.write_text(done.stdout)
        self.groups = [group["id"] for group in json.loads(done.stdout)["groups"]]

    def words(self, name: str, *groups: str) -> tuple[str, ...]:
        """The command of a worker on a node called ``name``."""
        return ("worker", str(self.plan), *groups, "--into", str(self.folder / name), "--node", name)

    def start(self, name: str, *groups: str) -> subprocess.Popen[str]:
        """Start a worker and go on."""
        return self.sandbox.start(*self.words(name, *groups))

    def measure(self, name: str, *groups: str) -> subprocess.CompletedProcess[str]:
        """Let a worker measure to its end."""
        return self.sandbox.run(*self.words(name, *groups))

    def merge(self, *names: str) -> subprocess.CompletedProcess[str]:
        """Make one run of the folders; ``names`` may end with options."""
        folders = [name if name.startswith("--") else str(self.folder / name) for name in names]
        return self.sandbox.run("results", "merge", *folders, "--store", str(self.sandbox.store_path))

    def published(self) -> dict[str, tuple[str, str | None, str]]:
        """Model to status, cause and node in the tables of the only run: each case once."""
        rows = read_table(self.sandbox.store, "results").to_pylist()
        assert Counter(row["case_id"] for row in rows) == Counter({row["case_id"]: 1 for row in rows})
        return {
            row["model"]: (row["status"], row["cause"], json.loads(row["facts"] or "{}").get("node", ""))
            for row in rows
        }


@pytest.fixture
def planned(sandbox: Any) -> Callable[..., Parts]:
    """Plans a selection."""
    return lambda *selection: Parts(sandbox, *selection)


def test_two_workers_of_one_plan_make_the_run_that_one_command_makes(sandbox: Any, planned: Any) -> None:
    """The same cases with the same statuses; rows, environments, calibrations and logs say on which node."""
    parts = planned("toy", "--models", "noop,sum")
    first, second = parts.start("first", parts.groups[0]), parts.start("second", parts.groups[1])
    for worker in (first, second):
        _, said = worker.communicate(timeout=120)
        assert worker.returncode == 0, said
    merged = parts.merge("first", "second")
    assert merged.returncode == 0, merged.stderr
    assert {model: row[0] for model, row in parts.published().items()} == {"noop": "pass", "sum": "pass"}
    assert {row[2] for row in parts.published().values()} == {"first", "second"}
    run = sandbox.folder()
    assert all((run.path / row.log).is_file() for row in sandbox.rows())
    assert {Path(row.log).parent.name for row in sandbox.rows()} == {"first", "second"}
    conditions = [
        row for row in read_table(sandbox.store, "environments").to_pylist() if row["key"] == "node"
    ]
    assert {json.loads(row["value"]) for row in conditions} == {"first", "second"}
    alone = sandbox.run("run", *parts.selection, "--store", str(parts.folder / "alone"))
    assert alone.returncode == 0, alone.stderr
    (journal,) = (parts.folder / "alone").glob("runs/*/journal.jsonl")
    assert {(row.case_id, row.status) for row in rows_in(journal)} == {
        (row.case_id, row.status) for row in sandbox.rows()
    }


def rows_in(journal: Path) -> list[Result]:
    """The rows of a journal."""
    return [record.payload() for record in read(journal) if record.kind is Kind.RESULT]


def test_what_a_killed_worker_was_given_is_infra_and_the_rest_stands(sandbox: Any, planned: Any) -> None:
    """None is lost, none doubled, nothing of it lives on, and what nobody was given can still be measured."""
    gate = sandbox.store_path.parent / "gate"
    gate.mkdir()
    (gate / "ticket-0").touch()
    sandbox.environment[GATE] = str(gate)
    parts = planned("slow")
    one, two, three, *rest = parts.groups
    worker = parts.start("doomed", one, two)
    wait_for_row(parts.folder / "doomed" / "journal.jsonl")
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=120)
    assert sandbox.survivors() == []
    (gate / "open").touch()
    assert parts.measure("steady", three).returncode == 0
    merged = parts.merge("doomed", "steady")
    assert merged.returncode == 3, merged.stderr
    assert "--resume" in merged.stderr
    found = parts.published().values()
    assert Counter(row[:2] for row in found) == {
        ("pass", None): 2,
        ("infra", "lost_worker"): 1,
        ("not_run", "cancelled"): len(rest),
    }
    assert [row[2] for row in found if row[1] == "lost_worker"] == ["doomed"]
    sandbox.assert_accounted("interrupted")
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    assert again.returncode == 3, again.stderr
    assert Counter(row[0] for row in parts.published().values()) == {"pass": 2 + len(rest), "infra": 1}


def test_a_killed_worker_that_is_started_again_loses_nothing(sandbox: Any, planned: Any) -> None:
    """It goes on in its folder; and a group that two workers have counts once, with the rows of one."""
    gate = sandbox.store_path.parent / "gate"
    gate.mkdir()
    (gate / "ticket-0").touch()
    sandbox.environment[GATE] = str(gate)
    parts = planned("slow")
    worker = parts.start("first", *parts.groups[:2])
    wait_for_row(parts.folder / "first" / "journal.jsonl")
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=120)
    (gate / "open").touch()
    assert parts.measure("first", *parts.groups[:2]).returncode == 0
    assert parts.measure("second", *parts.groups[1:]).returncode == 0
    merged = parts.merge("first", "second")
    assert merged.returncode == 0, merged.stderr
    assert Counter(row[::2] for row in parts.published().values()) == {
        ("pass", "first"): 2,
        ("pass", "second"): len(parts.groups) - 2,
    }
    sandbox.assert_accounted()
    again = parts.merge("first", "second")
    assert again.returncode == 2
    assert "is complete" in again.stderr
    more = parts.measure("first", parts.groups[-1])
    assert more.returncode == 2
    assert "pass another folder" in more.stderr


def test_other_groups_in_a_part_that_was_cut_off_are_no_cases_of_this_command(planned: Any) -> None:
    """What it says of its own groups is not made less by what lies there; all of it is merged."""
    parts = planned("toy", "--models", "noop,sum")
    assert parts.measure("one", parts.groups[0]).returncode == 0
    journal = parts.folder / "one" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    done = parts.measure("one", parts.groups[1])
    assert done.returncode == 0, done.stderr
    assert "1/1 pass\n" in done.stderr
    assert parts.merge("one").returncode == 0
    assert {row[0] for row in parts.published().values()} == {"pass"}


def wait_for_row(journal: Path) -> None:
    """Return when the journal holds a row."""
    wait_until(lambda: journal.exists() and rows_in(journal), f"a row in {journal}")


def of_another_version(plan: Path) -> None:
    """As an older torchgauge would have written it."""
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"schema_version": SCHEMA_VERSION - 1}))


def with_a_number_as_device(plan: Path) -> None:
    """JSON that is no plan."""
    data = json.loads(plan.read_text())
    data["groups"][0]["cases"][0]["case"]["device"] = 7
    plan.write_text(json.dumps(data))


def far_too_deep(plan: Path) -> None:
    """What ends a reader that is not prepared."""
    plan.write_text("[" * 100_000)


def with_a_group_twice(plan: Path) -> None:
    """Each case would have two rows."""
    data = json.loads(plan.read_text())
    plan.write_text(json.dumps(data | {"groups": data["groups"] * 2}))


@pytest.mark.parametrize(
    ("spoil", "what", "hint"),
    [
        (far_too_deep, "the file is not JSON", "writes a plan"),
        (with_a_group_twice, "contains a case or a group twice", "plan it again"),
        (of_another_version, "was written by an older torchgauge", "plan and measure again"),
        (with_a_number_as_device, "groups[0].cases[0].case.device", "restore it"),
    ],
)
def test_a_plan_that_is_not_this_version_s_or_damaged_is_refused(
    sandbox: Any, planned: Any, spoil: Callable[[Path], None], what: str, hint: str
) -> None:
    """With the file, what is wrong with it and what to try; nothing is written."""
    parts = planned("toy", "--models", "noop")
    spoil(parts.plan)
    done = parts.measure("one", *parts.groups)
    assert done.returncode == 2, done.stderr
    assert str(parts.plan) in done.stderr
    assert what in done.stderr
    assert hint in done.stderr
    assert not (parts.folder / "one").exists()


def test_a_run_id_that_leads_elsewhere_names_no_folder(planned: Any) -> None:
    """An edited plan cannot write outside of the folder that is named."""
    parts = planned("toy", "--models", "noop")
    data = json.loads(parts.plan.read_text())
    parts.plan.write_text(json.dumps(data | {"run_id": "../../elsewhere"}))
    done = parts.measure("one", *parts.groups)
    assert done.returncode == 2, done.stderr
    assert "the id '../../elsewhere' of a part is not valid as a folder name" in done.stderr


def test_names_that_are_wrong_are_refused(sandbox: Any, planned: Any) -> None:
    """A group that the plan has not, a folder of something else, and a node that could not name a folder."""
    parts = planned("toy", "--models", "noop")
    wrong = parts.measure("one", parts.groups[0][:-1] + "z")
    assert wrong.returncode == 2
    assert f"did you mean {parts.groups[0]}" in wrong.stderr
    (parts.folder / "full").mkdir()
    full = parts.measure("full", *parts.groups)
    assert full.returncode == 2
    assert "is not a part of a run" in full.stderr
    node = sandbox.run("worker", str(parts.plan), *parts.groups, "--into", "x", "--node", "../up")
    assert node.returncode == 2
    assert "--node NAME with only letters" in node.stderr
    assert not (parts.folder / "one").exists()


def test_parts_that_do_not_belong_together_are_not_merged(sandbox: Any, planned: Any) -> None:
    """Parts of two plans, a folder of something else, a journal that was damaged: no run comes of them."""
    parts = planned("toy", "--models", "noop")
    assert parts.measure("one", *parts.groups).returncode == 0
    other = planned("toy", "--models", "sum")
    assert other.measure("two", *other.groups).returncode == 0
    mixed = parts.merge("one", "two")
    assert mixed.returncode == 2
    assert "their plans differ" in mixed.stderr
    nothing = parts.merge("one", "none")
    assert nothing.returncode == 2
    assert "is not a part of a run" in nothing.stderr
    journal = parts.folder / "two" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"status":"pass"', b'"status":"oops"'))
    damaged = parts.merge("two")
    assert damaged.returncode == 3
    assert "the line is damaged" in damaged.stderr
    assert sandbox.store.run_ids() == ()


def test_only_logs_are_taken_from_a_folder(sandbox: Any, planned: Any) -> None:
    """A store is published: what a link leads to stays where it is."""
    parts = planned("toy", "--models", "noop")
    assert parts.measure("one", *parts.groups).returncode == 0
    secret = parts.folder / "secrets"
    secret.mkdir()
    (secret / "key").write_text("geheim")
    logs = parts.folder / "one" / "logs"
    (logs / "link.log").symlink_to(secret / "key")
    (logs / "folder").symlink_to(secret)
    with (logs / "huge.log").open("wb") as file:
        file.truncate(65 << 20)
    merged = parts.merge("one")
    assert merged.returncode == 0, merged.stderr
    (log,) = [row.log for row in sandbox.rows()]
    folder = sandbox.folder()
    assert (folder.path / log).is_file()
    assert not list(folder.logs.rglob("*key"))
    assert {"link.log", "folder", "huge.log"}.isdisjoint(each.name for each in folder.logs.rglob("*"))
    assert (
        "these files are not logs and were not copied: folder, huge.log, link.log"
        in folder.journal_path.read_text(encoding="utf-8")
    )


def test_a_link_in_place_of_the_logs_is_not_followed(sandbox: Any, planned: Any) -> None:
    """The rows are merged all the same, as they are where there are no logs at all."""
    parts = planned("toy", "--models", "noop,sum")
    assert parts.measure("one", parts.groups[0]).returncode == 0
    assert parts.measure("two", parts.groups[1]).returncode == 0
    secret = parts.folder / "secrets"
    secret.mkdir()
    (secret / "key").write_text("geheim")
    shutil.rmtree(parts.folder / "one" / "logs")
    (parts.folder / "one" / "logs").symlink_to(secret)
    shutil.rmtree(parts.folder / "two" / "logs")
    merged = parts.merge("one", "two")
    assert merged.returncode == 0, merged.stderr
    assert Counter(row[0] for row in parts.published().values()) == {"pass": 2}
    assert not list(sandbox.folder().logs.rglob("key"))


@pytest.fixture
def two_torches(sandbox: Any, other_torch: Path) -> Parts:
    """A plan whose parts ``first`` and ``second`` were measured with two versions of torch."""
    parts = Parts(sandbox, "toy", "--models", "mlp,sum", "--device", "cpu")
    other = {"PYTHONPATH": f"{other_torch}:{sandbox.environment['PYTHONPATH']}"}
    for name, group, variables in zip(("first", "second"), parts.groups, ({}, other), strict=True):
        done = sandbox.run(*parts.words(name, group), **variables)
        assert done.returncode == 0, done.stderr
    return parts


@pytest.mark.torch
def test_parts_by_two_versions_of_torch_are_no_run(
    sandbox: Any, two_torches: Parts, other_torch: Path
) -> None:
    """Nothing is written; where somebody wants it all the same, each row says its versions."""
    done = two_torches.merge("first", "second")
    assert done.returncode == 2
    assert "second would mix versions: torch 2.7.1 instead of " in done.stderr
    assert sandbox.store.run_ids() == ()
    assert two_torches.merge("first").returncode == 3
    again = two_torches.merge("second")
    assert again.returncode == 2, again.stderr
    (run_id,) = sandbox.store.run_ids()
    resume = ("run", "--resume", run_id, "--store", str(sandbox.store_path))
    other = f"{other_torch}:{sandbox.environment['PYTHONPATH']}"
    resumed = sandbox.run(*resume, PYTHONPATH=other)
    assert resumed.returncode == 2, resumed.stderr
    assert "would mix versions: torch 2.7.1 instead of " in resumed.stderr
    assert len(sandbox.rows()) == 1
    done = two_torches.merge("second", "--mixed-versions")
    assert done.returncode == 0, done.stderr
    second = next(row for row in sandbox.rows() if dict(row.facts)["node"] == "second")
    assert dict(second.facts)["torch"] == "2.7.1"


@pytest.mark.torch
def test_rows_of_mixed_parts_all_say_their_versions(sandbox: Any, two_torches: Parts) -> None:
    """Those of the first version, too."""
    done = two_torches.merge("first", "second", "--mixed-versions")
    assert done.returncode == 0, done.stderr
    versions = {dict(row.facts)["node"]: dict(row.facts)["torch"] for row in sandbox.rows()}
    assert versions["second"] == "2.7.1" != versions["first"]
    assert {dict(row.facts)["torchgauge"] for row in sandbox.rows()} == {__version__}


def test_a_worker_measures_no_plan_of_another_torchgauge(sandbox: Any, planned: Any) -> None:
    """Neither does a run go on with it; where somebody wants it, rows say which one measured."""
    parts = planned("toy", "--models", "noop,sum")
    plan = json.loads(parts.plan.read_text())
    assert plan["torchgauge"] == __version__
    parts.plan.write_text(json.dumps({**plan, "torchgauge": "0.0.9"}))
    done = parts.measure("here", *parts.groups)
    assert done.returncode == 2
    assert f"was planned by torchgauge 0.0.9, but this is torchgauge {__version__}" in done.stderr
    assert not (parts.folder / "here").exists()
    done = parts.measure("here", parts.groups[0], "--mixed-versions")
    assert done.returncode == 0, done.stderr
    assert parts.merge("here").returncode == 3
    assert {dict(row.facts)["torchgauge"] for row in sandbox.rows()} == {__version__}
    resume = ("run", "--resume", "latest", "--store", str(sandbox.store_path))
    assert "planned by torchgauge 0.0.9" in sandbox.run(*resume).stderr
    assert sandbox.run(*resume, "--mixed-versions").returncode == 0
