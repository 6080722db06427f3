"""A pull request whose sets leave cases out, or with another base: that base says what was to come."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_parts import BASE, CAMPAIGN, config_of, event, gate_set, of, pull, report, zipped
from github_server import GitHub
from test_absent_pools import checks, github

from torchgauge.cli.main import cli
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.workflows.gate_base import shown_branch

__all__ = ["github"]

TWO = CAMPAIGN.replace("[noop]", "[noop, mlp]")
MLP = "toy/mlp:inference:float32:b32:eager@fake"
LOST = f"1 of 2 planned cases are missing: `{MLP}`"
SAME = Verdict.UNCHANGED


def comment(github: GitHub, folder: Path, config: str, *sets: tuple[str, Any]) -> str:
    """Let the comment job see a run that submitted ``sets`` of pools; the body of its comment."""
    (folder / "torchgauge.yml").write_text(config)
    github.artifacts = []
    for number, (pool, made) in enumerate(sets, start=1 + len(github.zips)):
        data = zipped(gate_set(folder / f"made-{number}", made, pool))
        github.artifacts.append({"id": number, "name": f"pr-gate-v1-{pool}", "size_in_bytes": len(data)})
        github.zips[number] = data
    (folder / "event.json").write_text(json.dumps(event()))
    done = CliRunner().invoke(cli, ["ci", "report", "comment", "--event", "event.json"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    return str(github.comments[-1]["body"]) if github.comments else ""


@dataclass(frozen=True)
class Variant:
    """What a set says; the words of the comment and the conclusion of the check."""

    name: str
    verdicts: Sequence[MetricVerdict]
    told: str = LOST
    check: str = "action_required"
    not_run: tuple[str, ...] = ()


def renamed(old: str, new: str) -> MetricVerdict:
    """A verdict on mlp under a name that is almost its own."""
    case = MLP.replace(old, new)
    return of(SAME, "mlp", base_case=case, head_case=case, pair_id=case)


VARIANTS = [
    Variant("all planned cases", (of(SAME), of(SAME, "mlp")), "Pass", "success"),
    Variant("more than was planned", (of(SAME), of(SAME, "mlp"), of(SAME, "conv")), "Pass", "success"),
    Variant("another batch", (of(SAME), renamed(":b32:", ":b16:")), "Pass", "success"),
    Variant("one of two", (of(SAME),)),
    Variant("another in its place", (of(SAME), of(SAME, "sum"))),
    Variant("nothing that was planned", (of(SAME, "sum"),), "2 of 2 planned cases are missing"),
    Variant("head against head alone", (of(SAME), of(SAME, "mlp", control=True))),
    Variant("the whole suite alone", (of(SAME), of(SAME, "mlp", pair_key=""))),
    Variant("another configuration", (of(SAME), renamed(":eager@", ":inductor@"))),
    Variant("another device", (of(SAME), renamed("@fake", "@cpu"))),
    Variant("another mode", (of(SAME), renamed(":inference:", ":training:"))),
    Variant("another suite", (of(SAME), renamed("toy/", "toys/"))),
    Variant("another model of almost that name", (of(SAME), renamed("mlp", "mlp2"))),
    Variant("a regression beside it", (of(Verdict.REGRESSION),), LOST, "failure"),
    Variant("said not to have run", (of(SAME),), "Incomplete", not_run=(MLP,)),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each.name)
def test_a_set_that_leaves_a_planned_case_out_is_no_pass(variant: Variant, github, tmp_path: Path) -> None:
    """Whatever else it has: the comment names the case, and the check is not green."""
    made = report(*variant.verdicts, not_run=variant.not_run)
    body = comment(github, tmp_path, config_of("cpu").replace(CAMPAIGN, TWO), ("cpu", made))
    assert variant.told in body
    assert checks(github) == {"torchgauge": variant.check}


def test_what_cannot_be_planned_where_the_comment_is_written_is_no_pass(github, tmp_path: Path) -> None:
    """A suite that is not installed there: nobody can say whether a case is missing."""
    config = config_of("cpu").replace("suites: [toy]", "suites: [toys]")
    body = comment(github, tmp_path, config, ("cpu", report(of(SAME))))
    assert "The planned cases are unknown: `unknown suite" in body
    assert checks(github) == {"torchgauge": "action_required"}


def release(github: GitHub, *pools: str, branch: str = "release-1", text: str = "") -> None:
    """Offer the commit to another branch, whose file has ``pools``."""
    github.pulls = [pull(base={"ref": branch, "sha": BASE})]
    github.files["torchgauge.yml", BASE] = text or config_of(*pools)


FINE = report(of(SAME))


@pytest.mark.parametrize(
    ("main", "there", "check"),
    [
        (("cpu", "npu"), ("cpu",), "success"),
        (("cpu",), ("cpu", "npu"), "action_required"),
        (("npu",), ("cpu",), "success"),
        (("cpu",), ("npu",), "action_required"),
    ],
)
def test_another_base_has_its_own_pools_and_a_check_of_its_own(
    main, there, check, github, tmp_path: Path
) -> None:
    """And never the default branch's check, which the same commit may need tomorrow."""
    release(github, *there)
    body = comment(github, tmp_path, config_of(*main), ("cpu", FINE))
    assert body.splitlines()[1].startswith("### `torchgauge on release-1`: ")
    assert checks(github) == {"torchgauge on release-1": check}


def test_the_cases_of_another_base_are_those_of_its_own_file(github, tmp_path: Path) -> None:
    """More than the default branch plans, in a set that has only those."""
    release(github, text=config_of("cpu").replace(CAMPAIGN, TWO))
    assert LOST in comment(github, tmp_path, config_of("cpu"), ("cpu", FINE))
    assert checks(github) == {"torchgauge on release-1": "action_required"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "release-1 has no torchgauge.yml"),
        ("version: 2", "torchgauge.yml of release-1"),
        ("[", "torchgauge.yml"),
    ],
)
def test_a_base_without_a_usable_file_makes_nothing_green(text, told, github, tmp_path: Path) -> None:
    """Somebody who chooses an old branch as the base gets no pass for it."""
    release(github, text=text or "-")
    if not text:
        github.files.clear()
    assert told in comment(github, tmp_path, config_of("cpu"), ("cpu", FINE))
    assert checks(github) == {"torchgauge on release-1": "action_required"}


def test_a_base_that_is_changed_meanwhile_gets_no_word(github, tmp_path: Path, monkeypatch) -> None:
    """What was planned by one base is not written as the check of another."""
    release(github, "cpu")
    listed, asked = github._list_pulls, []

    def moved(*told: Any) -> Any:
        asked.append(told)
        if len(asked) > 1:
            github.pulls = [pull()]
        return listed(*told)

    monkeypatch.setattr(github, "_list_pulls", moved)
    assert comment(github, tmp_path, config_of("cpu"), ("cpu", FINE)) == ""
    assert "the base of the pull request changed" in (tmp_path / "summary.md").read_text()
    assert github.check_runs == []


@pytest.mark.parametrize("branch", ["a-->b", "a--b", "a/<img>", "@everyone", "x" * 200, "a`b", "é"])
def test_the_name_of_a_branch_acts_nowhere(branch: str, github, tmp_path: Path) -> None:
    """In the first line of the comment, which is hidden, and in the name of the check."""
    release(github, "cpu", branch=branch)
    body = comment(github, tmp_path, config_of("cpu"), ("cpu", FINE))
    assert body.splitlines()[0] == f"<!-- torchgauge:pr-gate:torchgauge on {shown_branch(branch)} -->"
    assert "--" not in shown_branch(branch)
    assert shown_branch(branch).replace("_", "").replace("/", "").replace("-", "").isalnum()
    assert checks(github) == {f"torchgauge on {shown_branch(branch)}": "success"}
