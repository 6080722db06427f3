"""Answers to suspicions: a pool answers for its own alone, by the page of its job and never by its word."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Night
from github_server import TOKEN, GitHub, serving
from test_job_statements import RUN, job
from test_night_changes import store_with

from torchgauge.results.comparing.policy import Policy
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, read_outcomes
from torchgauge.workflows.confirm_set import ConfirmSet, Rules, Settled, settle, write_set
from torchgauge.workflows.github_api import GitHubApi
from torchgauge.workflows.job_statements import stated_sets
from torchgauge.workflows.open_suspicions import open_in

POLICY = Policy.default()
BETA = "no job `confirm beta N` has an annotation with the SHA-256 of this file"


@dataclass
class Suspected:
    """A history in which beta's runs are suspected, and the answers that came."""

    store: Store
    night: Night
    artifacts: Path
    github: GitHub

    def hand_in(self, artifact: str, claimed: str, state: TrendState = TrendState.NOT_REPRODUCED) -> str:
        """Put an answer to beta's suspicion into ``artifact``, which says that it is ``claimed``'s."""
        (each,) = open_in(self.store, POLICY)
        series = each.series
        keys = (series.case_key, series.case_id, series.metric, series.machine)
        pair = (each.good.run_id, each.suspect.run_id)
        told = TrendOutcome(*keys, *pair, state, "measured again", self.night.begin, 1.0, 0.99, 1.01)
        write_set(self.artifacts / artifact, ConfirmSet(self.night.campaign.campaign_id, claimed, (told,)))
        return hashlib.sha256((self.artifacts / artifact / "outcomes.json").read_bytes()).hexdigest()

    def settle(self, *, ask: bool = True) -> Settled:
        """What the step of the workflow does, with its questions to the Git host or without."""
        stated = stated_sets(GitHubApi(self.github.base, TOKEN), RUN) if ask else None
        rules = Rules(POLICY, frozenset(("alpha", "beta")), stated)
        return settle(self.store, self.artifacts, self.night.campaign, rules, self.night.clock)


@pytest.fixture(scope="module")
def github() -> Iterator[GitHub]:
    with serving(GitHub()) as found:
        yield found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights of beta, the last eight of which took half as long again."""
    store = store_with(tmp_path_factory.mktemp("history"), 1.5)
    for run in store.run_ids():
        (store.run(run).path / "provenance.json").write_text(json.dumps({"pool": "beta"}))
    return store.path


@pytest.fixture
def suspected(history: Path, tmp_path: Path, github: GitHub) -> Suspected:
    store = Store.open(shutil.copytree(history, tmp_path / "store"))
    github.night_jobs = lambda _run: []
    return Suspected(store, Night(tmp_path / "night", pools=("alpha", "beta")), tmp_path / "came", github)


@pytest.mark.parametrize("attempt", [1, 2])
def test_the_answer_of_the_pools_own_job_is_taken(suspected: Suspected, attempt: int) -> None:
    """In whichever attempt its job ran, and beside jobs that state nothing."""
    digest = suspected.hand_in("confirmed-beta-1", "beta")
    jobs = [job(1, "alpha 1 of 2"), job(2, "confirm beta 3", f"sha256:{digest}", attempt=attempt)]
    suspected.github.night_jobs = lambda _run: jobs
    found = suspected.settle()
    assert (len(found.taken), found.refused, found.left) == (1, (), ())


def test_pool_alpha_closes_no_suspicion_of_pool_beta(suspected: Suspected) -> None:
    """Its job says that its set is beta's, under beta's name, and states it on its own page."""
    digest = suspected.hand_in("confirmed-beta-1", "beta")
    suspected.github.night_jobs = lambda _run: [job(1, "confirm alpha 1", f"sha256:{digest}")]
    found = suspected.settle()
    assert found.refused == (f"confirmed-beta-1: {BETA}",)
    assert (found.taken, len(found.left), read_outcomes(suspected.store)) == ((), 1, [])


def test_an_answer_that_was_put_beside_the_honest_one_does_not_replace_it(suspected: Suspected) -> None:
    """A later name sorts last; what beta's job did not state counts for nothing."""
    honest = suspected.hand_in("confirmed-beta-1", "beta", TrendState.NOT_CONFIRMABLE)
    forged = suspected.hand_in("confirmed-beta-9", "beta")
    jobs = [job(1, "confirm beta 1", f"sha256:{honest}"), job(2, "confirm alpha 1", f"sha256:{forged}")]
    suspected.github.night_jobs = lambda _run: jobs
    found = suspected.settle()
    assert [each.state for each in found.taken] == [TrendState.NOT_CONFIRMABLE]
    assert found.refused == (f"confirmed-beta-9: {BETA}",)


JOBS: Mapping[str, list[dict[str, Any]]] = {
    "no job at all": [],
    "a job without a word": [job(1, "confirm beta 1")],
    "the digest of another set": [job(1, "confirm beta 1", "sha256:" + "0" * 64)],
    "words around the digest": [job(1, "confirm beta 1", "it is sha256:{digest}")],
    "a notice of another title": [job(1, "confirm beta 1", "sha256:{digest}", title="torchgauge")],
    "beta's job that measured the night": [job(1, "beta 1 of 2", "sha256:{digest}")],
    "alpha's job that measured the night": [job(1, "alpha 1 of 2", "sha256:{digest}")],
    "a job of a longer name": [job(1, "confirm beta 1 (1)", "sha256:{digest}")],
    "a job that only ends so": [job(1, "x confirm beta 1", "sha256:{digest}")],
    "a pool whose name ends so": [job(1, "confirm x-beta 1", "sha256:{digest}")],
    "a pool in capitals": [job(1, "confirm BETA 1", "sha256:{digest}")],
    "a leg that is no number": [job(1, "confirm beta x", "sha256:{digest}")],
    "the job that settles": [job(1, "settle", "sha256:{digest}")],
}


@pytest.mark.parametrize("name", JOBS)
def test_only_the_page_of_a_job_that_confirms_on_the_pool_counts(name: str, suspected: Suspected) -> None:
    """Whatever else stands on the pages of the run, the suspicion stays open."""
    digest = suspected.hand_in("confirmed-beta-1", "beta")
    said = [
        {**each, "annotations": [{**one, "message": one["message"].format(digest=digest)} for one in notices]}
        for each in JOBS[name]
        for notices in [each["annotations"]]
    ]
    suspected.github.night_jobs = lambda _run: said
    found = suspected.settle()
    assert (found.taken, found.refused) == ((), (f"confirmed-beta-1: {BETA}",))


def test_a_set_of_ones_own_answers_no_suspicion_of_another(suspected: Suspected) -> None:
    """Alpha's job states alpha's set, which answers for beta: the pool is right, the suspicion another's."""
    digest = suspected.hand_in("confirmed-alpha-1", "alpha")
    suspected.github.night_jobs = lambda _run: [job(1, "confirm alpha 1", f"sha256:{digest}")]
    found = suspected.settle()
    assert found.refused == (
        "confirmed-alpha-1: an outcome for a suspected change that belongs to another pool",
    )
    assert (found.taken, len(found.left)) == ((), 1)


def test_without_a_git_host_the_word_of_the_set_counts(suspected: Suspected) -> None:
    """On a laptop nobody can be asked; the workflows ask."""
    suspected.hand_in("confirmed-beta-1", "beta")
    assert len(suspected.settle(ask=False).taken) == 1


def test_a_run_of_no_known_pool_is_nobodys_to_answer(suspected: Suspected) -> None:
    """Without a pool of its device in the campaign: an empty name, which no job has, does not fit it."""
    for file in suspected.store.path.glob("runs/*/provenance.json"):
        file.unlink()
    suspected.night.campaign = replace(suspected.night.campaign, pools=())
    digest = suspected.hand_in("confirmed--1", "")
    suspected.github.night_jobs = lambda _run: [job(1, "confirm  1", f"sha256:{digest}")]
    found = suspected.settle()
    assert [each.state for each in found.taken] == [TrendState.NOT_CONFIRMABLE]
    assert found.refused == ("confirmed--1: an outcome for a suspected change that belongs to another pool",)
