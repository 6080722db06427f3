"""A night of which something is missing: what collect, gate, watch and issues say of it, in their own words.

Each variant is a night of two pools, `card` with two shards and `sim` with one, and what is wrong with it.
All four commands read it from real files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import MODELS, Night, files_of, sealed, shard_plan, write_folder, write_zip
from gate_parts import config_of
from github_server import BOT, TOKEN, GitHub, serving
from stored_runs import case
from test_job_statements import job as made

from torchgauge.cli.main import cli
from torchgauge.errors import DataFileError
from torchgauge.records import Cause, Phase, Status
from torchgauge.results.journal import RunState
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, campaign_json
from torchgauge.workflows.issues import Do, plan_issues, read_issue
from torchgauge.workflows.job_statements import job_name
from torchgauge.workflows.night_findings import AbsentPool, NightFindings
from torchgauge.workflows.planned_nights import EndedJobs, keep_plan, planned_nights

CASES = [case(name) for name in MODELS]
CARD = PoolPlan(
    "card", "fake", ("x",), "", 4.0, tuple(shard_plan(i, 2, CASES[2 * i - 2 : 2 * i]) for i in (1, 2))
)
SIM = PoolPlan("sim", "fake", ("x",), "", 4.0, (shard_plan(1, 1, CASES[:2]),))
WHOLE = (("card", 1), ("card", 2), ("sim", 1))
NOW = "2026-05-29T05:30"
ABSENT = "no valid result set"
EMPTY_ZIP = b"PK\x05\x06" + bytes(18)


class TwoPools(Night):
    """A night of two pools, each of whose sets is packed by name."""

    def __init__(self, folder: Path, **changes) -> None:
        super().__init__(folder, pools=(CARD, SIM), **changes)
        self.number = 0
        (folder / "artifacts").mkdir(exist_ok=True)

    def hand_in(self, pool: str, shard: int, **options) -> Path:
        self.number += 1
        return self.pack(shard, run_id=f"20260528T202700Z-{self.number:08x}", pool=pool, **options)

    def artifact(self, pool: str, shard: int) -> Path:
        (found,) = (self.path / "artifacts").glob(f"*-{pool}-{shard}-1")
        return found

    def ci(self, *words: str) -> tuple[int, str]:
        """One command in the folder of the night: how it ended and what it said."""
        done = CliRunner().invoke(cli, ["ci", *words], env={"GITHUB_TOKEN": "", "GH_TOKEN": ""})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def walk(self, ended: str = "success") -> dict[str, tuple[int, str]]:
        """The four commands in their order."""
        (self.path / "campaign.json").write_text(campaign_json(self.campaign))
        store = ("--store", "store")
        return {
            "collect": self.ci("collect", "artifacts", *store, "--ended", ended),
            "gate": self.ci("gate", *store),
            "issues": self.ci("issues", *store, "--dry-run", "--repository", "owner/name"),
            "watch": self.ci("watch", *store, "--config", "torchgauge.yml", "--now", NOW),
        }


@dataclass(frozen=True)
class Variant:
    """What is submitted and planned, and what is changed of it; exit codes and words of the commands."""

    name: str
    collect: str
    gate: str
    watch: str
    issues: str
    sets: Sequence[tuple[str, int]] = WHOLE
    edit: Callable[[TwoPools], object] = lambda night: None
    configured: tuple[str, ...] = ("card", "sim")
    plan: tuple[tuple[str, tuple[str, ...]], ...] = ()
    ended: str = "success"
    codes: tuple[int, int, int] = (3, 3, 1)


def no_byte(night: TwoPools) -> None:
    """The zip of `sim` is empty."""
    folder = night.artifact("sim", 1)
    shutil.rmtree(folder)
    folder.with_name(f"{folder.name}.zip").write_bytes(b"")


def no_file(night: TwoPools) -> None:
    """The zip of `sim` has no entry."""
    no_byte(night)
    night.path.joinpath("artifacts", f"{night.job(pool='sim').artifact}.zip").write_bytes(EMPTY_ZIP)


def empty_folder(night: TwoPools) -> None:
    """The artifact of `sim` has no file."""
    for file in night.artifact("sim", 1).iterdir():
        file.unlink()


def no_manifest(night: TwoPools) -> None:
    """The artifact of `sim` lacks the file that says whose it is."""
    (night.artifact("sim", 1) / "manifest.json").unlink()


def cut_off(night: TwoPools) -> None:
    """Half of the journal of `sim` came."""
    file = night.artifact("sim", 1) / "journal.jsonl"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def renamed(pool: str, *, keep: bool) -> Callable[[TwoPools], None]:
    """The set of `sim` says that it is of ``pool``, in place of its own or beside it."""

    def edit(night: TwoPools) -> None:
        folder = night.artifact("sim", 1)
        files = sealed(files_of(folder), pool=pool)
        if not keep:
            shutil.rmtree(folder)
        write_zip(folder.with_name(f"{folder.name.replace('-sim-', f'-{pool}-')}.zip"), list(files.items()))

    return edit


def of_another_plan(night: TwoPools) -> None:
    """The set of `sim` was made with a plan of the same campaign from before it was planned again."""
    folder = night.artifact("sim", 1)
    files = sealed(files_of(folder), campaign_digest="0" * 16)
    shutil.rmtree(folder)
    write_folder(folder, files)


def silent(night: TwoPools) -> None:
    """The machine of `sim` ran out of time before its second case."""
    told = {"status": Status.NOT_RUN, "cause": Cause.BUDGET, "phase": Phase.START, "realised": None}
    rows = [night.result(night.cases[0]), night.result(night.cases[1], latency=None, **told)]
    shutil.rmtree(night.artifact("sim", 1))
    night.hand_in("sim", 1, results=rows, state=RunState.OUT_OF_BUDGET)


NOT_SIM = WHOLE[:2]
SIM_GONE = {
    "collect": f"gap: pool sim, shard 1 of 1: {ABSENT} (2 cases)",
    "gate": f"incomplete: pool sim, shard 1 of 1: {ABSENT} (2 cases)",
    "watch": "pool sim, shard 1 of 1: no result",
    "issues": "open: Missing results of pool sim",
}
ENDED = {"watch": "incomplete", "issues": "nothing to do", "codes": (3, 3, 1)}
GPU = ("card", "sim", "gpu")
VARIANTS = [
    Variant("a pool's artifact is missing", **SIM_GONE, sets=NOT_SIM),
    Variant(
        "one shard of two is missing",
        f"gap: pool card, shard 2 of 2: {ABSENT} (2 cases)",
        f"incomplete: pool card, shard 2 of 2: {ABSENT}",
        "pool card, shard 2 of 2: no result",
        "no valid result set for 1 of 2 shards (2), so 2 planned cases have no result",
        sets=(("card", 1), ("sim", 1)),
    ),
    Variant(
        "the first shard of two is missing",
        f"gap: pool card, shard 1 of 2: {ABSENT} (2 cases)",
        f"incomplete: pool card, shard 1 of 2: {ABSENT}",
        "pool card, shard 1 of 2: no result",
        "1 of 2 shards (1)",
        sets=(("card", 2), ("sim", 1)),
    ),
    Variant(
        "nothing came",
        "incomplete, 0/6 cases: none",
        "incomplete: no case has a result",
        "missing, campaign 2026-05-28",
        "no valid result set for 2 of 2 shards (1, 2)",
        sets=(),
    ),
    *(
        Variant(
            f"the jobs ended as {ended} with all sets there",
            f"gap: the measuring jobs ended with {ended}",
            f"incomplete: the measuring jobs ended with {ended}",
            **ENDED,
            ended=ended,
        )
        for ended in ("failure", "cancelled", "skipped", "a word of tomorrow")
    ),
    Variant(
        "a pool was never planned, and nobody asked for that",
        "complete, 6/6 cases",
        "incomplete: pool gpu: torchgauge.yml lists this pool but the plan does not",
        "pool gpu: no result",
        "open: Missing results of pool gpu",
        configured=GPU,
        codes=(0, 3, 1),
    ),
    Variant(
        "a pool was left out on request",
        "left out on request: pool gpu",
        "left out on request: pool gpu",
        "pool gpu: left out of the plan on request",
        "nothing to do",
        configured=GPU,
        plan=(("left_out", ("gpu",)),),
        codes=(0, 0, 1),
    ),
    Variant(
        "no case of the campaign is for a pool's device",
        "gap: pool gpu: no case is planned, since",
        "incomplete: pool gpu: no case is planned, since",
        "pool gpu: no case is planned, since",
        "open: Missing results of pool gpu",
        configured=GPU,
        plan=(("empty", ("gpu",)),),
    ),
    Variant("an artifact without a byte", **SIM_GONE, edit=no_byte),
    Variant("an artifact without a file", **SIM_GONE, edit=no_file),
    Variant("a folder without a file", **SIM_GONE, edit=empty_folder),
    Variant("a set without its manifest", **SIM_GONE, edit=no_manifest),
    Variant("a set that was cut off", **SIM_GONE, edit=cut_off),
    Variant(
        "a set of a pool that the plan does not have, in place of one",
        **SIM_GONE,
        edit=renamed("gpu", keep=False),
    ),
    Variant(
        "a set of another pool of the plan, in place of one", **SIM_GONE, edit=renamed("card", keep=False)
    ),
    Variant("a set of another plan of the campaign", **SIM_GONE, edit=of_another_plan),
    Variant(
        "a set of a pool that the plan does not have, beside all others",
        "foreign_shard",
        "rejected: results-2026-05-28-torch-2.9.0-aabbccdd-gpu-1-1: foreign_shard",
        "complete",
        "nothing to do",
        edit=renamed("gpu", keep=True),
        codes=(0, 0, 0),
    ),
    Variant(
        "a case that was planned was not run",
        "gap: pool sim, shard 1: 1 not_run (out_of_budget)",
        "incomplete: pool sim, shard 1: 1 not_run",
        "pool sim, shard 1 of 1: 1 of 2 cases were not measured",
        "nothing to do",
        edit=silent,
    ),
]


@pytest.fixture
def folder(monkeypatch, tmp_path: Path) -> Path:
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchgauge.yml").write_text(config_of("card", "sim"))
    return tmp_path


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each.name)
def test_what_is_missing_is_said_by_all_four(variant: Variant, folder: Path) -> None:
    """Neither is it green where it must not be."""
    night = TwoPools(folder, **dict(variant.plan))
    (folder / "torchgauge.yml").write_text(config_of(*variant.configured))
    for pool, shard in variant.sets:  # may be empty: of one night nothing comes
        night.hand_in(pool, shard)
    variant.edit(night)
    said = night.walk(variant.ended)
    for command in ("collect", "gate", "watch", "issues"):
        assert getattr(variant, command) in said[command][1], (command, said[command][1])
    assert tuple(said[command][0] for command in ("collect", "gate", "watch")) == variant.codes


def test_a_night_of_which_nothing_is_missing_is_green(folder: Path) -> None:
    """So that the variants fail for what they leave out."""
    night = TwoPools(folder)
    for pool, shard in WHOLE:
        night.hand_in(pool, shard)
    assert {command: code for command, (code, _) in night.walk().items()} == dict.fromkeys(
        ("collect", "gate", "issues", "watch"), 0
    )


def test_a_night_whose_plan_failed_is_missing_and_nobody_judges_it(folder: Path) -> None:
    """There is no plan to hold anything against: the commands refuse, and the watch alarms."""
    night = TwoPools(folder)
    for words in (("collect", "artifacts", "--store", "store"), ("gate", "--store", "store")):
        with pytest.raises(DataFileError, match=r"campaign\.json: cannot be read"):
            night.ci(*words)
    code, said = night.ci("watch", "--store", "store", "--now", NOW)
    assert (code, "night 2026-05-28: missing" in said) == (1, True)


def test_the_watch_needs_no_torchgauge_yml_to_miss_a_pool(folder: Path) -> None:
    """The intake keeps what was planned: a pool that never sent anything is missed from the store alone."""
    night = TwoPools(folder)
    night.hand_in("card", 1)
    night.hand_in("card", 2)
    night.walk()
    code, said = night.ci("watch", "--store", "store", "--now", NOW)
    assert (code, "pool sim, shard 1 of 1: no result" in said) == (1, True)


def again(night: TwoPools, **changes) -> TwoPools:
    """The same night, planned a second time."""
    night.campaign = replace(night.campaign, created_at=night.campaign.created_at + 30, **changes)
    shutil.rmtree(night.path / "artifacts")
    (night.path / "artifacts").mkdir()
    return night


def test_a_second_plan_for_one_pool_hides_nothing_that_the_first_one_missed(folder: Path) -> None:
    """It is whole by itself, and the night is not; with the missing pool it is."""
    night = TwoPools(folder)
    night.hand_in("card", 1)
    night.hand_in("sim", 1)
    night.walk()
    again(night, pools=(SIM,), left_out=("card",)).hand_in("sim", 1)
    code, said = night.walk()["watch"]
    assert (code, "pool card, shard 2 of 2: no result" in said) == (1, True)
    again(night, pools=(CARD,), left_out=("sim",))
    night.hand_in("card", 1)
    night.hand_in("card", 2)
    assert night.walk()["watch"][0] == 0


def test_two_halves_of_different_plans_are_no_whole(folder: Path) -> None:
    """A night that is planned again may cut its shards elsewhere: shard 1 of one and shard 2 of the other."""
    night = TwoPools(folder)
    night.hand_in("card", 1)
    night.hand_in("sim", 1)
    night.walk()
    again(night).hand_in("card", 2)
    code, said = night.walk()["watch"]
    assert code == 1
    assert "pool card, shard" in said


def test_a_damaged_plan_in_the_history_is_an_error_and_no_shorter_one(folder: Path) -> None:
    """A watch that could not read what was planned must not find that nothing was."""
    night = TwoPools(folder)
    night.walk()
    (kept,) = (folder / "store" / "campaigns").iterdir()
    kept.write_bytes(kept.read_bytes()[:-20])
    with pytest.raises(DataFileError, match="not JSON"):
        night.ci("watch", "--store", "store", "--now", NOW)


def test_a_pool_that_goes_after_a_night_without_it_is_missed(folder: Path) -> None:
    """Left out as asked tonight, gone without a word tomorrow: its cases are still asked after."""
    night = TwoPools(folder)
    for pool, shard in WHOLE:
        night.hand_in(pool, shard)
    assert night.walk()["gate"][0] == 0
    days = (("2026-05-29", (CARD,), ("sim",)), ("2026-05-30", (CARD,), ()))
    said = []
    for number, (day, pools, left_out) in enumerate(days, start=1):
        night.begin += 86_400
        name = f"{day}-torch-2.9.0-aabbccdd"
        plan: CampaignPlan = replace(
            night.campaign, campaign_id=name, night=day, pools=pools, left_out=left_out
        )
        again(night)
        night.campaign = replace(plan, created_at=night.begin - 60)
        for shard in (1, 2):
            night.pack(shard, run_id=f"2026{day[5:7]}{day[8:]}T202700Z-{16 * number + shard:08x}")
        (folder / "torchgauge.yml").write_text(config_of("card", *left_out))
        said.append(night.walk()["gate"])
    assert said[0][0] == 0
    assert "measured before, not planned now: 2 cases" in said[1][1]
    assert said[1][0] == 3


BLANK = NightFindings("c", "2026-05-28", (), (), 0, (), (), (), frozenset(), frozenset())


def test_the_issue_of_an_absent_pool_is_closed_when_all_of_it_comes_and_opened_again() -> None:
    """By its hidden line; half of a pool closes nothing, and what a person closed stays closed."""
    gone = replace(BLANK, absent=(AbsentPool("sim", "no valid result set"),))
    (opened,) = plan_issues(gone, []).steps
    assert (opened.do, opened.title) == (Do.OPEN, "Missing results of pool sim")
    told = {"number": 7, "state": "open", "user": {"login": BOT}, "title": opened.title, "body": opened.body}
    known = read_issue(told)
    assert plan_issues(gone, [known]).steps == ()
    assert plan_issues(BLANK, [known]).steps == ()
    assert plan_issues(replace(BLANK, whole=("card",)), [known]).steps == ()
    (closed,) = plan_issues(replace(BLANK, whole=("card", "sim")), [known]).steps
    assert (closed.do, closed.number) == (Do.CLOSE, 7)
    by_us = read_issue({**told, "state": "closed", "body": closed.body})
    assert [step.do for step in plan_issues(gone, [by_us]).steps] == [Do.REOPEN]
    assert plan_issues(gone, [read_issue({**told, "state": "closed"})]).left == 1


HOW = [
    ("sim 1 of 1", "failure", "pool sim, shard 1 of 1: no result, its job ended with failure"),
    ("sim 1 of 1", "cancelled", "pool sim, shard 1 of 1: no result, its job ended with cancelled"),
    ("sim 1 of 1", "", "pool sim, shard 1 of 1: no result, its job ended with unfinished"),
    ("sim 1 of 1", None, "pool sim, shard 1 of 1: no result, its job never started"),
    ("sim 1 of 1", "success", "pool sim, shard 1 of 1: no result\n"),
    ("card 2 of 2", "failure", "shard 2 of 2: its job ended with failure, although a result set was"),
    ("card 2 of 2", "timed_out", "its job ended with timed_out, although a result set was submitted"),
    ("card 2 of 2", "a\n::x::\x1b[2J", "although a result set was submitted"),
]


@pytest.mark.parametrize(("job", "ended", "words"), HOW)
def test_collect_and_watch_say_how_a_job_ended(job, ended, words, folder: Path) -> None:
    """As the Git host says: what failed or was cancelled looks neither like a pass nor as if it ran still."""
    night, stated = TwoPools(folder), {}
    (folder / "campaign.json").write_text(campaign_json(night.campaign))
    for pool, shard in WHOLE if "a result set was" in words else NOT_SIM:
        digest = hashlib.sha256((night.hand_in(pool, shard) / "manifest.json").read_bytes()).hexdigest()
        stated[job_name(pool, shard, len(night.campaign.pool(pool).shards))] = (f"sha256:{digest}",)
    ends = dict.fromkeys(("card 1 of 2", "card 2 of 2", "sim 1 of 1"), "success") | {job: ended}
    jobs = [
        made(number, name, *stated.get(name, ())) | {"conclusion": how or None}
        for number, (name, how) in enumerate(ends.items())
        if how is not None
    ]
    with serving(GitHub(page=100, night_jobs=lambda _run: jobs)) as github:
        names = {"API_URL": github.base, "TOKEN": TOKEN, "REPOSITORY": "owner/project", "RUN_ID": "7"}
        words_of = ["ci", "collect", "artifacts", "--store", "store", "--ask-github"]
        done = CliRunner().invoke(cli, words_of, env={f"GITHUB_{name}": said for name, said in names.items()})
    told = words.partition("its job")
    assert (done.exit_code, f"{told[1]}{told[2]}" in done.output) == (3, True), done.output
    code, said = night.ci("watch", "--store", "store", "--now", NOW)
    assert (code, words in said) == (1, True), said
    assert not [line for line in said.splitlines() if line.startswith("::")]
    assert "\x1b" not in said


def test_a_job_that_is_started_again_and_ends_well_is_whole(folder: Path) -> None:
    """What is known last counts, and a collection that asked nobody forgets nothing."""
    night = TwoPools(folder)
    plan, store = night.campaign, night.store
    keep_plan(store, plan, EndedJobs("failure", (("sim 1 of 1", "failure"),)))
    keep_plan(store, plan)
    assert planned_nights(store)[0].ended.of("sim", 1, 1) == "its job ended with failure"
    keep_plan(store, plan, EndedJobs("success", (("sim 1 of 1", "success"),)))
    (kept,) = planned_nights(store)
    assert (kept.ended.of("sim", 1, 1), kept.ended.failed) == ("", False)


def test_a_plan_that_an_older_torchgauge_kept_is_read(folder: Path) -> None:
    """It says nothing of jobs."""
    night = TwoPools(folder)
    keep_plan(night.store, night.campaign)
    (file,) = (night.store.path / "campaigns").glob("*.json")
    told = json.loads(file.read_text())
    del told["ended"]
    file.write_text(json.dumps(told))
    assert planned_nights(night.store)[0].ended == EndedJobs()
