"""The workflows that ``ci init`` writes: pinned, without rights of their own, nobody's changes lost."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import yaml

from torchgauge.errors import UsageError
from torchgauge.workflows.action_pins import PINS
from torchgauge.workflows.config import parse_config
from torchgauge.workflows.init import WORKFLOWS, Change, lacking, render, workflow_files, write_workflows

TEXT = """\
version: 1
campaign: {suites: [toy]}
torchgauge: "torchgauge @ https://example.org/it's \\"quoted\\".whl"
pools:
  - {name: host, device: fake, runs-on: [ubuntu-latest], trust: anyone}
  - {name: card, device: fake, runs-on: [self-hosted, tg-card]}
nightly: {at: "23:41", expect-by: "05:58"}
"""
CONFIG = parse_config(TEXT)


def parsed(name, config=CONFIG):
    """A rendered workflow as YAML, with the key `on` that YAML 1.1 reads as true."""
    return yaml.safe_load(render(name, config, "a b/torchgauge.yml"))


def steps_of(workflow):
    """Every step of every job."""
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_right_is_given_to_a_whole_workflow(name):
    """The token has no permission but what a job names."""
    workflow = parsed(name)
    assert workflow["permissions"] == {}
    assert all("permissions" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned_by_commit(name):
    """Every action stands with the commit and the release of our list, and no checkout keeps its token."""
    text = render(name, CONFIG)
    found = re.findall(r"uses: (\S+)(?: # (\S+))?", text)
    for action, release in found:
        if not action.startswith("./"):
            name_of, _, commit = action.partition("@")
            assert (PINS[name_of].commit, PINS[name_of].release) == (commit, release)
    for step in steps_of(parsed(name)):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_expression_reaches_a_shell(name):
    """What a step runs holds no expression: values come through its environment."""
    for step in steps_of(parsed(name)):
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_end_before_their_job(name):
    """Time-outs of a job's steps together stay below its own, so that what was measured is submitted."""
    for job in parsed(name)["jobs"].values():
        if "steps" not in job:
            continue
        limits = [step["timeout-minutes"] for step in job["steps"] if "timeout-minutes" in step]
        fixed = sum(limit for limit in limits if isinstance(limit, int))
        if isinstance(job["timeout-minutes"], int):
            assert fixed < job["timeout-minutes"]
        else:
            assert fixed <= 55  # planning.BESIDE_STEP_MINUTES leaves 65
            assert "${{ matrix.step_minutes }}" in limits


@pytest.mark.parametrize(
    ("code", "writes", "red"), [(0, True, False), (3, True, False), (3, False, True), (2, True, True)]
)
def test_collecting_is_red_where_nobody_can_say_what_came(tmp_path, code, writes, red):
    """Incomplete is for the gate to judge; an API that does not answer leaves nothing to judge."""
    steps = parsed("nightly")["jobs"]["collect"]["steps"]
    (step,) = (each for each in steps if "ci collect" in each.get("run", ""))
    assert "continue-on-error" not in step
    (tmp_path / "collect.json").write_text("of an earlier job")
    command = tmp_path / "torchgauge"
    command.write_text(f"#!/bin/sh\n{'touch collect.json' if writes else ':'}\nexit {code}\n")
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    shell = ["bash", "-e", "-c", step["run"]]
    done = subprocess.run(shell, cwd=tmp_path, env={"PATH": path}, timeout=120, check=False)
    assert bool(done.returncode) == red


def writing(name):
    """The jobs of a workflow with steps whose token may write."""
    jobs = parsed(name)["jobs"].items()
    return {key: job for key, job in jobs if "steps" in job and "write" in job["permissions"].values()}


def test_what_parses_the_sets_of_a_night_writes_nothing():
    """Collecting, settling and judging have a token that reads; those that write meet files alone."""
    jobs = parsed("nightly")["jobs"]
    for name in ("collect", "settle", "gate", "device", "confirm"):
        assert set(jobs[name]["permissions"].values()) == {"read"}
    assert set(writing("nightly")) == {"publish", "publish-answers", "issues"}
    for job in writing("nightly").values():
        text = str(job)
        for parses in ("ci collect", "ci suspects settle", "ci suspects list", "pattern"):
            assert parses not in text


def test_what_one_job_hands_to_another_is_fetched_by_its_number():
    """What every job may submit comes by a pattern, and the Git host is asked whose it is."""
    by_pattern = set()
    for key, job in parsed("nightly")["jobs"].items():
        for step in job.get("steps", []):
            if "download-artifact@" in step.get("uses", ""):
                assert "name" not in step["with"]
                if "pattern" in step["with"]:
                    by_pattern.add(key)
                else:
                    assert ".outputs.artifact || '0' }}" in step["with"]["artifact-ids"]
    assert by_pattern == {"collect", "settle"}
    for key in by_pattern:
        assert any("--ask-github" in step.get("run", "") for step in parsed("nightly")["jobs"][key]["steps"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_is_unpacked_lies_outside_of_the_workspace_where_a_token_writes(name):
    """And everything that such a job installs has a hash."""
    for job in writing(name).values():  # may be empty: the gate of a pull request only reads
        installs = [step["run"] for step in job["steps"] if "pip" in step.get("run", "")]
        assert set(installs) <= {"python -m pip install --require-hashes -r .github/torchgauge-locked.txt"}
        assert bool(installs) == any("torchgauge ci" in step.get("run", "") for step in job["steps"])
        for step in job["steps"]:
            if "download-artifact@" in step.get("uses", ""):
                assert step["with"]["path"].startswith("${{ runner.temp }}/")


def test_only_a_night_that_begins_by_itself_keeps_compiled_code():
    """It is fetched before and saved after the measuring, under names that only a trusted night has."""
    steps = parsed("nightly")["jobs"]["device"]["steps"]
    kept = [step for step in steps if step.get("uses", "").startswith("actions/cache")]
    assert [step["uses"].partition("@")[0] for step in kept] == [
        "actions/cache/restore",
        "actions/cache/save",
    ]
    trusted = "(github.event_name == 'schedule' || github.event_name == 'repository_dispatch')"
    for step in kept:
        assert step["if"].endswith(f"matrix.compiled != '' && {trusted}")
        assert step["continue-on-error"] is True
    assert kept[1]["if"].startswith("steps.measure.outcome == 'success' && ")
    assert kept[0]["with"]["key"] == kept[1]["with"]["key"]
    assert kept[0]["with"]["path"] == kept[1]["with"]["path"]
    for name in set(WORKFLOWS) - {"nightly"}:
        assert "actions/cache" not in render(name, CONFIG)


def test_a_night_has_several_ways_to_begin():
    """Beside the schedule a timer elsewhere can start it; the watch runs after the results are expected."""
    begins = parsed("nightly")[True]
    assert begins["schedule"] == [{"cron": "41 23 * * *"}]
    assert begins["repository_dispatch"] == {"types": ["torchgauge-nightly"]}
    assert "workflow_dispatch" in begins
    assert parsed("dashboard")[True]["schedule"] == [{"cron": "3 6 * * *"}]


def test_a_pull_request_has_no_secret_and_no_right_to_write():
    """The untrusted workflow reads; the trusted one runs nothing of it and is bound to its name and file."""
    gate, comment = render("pr-gate", CONFIG), parsed("pr-comment")
    assert "secrets." not in gate
    assert "github.token" not in gate
    assert "pull_request_target" not in gate
    assert all(job["permissions"] == {"contents": "read"} for job in parsed("pr-gate")["jobs"].values())
    assert comment[True]["workflow_run"]["workflows"] == [parsed("pr-gate")["name"]]
    (checkout,) = (step for step in steps_of(comment) if "checkout" in step.get("uses", ""))
    assert checkout["with"] == {"persist-credentials": False}  # no ref: the default branch


def test_the_policy_of_a_comment_is_never_the_pull_request_s():
    """Without one in torchgauge.yml the built-in policy gates; with one, that of the default branch does."""
    strict = parsed("pr-comment")["jobs"]["comment"]
    assert strict["steps"][-1]["env"]["POLICY"] == "default"
    assert strict["permissions"]["contents"] == "read"  # the pools that must submit
    own = parsed("pr-comment", parse_config(TEXT + "gate: {policy: 'ci/it''s.yml'}\n"))["jobs"]["comment"]
    assert '--policy "$POLICY"' in own["steps"][-1]["run"]
    assert own["steps"][-1]["env"]["POLICY"] == "ci/it's.yml"
    assert own["steps"][-1]["env"]["CONFIG"] == "a b/torchgauge.yml"


def test_pools_decide_how_a_pull_request_is_measured():
    """Without a pool for everyone only labels start it; without one of our own nobody can name a pool."""
    only_own = parse_config(TEXT.replace(", trust: anyone", ""))
    assert parsed("pr-gate", only_own)[True]["pull_request"]["types"] == ["labeled"]
    assert "opened" in parsed("pr-gate")[True]["pull_request"]["types"]
    open_to_all = parse_config(TEXT.replace("tg-card]", "tg-card], trust: anyone"))
    assert "workflow_dispatch" not in parsed("pr-gate", open_to_all)[True]


def test_values_are_quoted():
    """A value with quotes arrives as it is, whatever stands in it."""
    for name, job, step, key in (
        ("nightly", "plan", "Plan the campaign", "CONFIG"),
        ("pr-gate", "plan", "Plan the pool that was named", "CONFIG"),
        ("pr-comment", "comment", "Write the one comment and the check run", "CONFIG"),
    ):
        steps = yaml.safe_load(render(name, CONFIG, 'it\'s "quoted".yml'))["jobs"][job]["steps"]
        (found,) = (each for each in steps if each.get("name") == step)
        assert found["env"][key] == 'it\'s "quoted".yml'


def test_torchgauge_stands_in_a_file_with_its_hash_and_beside_all_that_it_needs(tmp_path):
    """One file for the jobs that measure, whose torch brings the rest, and one for all others."""
    package = "torchgauge==9.1 --hash=sha256:" + "a" * 64
    files = {file.path.name: file.text for file in workflow_files(CONFIG, tmp_path, package=package)}
    alone = [line for line in files["torchgauge.txt"].splitlines() if not line.startswith("#")]
    assert alone == [package]
    locked = [line for line in files["torchgauge-locked.txt"].splitlines() if not line.startswith("#")]
    assert locked[0] == "-r torchgauge.txt"
    assert any(line.startswith("pyarrow==") for line in locked)


def test_what_is_there_is_kept_when_it_was_changed(tmp_path):
    """New files are written, equal ones left, our own renewed, and a person's refused with the difference."""
    files = workflow_files(CONFIG, tmp_path)
    assert {file.change for file in files} == {Change.NEW}
    assert write_workflows(files) == [file.path for file in files]
    assert {file.change for file in workflow_files(CONFIG, tmp_path)} == {Change.SAME}
    later = parse_config(TEXT.replace("23:41", "22:11"))
    nightly = next(file for file in workflow_files(later, tmp_path) if file.change is Change.RENEWED)
    assert '+    - cron: "11 22 * * *"' in nightly.difference
    nightly.path.write_text(nightly.path.read_text().replace("fail-fast: false", "fail-fast: true"))
    changed = workflow_files(later, tmp_path)
    before = {file.path: file.path.read_text() for file in changed}
    with pytest.raises(UsageError, match=r"-      fail-fast: true\n\+      fail-fast: false"):
        write_workflows(changed)
    assert before == {file.path: file.path.read_text() for file in changed}
    assert nightly.path in write_workflows(changed, force=True)
    assert {file.change for file in workflow_files(later, tmp_path)} == {Change.SAME}


PROJECT = '[project]\nname = "x"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("files", "more", "lacks"),
    [
        ({}, "", ["a project that pip can install"]),
        ({"pyproject.toml": PROJECT}, "", []),
        ({"setup.py": ""}, "", []),
        ({"pyproject.toml": "[tool.x]\n"}, "", ["a project that pip can install"]),
        ({"pyproject.toml": "no TOML"}, "", ["a project that pip can install"]),
        ({"pyproject.toml": PROJECT}, "gate: {policy: ci/policy.yml}\n", ["ci/policy.yml, required by"]),
    ],
)
def test_what_the_repository_lacks_is_said(tmp_path, files, more, lacks):
    """A gate that cannot pass, because pip has nothing to install, and files that are named and not there."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = lacking(parse_config(TEXT + more), tmp_path)
    assert len(found) == len(lacks)
    assert all(map(str.startswith, found, lacks))  # may be empty: it lacks nothing


def test_a_pool_that_names_both_builds_needs_no_project(tmp_path):
    """It compares two releases, not two commits of this repository."""
    builds = ', base: "torch==2.12.0", head: "torch==2.13.0"}'
    assert lacking(parse_config(TEXT.replace("}\n  -", f"{builds}\n  -")), tmp_path)
    both = re.sub(r"(- {name.*)}$", rf"\1{builds}", TEXT, flags=re.MULTILINE)
    assert lacking(parse_config(both), tmp_path) == []


@pytest.mark.parametrize("name", ["nightly", "pr-gate"])
def test_what_a_job_before_has_left_is_not_installed_or_imported(name):
    """Wheels that pip built and the user's site outlive a job on a machine that lives on."""
    assert parsed(name)["env"] == {"PIP_NO_CACHE_DIR": "1", "PYTHONNOUSERSITE": "1"}
