"""The workflows are thin, ask for little and submit what they have."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from torchgauge.workflows.action_pins import PINS
from torchgauge.workflows.config import read_config
from torchgauge.workflows.init import render

FOLDER = Path(__file__).parents[2] / ".github"
WORKFLOWS = sorted((FOLDER / "workflows").glob("*.yml"))
ACTIONS = sorted((FOLDER / "actions").glob("*/action.yml"))
ALL = [*WORKFLOWS, *ACTIONS]
LOCAL = ("./.github/workflows/", "./torchgauge-source/.github/actions/")
MAX_JOB_MINUTES = 360
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
every_file = pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(FOLDER)))


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs_with_steps(path):
    return [job for job in read(path)["jobs"].values() if "steps" in job]


def steps_of(path):
    data = read(path)
    found = [step for job in data.get("jobs", {}).values() for step in job.get("steps", [])]
    return found + data.get("runs", {}).get("steps", [])


@every_workflow
def test_a_workflow_grants_nothing_at_the_top_and_limits_every_job(path):
    """Permissions are empty at the top; each job names its own, and a time of its own."""
    workflow = read(path)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        minutes = job.get("timeout-minutes", "${{" if "uses" in job else None)
        assert str(minutes).startswith("${{") or 0 < minutes <= MAX_JOB_MINUTES


@every_workflow
def test_a_step_is_ended_before_its_job_is(path):
    """So that what comes after it, uploads above all, still runs."""
    for job in jobs_with_steps(path):
        whole = job["timeout-minutes"]
        for step in job["steps"]:
            minutes = step.get("timeout-minutes")
            if isinstance(whole, int) and isinstance(minutes, int):
                assert minutes < whole, step
            elif minutes is not None and not isinstance(minutes, int):
                assert "step" in minutes
                assert "job" in whole


@every_workflow
def test_what_was_measured_is_submitted_whatever_happened(path):
    """An upload after a step that measures runs always, and having nothing to upload is an error."""
    for job in jobs_with_steps(path):
        measures = False
        for step in job["steps"]:
            measures = measures or bool(
                re.search(r"torchgauge ci (run|confirm|gate --pool)", step.get("run", ""))
            )
            if "upload-artifact@" in step.get("uses", ""):
                assert step["with"]["if-no-files-found"] == "error"
                assert not measures or step.get("if", "").startswith("always()"), step


@every_file
def test_actions_are_pinned_by_the_commits_that_were_looked_at(path):
    """A tag can be moved, a full commit cannot. All are in one list, and the comment says the release."""
    for line in re.findall(r"uses:\s*(.+)", path.read_text(encoding="utf-8")):  # may be empty: some use none
        if not line.startswith(LOCAL):
            action, commit, release = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40}) # (v[\d.]+)", line).groups()
            assert (PINS[action].commit, PINS[action].release) == (commit, release)


@every_file
def test_every_step_is_one_command(path):
    """What a workflow does can be typed on a laptop."""
    for step in steps_of(path):
        assert len(step.get("run", "").strip().splitlines()) <= 1, step


@every_file
def test_no_expression_stands_in_a_command(path):
    """Values reach a shell through its environment alone, where they are text."""
    for step in steps_of(path):
        assert "${{" not in step.get("run", ""), step


@every_workflow
def test_no_token_stays_in_a_checkout(path):
    """What runs later in the job must not find one."""
    for step in steps_of(path):
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_no_workflow_runs_where_a_pull_request_could_write():
    """The trigger that gives a fork a token that writes is not used, and no secret is named."""
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "pull_request_target" not in text, path
        assert "secrets" not in re.sub(r"#.*", "", text), path


@every_file
def test_only_the_nightly_job_that_measures_touches_the_cache_of_the_git_host(path):
    """Only in a night that begins by itself, on GitHub's runners; no job of a pull request, no release."""
    trusted = "(github.event_name == 'schedule' || github.event_name == 'repository_dispatch')"
    for step in steps_of(path):
        assert "cache" not in step.get("with", {})  # setup actions have caches of their own
        if "cache" in step.get("uses", ""):
            assert path.name == "nightly.yml"
            assert step["if"].endswith(f"matrix.compiled != '' && {trusted}")
            assert step["continue-on-error"] is True


def test_the_night_of_this_repository_is_the_template_of_ci_init():
    """``python scripts/write_nightly.py`` writes it anew; it has the jobs of the night that others get."""
    spec = importlib.util.spec_from_file_location("write_nightly", FOLDER.parent / "scripts/write_nightly.py")
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    text = writer.NIGHTLY.read_text(encoding="utf-8")
    assert text == writer.nightly()
    for_others = yaml.safe_load(render("nightly", read_config(FOLDER.parent / "torchgauge.yml")))
    assert yaml.safe_load(text)["jobs"].keys() == for_others["jobs"].keys()


@pytest.mark.parametrize("name", ["pr-gate.yml", "pr-command.yml"])
def test_what_runs_code_of_a_pull_request_only_reads(name):
    """Whatever that code does, its token can write nothing."""
    for job in jobs_with_steps(FOLDER / "workflows" / name):
        assert set(job["permissions"].values()) == {"read"}


def writing_jobs(path):
    """The jobs with steps whose token may write anything, by name."""
    jobs = {name: job for name, job in read(path)["jobs"].items() if "steps" in job}
    return {name: job for name, job in jobs.items() if "write" in job["permissions"].values()}


WRITING = [(path, name) for path in WORKFLOWS for name in writing_jobs(path)]
every_writing_job = pytest.mark.parametrize(
    ("path", "name"), WRITING, ids=lambda value: getattr(value, "name", value)
)


@every_writing_job
def test_a_job_that_writes_installs_from_a_locked_file_alone(path, name):
    """With the hashes of everything, through our own action; no such job runs pip by itself."""
    steps = writing_jobs(path)[name]["steps"]
    for step in steps:
        assert "pip" not in step.get("run", "").split()
        if "actions/setup" in step.get("uses", "") and "./" in step["uses"]:
            assert step["with"]["locked"] == "torchgauge-source/src/torchgauge/workflows/locked.txt"
    uses_torchgauge = any("torchgauge ci" in step.get("run", "") for step in steps)
    assert uses_torchgauge == any("locked" in step.get("with", {}) for step in steps)


@every_writing_job
def test_a_job_that_writes_unpacks_artifacts_where_no_action_is_read_from(path, name):
    """Outside of the workspace: an artifact must not bring the next step along."""
    steps = writing_jobs(path)[name]["steps"]
    if not any("./" in step.get("uses", "") for step in steps):
        return  # no action is read from the workspace at all
    for step in steps:
        if "download-artifact@" in step.get("uses", ""):
            assert step["with"]["path"].startswith("${{ runner.temp }}/"), step


BY_PATTERN = {"results-*": "ci collect", "confirmed-*": "ci suspects settle"}
"""What any job of a run may submit, and the command that asks the Git host whose each one is."""


@every_workflow
def test_what_one_job_hands_to_another_is_fetched_by_its_number(path):
    """Any job of a run may upload under any name; only the job that made an artifact says its number.

    An output that the runner drops, because its value was masked, becomes a number that nothing has: no
    number at all would fetch every artifact of the run.
    """
    for job in jobs_with_steps(path):
        runs = [step.get("run", "") for step in job["steps"]]
        for step in job["steps"]:
            if "download-artifact@" in step.get("uses", ""):
                told = {key: value for key, value in step["with"].items() if key != "path"}
                number = re.fullmatch(
                    r"\$\{\{ (needs|inputs)\..+ \|\| '0' \}\}", told.get("artifact-ids", "")
                )
                asks = BY_PATTERN.get(told.get("pattern", ""), "nobody")
                assert len(told) == 1
                assert number or any(asks in run and "--ask-github" in run for run in runs), step


def test_the_trusted_half_of_the_gate_takes_no_code_of_the_pull_request():
    """It checks out this project's own commit, and nothing that the event names."""
    path = FOLDER / "workflows" / "pr-comment.yml"
    checkouts = [step for step in steps_of(path) if "actions/checkout@" in step.get("uses", "")]
    assert [step["with"]["ref"] for step in checkouts] == ["${{ job.workflow_sha }}"]
    assert "head_sha" not in path.read_text(encoding="utf-8")


def test_the_table_of_permissions_is_what_the_workflows_ask_for():
    """One row for each job, with exactly its permissions."""
    page = (FOLDER.parent / "docs" / "how-to" / "gate-a-repository.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.-]+)` \| `([\w-]+)` \| ([^|]+) \|", page, re.MULTILINE)
    told = {(name, job): set(re.findall(r"`([a-z-]+: [a-z]+)`", words)) for name, job, words in rows}
    asked = {
        (path.name, name): {f"{what}: {access}" for what, access in job["permissions"].items()}
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
    }
    assert told == asked
