"""Which job made which set: what a job states on its own page counts, whatever the name of an artifact is."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import Night, files_of, in_row, write_folder
from github_server import TOKEN, GitHub, serving

from torchgauge.errors import UsageError
from torchgauge.workflows.collect import Collection, collect
from torchgauge.workflows.github_api import ApiError, GitHubApi
from torchgauge.workflows.ingest.refusal import Reason
from torchgauge.workflows.job_statements import WorkflowRun, job_name, state_digest, stated_sets

RUN = WorkflowRun("owner/project", 7)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with serving(GitHub()) as found:
        yield found


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path, pools=("alpha", "beta"))


def job(
    number: int, name: str, *said: str, attempt: int = 1, title: str = "torchgauge result set"
) -> dict[str, Any]:
    """A job as the server tells it: its name is behind those of the workflows that call it."""
    annotations = [{"title": title, "message": message, "annotation_level": "notice"} for message in said]
    called = f"nightly / device (x, 1) / {name}"
    return {"id": 7000 + number, "name": called, "run_attempt": attempt, "annotations": annotations}


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()


def honest_jobs(night: Night) -> list[dict[str, Any]]:
    """The four jobs of a night, each of which stated the set that lies under its name."""
    found = []
    for pool in ("alpha", "beta"):
        for shard in (1, 2):
            folder = night.pack(shard, pool=pool)
            found.append(job(len(found), job_name(pool, shard, 2), f"sha256:{digest(folder)}"))
    return found


def collected(night: Night, github: GitHub) -> Collection:
    stated = stated_sets(GitHubApi(github.base, TOKEN), RUN)
    expected = replace(night.expected, stated=stated, attempts=2)
    return collect(night.path / "artifacts", expected, night.store, clock=night.clock)


def test_a_night_whose_jobs_state_their_sets_is_complete(night: Night, github: GitHub) -> None:
    """Every set is the one that its job's page names; lists come in pages."""
    jobs = honest_jobs(night)
    github.night_jobs = lambda run: jobs if run == 7 else []
    found = collected(night, github)
    assert found.complete
    assert not found.rejected


def test_a_set_that_another_job_uploaded_under_this_name_is_refused(night: Night, github: GitHub) -> None:
    """Alpha's machine puts its own set in the place of beta's artifact: beta's job never stated that one."""
    jobs = honest_jobs(night)
    mine = night.path / "artifacts" / night.job(1, pool="beta").artifact
    forged = in_row(files_of(mine), b'"duration_s":0.0', b'"duration_s":9.0')
    for name, data in forged.items():
        (mine / name).write_bytes(data)
    jobs.append(job(8, "alpha 1 of 2", f"sha256:{digest(mine)}"))
    github.night_jobs = lambda _run: jobs
    found = collected(night, github)
    assert [(each.artifact, each.reason) for each in found.rejected] == [(mine.name, Reason.FOREIGN_IDENTITY)]
    assert [(each.pool, each.shard) for each in found.missing] == [("beta", 1)]


def test_a_second_attempt_that_only_its_name_has_is_refused(night: Night, github: GitHub) -> None:
    """In a run that was started again, alpha submits beta's second attempt, which beta's job never made."""
    jobs = honest_jobs(night)
    forged = night.pack(1, 2, pool="beta")
    jobs.append(job(8, "alpha 1 of 2", f"sha256:{digest(forged)}", attempt=2))
    github.night_jobs = lambda _run: jobs
    found = collected(night, github)
    assert [(each.artifact, each.reason) for each in found.rejected] == [
        (forged.name, Reason.FOREIGN_IDENTITY)
    ]
    assert found.complete


def test_a_set_without_the_name_of_an_artifact_is_held_against_its_job(night: Night, github: GitHub) -> None:
    """A single artifact lies flat in the folder: what it says of itself counts for the job that stated it."""
    mine = files_of(night.pack(1, pool="beta"))
    write_folder(night.path / "flat", mine)
    github.night_jobs = lambda _run: [job(1, "alpha 1 of 2", f"sha256:{digest(night.path / 'flat')}")]
    stated = stated_sets(GitHubApi(github.base, TOKEN), RUN)
    expected = replace(night.expected, stated=stated)
    found = collect(night.path / "flat", expected, night.store, clock=night.clock)
    assert [each.reason for each in found.rejected] == [Reason.FOREIGN_IDENTITY]


STRANGE: dict[str, list[dict[str, Any]]] = {
    "no job": [],
    "a job without a word": [job(1, "beta 1 of 2")],
    "a notice of another title": [job(1, "beta 1 of 2", "sha256:{digest}", title="torchgauge")],
    "words around the digest": [job(1, "beta 1 of 2", "the set is sha256:{digest}")],
    "a digest in capitals": [job(1, "beta 1 of 2", "SHA256:{digest}")],
    "half a digest": [job(1, "beta 1 of 2", "sha256:{digest:.63}")],
    "the other shard's job": [job(1, "beta 2 of 2", "sha256:{digest}")],
    "another number of shards": [job(1, "beta 1 of 3", "sha256:{digest}")],
    "alpha's job": [job(1, "alpha 1 of 2", "sha256:{digest}")],
    "a job of the name with more": [job(1, "beta 1 of 2 (1)", "sha256:{digest}")],
    "a job that only ends so": [job(1, "x-beta 1 of 2", "sha256:{digest}")],
    "a later attempt's job": [job(1, "beta 1 of 2", "sha256:{digest}", attempt=2)],
}


@pytest.mark.parametrize("name", STRANGE)
def test_only_the_jobs_own_true_statement_counts(name: str, night: Night, github: GitHub) -> None:
    """Whatever else is on the pages of a run: the set is refused."""
    found = digest(night.pack(1, pool="beta"))
    said = STRANGE[name]
    for each in said:
        each["annotations"] = [
            {**one, "message": one["message"].format(digest=found)} for one in each["annotations"]
        ]
    github.night_jobs = lambda _run: said
    assert [each.reason for each in collected(night, github).rejected] == [Reason.FOREIGN_IDENTITY]
    assert night.store.published() == ()


def test_where_the_git_host_does_not_answer_nothing_is_taken(night: Night, github: GitHub) -> None:
    """No answer is no statement: the step fails, and the night is repeated."""
    from github_server import Answer

    github.trouble = [Answer(403, {"message": "Resource not accessible by integration"})]
    with pytest.raises(ApiError, match="not accessible"):
        collected(night, github)
    assert night.store.run_ids() == ()


def test_a_statement_is_one_line_of_the_runner(monkeypatch, capsys) -> None:
    """A notice with our title, and what is read back from it; none where no runner reads it."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    state_digest("0" * 64)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    state_digest("0" * 64)
    assert capsys.readouterr().err == f"::notice title=torchgauge result set::sha256:{'0' * 64}\n"
    with pytest.raises(UsageError, match="not a step of a workflow"):
        WorkflowRun.from_environment({})
    names = {"GITHUB_RUN_ID": "7", "GITHUB_REPOSITORY": "owner/project"}
    assert WorkflowRun.from_environment(names) == RUN
