"""A pull request of which something is missing: the check is not green, and the words say what it is.

Each variant is a run of two pools that anyone may use, `cpu` and `npu`, and what is wrong with it. It is read
by the command, as in the job that comments, from a real server.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_parts import SHA, base_with, config_of, event, gate_set, job, of, pull, report, zipped
from github_server import TOKEN, GitHub, serving

from torchgauge.cli.main import cli
from torchgauge.records.comparison import Verdict
from torchgauge.workflows.gate_plan import GateJob, gate_plan

FINE = report(of(Verdict.UNCHANGED))
WORSE = report(of(Verdict.REGRESSION))
EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
BOTH = {"cpu": FINE, "npu": FINE}
OWN = "torchgauge: sim"


def jobs(**ended: str) -> tuple[GateJob, ...]:
    """The jobs of a run: the plan, then those of pools, each with how it ended."""
    return (job("plan"), *(job(name, how) for name, how in ended.items()))


WELL = jobs(cpu="success", npu="success")


@dataclass(frozen=True)
class Variant:
    """A run: its sets by pool (bytes are an artifact as it is), its jobs, its end; what is told of it."""

    name: str
    told: str
    sets: dict[str, object] = field(default_factory=lambda: BOTH)
    jobs: Sequence[GateJob] = WELL
    ended: str = "success"
    check: str = "action_required"
    pools: tuple[str, ...] = ("cpu", "npu")


ONE = {"cpu": FINE}
LOST = jobs(cpu="success", npu="failure")
VARIANTS = [
    Variant("a pool submitted nothing", "its job ended with success, and submitted none", ONE),
    Variant("a job failed, the run did not", "its job ended with failure", ONE, LOST),
    Variant("a job failed", "npu ended with failure", ONE, LOST, "failure"),
    Variant(
        "a job was cancelled",
        "its job ended with cancelled",
        ONE,
        jobs(cpu="success", npu="cancelled"),
        "cancelled",
    ),
    Variant(
        "a job took too long",
        "its job ended with timed_out",
        ONE,
        jobs(cpu="success", npu="timed_out"),
        "failure",
    ),
    Variant(
        "a job never began", "its job ended with unfinished", ONE, jobs(cpu="success", npu=""), "cancelled"
    ),
    Variant("a pool was never planned", "the run had no job for this pool", ONE, jobs(cpu="success")),
    Variant("no pool was planned", "No pool was planned", {}, (job("plan"),), pools=()),
    Variant(
        "the plan failed",
        "the run had no job for this pool, plan ended with failure",
        {},
        (job("plan", "failure"),),
        "failure",
    ),
    Variant("the run could not start", "the run ended with startup_failure", {}, (), "startup_failure"),
    Variant("nothing came at all", "No valid result set was submitted", {}),
    Variant("the run failed with all sets there", "the run ended with failure", ended="failure"),
    Variant("the run was cancelled with all sets there", "the run ended with cancelled", ended="cancelled"),
    Variant("the run timed out with all sets there", "the run ended with timed_out", ended="timed_out"),
    Variant("the run went stale with all sets there", "the run ended with stale", ended="stale"),
    Variant("the run ended in a word of tomorrow", "the run ended with fine_really", ended="fine_really"),
    Variant(
        "another job failed with all sets there",
        "more ended with failure",
        ended="failure",
        jobs=(*WELL, job("more", "failure")),
    ),
    Variant("an artifact without a byte", "rejected (empty)", {**ONE, "npu": b""}),
    Variant("an artifact without a file", "rejected (empty)", {**ONE, "npu": EMPTY_ZIP}),
    Variant(
        "a set that compared nothing", "| `npu` | Incomplete: this is not a pass |", {**ONE, "npu": report()}
    ),
    Variant("a set of a pool that is not in the file", "this pool is not in the plan", {**BOTH, "gpu": FINE}),
    Variant(
        "a set of another pool in its place",
        "the run had no job for this pool",
        {**ONE, "gpu": FINE},
        jobs(cpu="success"),
    ),
    Variant("a set under a name that is almost the pool's", "| `npu` | Incomplete", {**ONE, "NPU": FINE}),
    Variant(
        "a set of a machine of one's own that nobody asked for",
        "this pool is not in the plan",
        {**BOTH, "sim": FINE},
    ),
    Variant(
        "a machine of one's own in place of a pool",
        "the run had no job for this pool",
        {**ONE, "sim": FINE},
        jobs(cpu="success", sim="success"),
    ),
    Variant(
        "a regression beside a pool that is missing",
        "| `npu` | Incomplete",
        {"cpu": WORSE},
        LOST,
        "failure",
        "failure",
    ),
    Variant(
        "a regression in a run that was cancelled",
        "| `cpu` | Regression |",
        {**BOTH, "cpu": WORSE},
        ended="cancelled",
        check="failure",
    ),
]


@pytest.fixture
def github(monkeypatch, tmp_path) -> Iterator[GitHub]:
    """A server with one pull request; the command runs where torchgauge.yml lies."""
    found = GitHub(page=100, pulls=[pull()])
    found.runs[77] = {"head_sha": SHA, "event": "pull_request", "run_attempt": 1}
    with serving(found):
        for name, value in {
            "no_proxy": "127.0.0.1,localhost",
            "GITHUB_API_URL": found.base,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": "owner/project",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        yield found


def told_of(github: GitHub, folder: Path, variant: Variant) -> str:
    """Let the comment job see the run that ``variant`` is; what it wrote on the page of its own run."""
    (folder / "torchgauge.yml").write_text(config_of(*variant.pools, own=("sim",)))
    github.jobs = [{"name": each.name, "conclusion": each.conclusion or None} for each in variant.jobs]
    github.artifacts = []
    for number, (pool, made) in enumerate(variant.sets.items(), start=1 + len(github.zips)):
        made_in = folder / f"made-{number}"
        data = made if isinstance(made, bytes) else zipped(gate_set(made_in, made, pool))
        github.artifacts.append({"id": number, "name": f"pr-gate-v1-{pool}", "size_in_bytes": len(data) or 1})
        github.zips[number] = data
    (folder / "event.json").write_text(json.dumps(event(conclusion=variant.ended)))
    done = CliRunner().invoke(cli, ["ci", "report", "comment", "--event", "event.json"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    return (folder / "summary.md").read_text()


def checks(github: GitHub) -> dict[str, str]:
    """Every check run with its conclusion; the newest of a name counts, as on GitHub."""
    return {each["name"]: each["conclusion"] for each in github.check_runs}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each.name)
def test_what_is_missing_is_said_and_is_no_pass(variant, github, tmp_path) -> None:
    """In the comment, with what to try, and in the check run of the commit."""
    summary = told_of(github, tmp_path, variant)
    (comment,) = github.comments
    assert variant.told in comment["body"]
    assert variant.told in summary
    assert "rerun the failed jobs" in comment["body"] or variant.name == "a set that compared nothing"
    assert checks(github) == {"torchgauge": variant.check}
    assert [each["head_sha"] for each in github.check_runs] == [SHA]


def test_a_run_of_which_nothing_is_missing_is_a_pass(github, tmp_path) -> None:
    """So that the variants fail for what they leave out."""
    told_of(github, tmp_path, Variant("whole", ""))
    assert checks(github) == {"torchgauge": "success"}
    assert "What is missing" not in github.comments[0]["body"]


def test_the_run_of_a_pool_that_was_named_makes_no_other_check_green(github, tmp_path) -> None:
    """A label after a regression brought one more pool: it has a check and a comment of its own."""
    told_of(github, tmp_path, Variant("red", "", {**BOTH, "cpu": WORSE}))
    told_of(github, tmp_path, Variant("label", "", {"sim": FINE}, jobs(sim="success")))
    assert checks(github) == {"torchgauge": "failure", "torchgauge sim": "success"}
    assert [each["body"].splitlines()[1] for each in github.comments] == [
        "### `torchgauge`: Regression",
        "### `torchgauge sim`: Pass",
    ]


def test_a_pool_that_was_named_and_died_is_missing(github, tmp_path) -> None:
    """Under its own name: the pools of everyone were not asked in that run."""
    told_of(github, tmp_path, Variant("label", "", {}, jobs(sim="cancelled"), "cancelled"))
    assert checks(github) == {"torchgauge sim": "action_required"}
    assert (
        "Incomplete: this is not a pass | `no result set was submitted: its job ended with cancelled` |"
        in (github.comments[0]["body"])
    )


def test_a_regression_in_the_last_of_many_pools_is_red(github, tmp_path) -> None:
    """A comment shows sixteen pools and judges all of them."""
    pools = tuple(f"pool-{number:02}" for number in range(20))
    sets = dict.fromkeys(pools, FINE) | {pools[-1]: WORSE}
    told_of(github, tmp_path, Variant("many", "", sets, jobs(**dict.fromkeys(pools, "success")), pools=pools))
    assert checks(github) == {"torchgauge": "failure"}
    body = github.comments[0]["body"]
    assert "| `pool-19` | Regression |" in body
    assert "4 more pools are not shown: 4 Pass." in body


def test_the_name_of_a_job_begins_no_line_and_acts_nowhere(github, tmp_path) -> None:
    """It is the author's of the pull request, and stands in the log and the comment of a job that writes."""
    evil = job("more\n::add-mask::a\r\x1b[2J @everyone `x` <img src=x>", "failure")
    variant = Variant("hostile", "", ONE, (*jobs(cpu="success"), evil), "failure")
    told_of(github, tmp_path, variant)
    (tmp_path / "event.json").write_text(json.dumps(event(conclusion="failure")))
    done = CliRunner().invoke(cli, ["ci", "report", "comment", "--event", "event.json"])
    assert not [line for line in done.output.splitlines() if line.lstrip().startswith("::")]
    assert "\x1b" not in done.output
    body = github.comments[0]["body"]
    outside = re.sub(r"`[^`\n]*`|<code>[^\n]*?</code>", "", body)
    assert "@everyone" not in outside
    assert "<img" not in outside
    assert "::add-mask::a" in html.unescape(body)  # said, as text


@pytest.mark.parametrize(
    ("ran", "pools", "named"),
    [
        ((), ("cpu",), False),
        (("gate / cpu",), ("cpu",), False),
        (("sim",), ("sim",), True),
        (("sim", "cpu"), ("cpu",), False),
        (("plan", "measure"), ("cpu",), False),
    ],
)
def test_only_a_run_without_any_pool_of_everyone_is_one_for_a_named_pool(ran, pools, named) -> None:
    """Else leaving a pool out would be a matter of adding another."""
    listed = tuple(GateJob(name.rpartition(" / ")[2], "success") for name in ran)
    found = gate_plan(base_with("cpu", own=("sim",)), listed, ())
    assert (found.pools, found.named) == (pools, named)
