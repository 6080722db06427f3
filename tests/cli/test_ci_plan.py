"""``torchgauge ci plan``, ``init`` and ``watch`` as a workflow's steps call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.results.durations import recent_durations, recorded_durations
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import read_campaign

TEXT = """\
version: 1
campaign: {suites: [toy], configs: [eager]}
pools:
  - {name: one, device: fake, runs-on: [ubuntu-latest], shards: 2, trust: anyone, base: "torch==2.12.0"}
  - {name: two, device: fake, runs-on: [self-hosted, tg-two], shards: 3}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with torchgauge.yml and the files of a step, which is the current one."""
    (tmp_path / "torchgauge.yml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def outputs(folder: Path) -> dict[str, str]:
    """The outputs of a step."""
    lines = (folder / "GITHUB_OUTPUT").read_text().splitlines()
    return {lines[at].partition("<<")[0]: lines[at + 1] for at in range(0, len(lines), 3)}


def test_a_plan_is_written_and_handed_on(here, invoke):
    """The file can be read back; the outputs are the matrix of its jobs, its name, and that there is one."""
    done = invoke("ci", "plan", "--night", "2027-01-31", "--torch", "2.13.0", "--github")
    assert done.exit_code == 0, done.output
    plan = read_campaign(here / "campaign.json")
    said = outputs(here)
    legs = json.loads(said["matrix"])["include"]
    assert [(leg["pool"], leg["shard"]) for leg in legs] == [
        ("one", 1), ("one", 2), ("two", 1), ("two", 2), ("two", 3)
    ]  # fmt: skip
    assert legs[2]["runs_on"] == ["self-hosted", "tg-two"]
    assert (said["campaign"], said["nothing"], said["torch"]) == (plan.campaign_id, "false", "2.13.0")
    assert plan.campaign_id.startswith("2027-01-31-2.13.0-")
    assert plan.campaign_id in (here / "GITHUB_STEP_SUMMARY").read_text()


def test_a_night_that_is_whole_is_not_planned_again(here, invoke, process):
    """Planned, measured and collected: ``--once`` then finds all of it and sets `nothing`, not before."""
    text = TEXT.replace("suites: [toy]", "suites: [toy], models: [noop]")
    (here / "torchgauge.yml").write_text(text[: text.index("  - {name: two")])
    night = (
        utc(SYSTEM_CLOCK.now()).date().isoformat()
    )  # once: the two plans may lie on both sides of midnight
    again = ("ci", "plan", "--once", "--github", "--store", "results", "--night", night)
    assert invoke(*again).exit_code == 0
    said = outputs(here)
    assert said["nothing"] == "false"
    artifact = json.loads(said["matrix"])["include"][0]["artifact"] + "-1"
    quick = ("--measure-seconds", "0.1", "--no-calibration", "--attempt", "1")
    done = process("ci", "run", "--pool", "one", "--out", f"artifacts/{artifact}", "--store", "runs", *quick)
    assert done.returncode == 0, done.stderr
    done = process("ci", "collect", "artifacts", "--store", "results")
    assert done.returncode == 0, done.stderr
    (here / "GITHUB_OUTPUT").unlink()
    (here / "campaign.json").unlink()
    assert invoke(*again).exit_code == 0
    assert outputs(here) == {"matrix": '{"include":[]}', "campaign": said["campaign"], "nothing": "true"}
    assert not (here / "campaign.json").exists()


def test_a_pull_request_has_one_job_for_each_pool(here, invoke):
    """Base and head take turns in one job, which knows both and is called as the gate calls its set."""
    assert invoke("ci", "plan", "--pull-request", "--trust", "anyone", "--github").exit_code == 0
    (leg,) = json.loads(outputs(here)["matrix"])["include"]
    assert (leg["pool"], leg["of"], leg["artifact"]) == ("one", 1, "pr-gate-v1-one")
    assert (leg["base"], leg["head"]) == ("torch==2.12.0", "")


@pytest.mark.parametrize("named", ["", " ", ","])
def test_a_label_that_names_no_pool_plans_none(here, process, named):
    """`torchgauge-run:` is no label for every machine; only a night with an empty list of pools takes all."""
    done = process("ci", "plan", "--pull-request", "--pool", named, "--github")
    assert (done.returncode, "no pool was given" in done.stderr) == (5, True)
    assert outputs(here) == {"matrix": '{"include":[]}', "campaign": "", "nothing": "true"}
    (here / "GITHUB_OUTPUT").unlink()
    assert process("ci", "plan", "--pool", named, "--github").returncode == 0
    assert {leg["pool"] for leg in json.loads(outputs(here)["matrix"])["include"]} == {"one", "two"}


def test_an_empty_plan_says_so_and_ends_with_five(here, process):
    """The matrix is empty, `nothing` is true, and no campaign is written."""
    (here / "torchgauge.yml").write_text(TEXT.replace("configs: [eager]", "models: ['no-such-*']"))
    done = process("ci", "plan", "--github")
    assert done.returncode == 5, done.stderr
    assert outputs(here) == {"matrix": '{"include":[]}', "campaign": "", "nothing": "true"}
    assert not (here / "campaign.json").exists()


@pytest.mark.parametrize(
    "case",
    [
        ("", "", ("--pool", "tow"), "did you mean two"),
        ("", "", ("--night", "tonight"), "not a date"),
        ("", "", ("--sha", "abc"), "not a full commit"),
        ("suites: [toy]", "suites: [toyy]", (), "toyy"),
        ("[ubuntu-latest]", "[ubuntu-old]", (), "torchgauge.yml:4"),
        ("[ubuntu-latest]", "[]", (), "no runner labels"),
    ],
)
def test_a_mistake_ends_with_two(here, process, case):
    """Unknown names, labels and times are a person's mistakes: the word, and no traceback."""
    old, new, words, message = case
    (here / "torchgauge.yml").write_text(TEXT.replace(old, new, 1))
    done = process("ci", "plan", *words)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert message in done.stderr


def test_outputs_outside_a_step_are_refused(here, process, monkeypatch):
    """``--github`` without the runner's file says what to leave out."""
    monkeypatch.delenv("GITHUB_OUTPUT")
    done = process("ci", "plan", "--github")
    assert (done.returncode, "leave out --github" in done.stderr) == (2, True)


def test_jobs_are_sized_by_what_a_store_remembers(here, invoke, store):
    """What a published run took is what the plan expects of that case; nothing is known without a store."""
    case = "toy/noop:inference:float32:b1:eager@fake"
    (seconds,) = recent_durations(Store.open(store), [case, "gone"])[case]
    assert seconds > 0
    assert recorded_durations(None, [case]) == recorded_durations(str(here / "none"), [case]) == {}
    (here / "torchgauge.yml").write_text(TEXT.replace("suites: [toy]", "suites: [toy], models: [noop]"))
    assert invoke("ci", "plan", "--store", str(store)).exit_code == 0
    (shard,) = read_campaign(here / "campaign.json").pools[0].shards
    assert shard.cases == (case,)
    assert shard.expected_s == pytest.approx(seconds, abs=0.001)


def test_workflows_are_written_from_the_file(here, invoke, process):
    """Six files; again nothing changes; a changed one is shown and kept; a dry run writes nothing."""
    pinned = f'torchgauge: "torchgauge==9.1 --hash=sha256:{"a" * 64}"\n'
    (here / "torchgauge.yml").write_text(TEXT + pinned)
    assert invoke("ci", "init", "--dry-run").exit_code == 0
    assert not (here / ".github").exists()
    assert invoke("ci", "init").exit_code == 0
    folder = here / ".github" / "workflows"
    assert len(list(folder.iterdir())) == 4
    assert invoke("ci", "init").output.count("same ") == 6
    assert "torchgauge==9.1 --hash" in (here / ".github" / "torchgauge.txt").read_text()
    (folder / "torchgauge-nightly.yml").write_text("name: mine\n")
    done = process("ci", "init")
    assert (done.returncode, "-name: mine" in done.stderr) == (2, True)
    assert process("ci", "init", "--force").returncode == 0
    assert "name: torchgauge nightly" in (folder / "torchgauge-nightly.yml").read_text()


def test_the_watch_ends_with_one_for_a_missing_night(here, process):
    """Words on stderr, an object on stdout, the same in the summary; and no alarm for what is not due."""
    done = process(
        "ci", "watch", "--store", "gone", "--now", "2027-01-31T06:00", "--expect-by", "06:00", "--json"
    )
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["alarm"], said["nights"][0]["night"], said["nights"][0]["state"]) == (
        True,
        "2027-01-31",
        "missing",
    )
    assert "night 2027-01-31: missing" in done.stderr
    assert "**missing**" in (here / "GITHUB_STEP_SUMMARY").read_text()
    assert process("ci", "watch", "--expect-by", "soon").returncode == 2
