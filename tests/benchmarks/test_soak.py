"""A night of a minute: the loop of parts, agents and driver killed, and every planned case has one row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from simulated_fleet import RUN, Dice, plan_of

from torchgauge.harness.executors.part_jobs import PartJob, Watched
from torchgauge.harness.parts.part_folder import PartFolder
from torchgauge.harness.run.rows import RowContext, row
from torchgauge.records import Result
from torchgauge.results.journal import Journal, Kind, PlanStamp

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"


def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """The kills hit who is at work; the driver is resumed, and the run is published and whole."""
    words = ("--cases", "120", "--agents", "3", "--kills", "6", "--mean", "0.15", "--seed", "3")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words, "--work", str(tmp_path / "work")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) == 6
    assert found["kills"]["driver"] == 1
    assert found["cases"] == 120
    assert [found[each] for each in ("lost", "doubled", "strays", "damage")] == [[], [], [], []]
    assert found["begun"] >= 120
    assert 0 <= found["idle_share"] < 1


def test_a_journal_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    """Each look takes what is new; one that its writer cut back is read again, and no row twice."""
    plan, dice = plan_of(6), Dice(1, 0.1)
    folder = PartFolder.begin(tmp_path / "part-1", plan)
    rows = [row(plan, each, dice.outcome(each.case), RowContext()) for each in plan.cases]
    watched = Watched(PartJob("part-1", plan.groups), folder, 0.0, {each.case.key for each in plan.cases})
    assert told(watched) == []
    with Journal.open_stamped(folder.journal_path, PlanStamp(RUN, plan.digest)) as journal:
        journal.append(Kind.RESULT, rows[:1])
        assert told(watched) == rows[:1]
        assert watched.end == folder.journal_path.stat().st_size
        journal.append(Kind.RESULT, rows[1:3])
        assert told(watched) == rows[1:3]
        assert told(watched) == []
    whole = folder.journal_path.read_bytes()
    folder.journal_path.write_bytes(whole + b'{"n":5,"kind":"res')
    assert told(watched) == []
    folder.journal_path.write_bytes(whole)
    assert told(watched) == []
    with Journal.open(folder.journal_path) as journal:
        journal.append(Kind.RESULT, rows[3:])
    assert told(watched) == rows[3:]
    assert not watched.left


def told(watched: Watched) -> list[Result]:
    """The rows that are news, as they were written."""
    return [each for item in watched.news() if isinstance(item, list) for each in item]
