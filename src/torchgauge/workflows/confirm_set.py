"""What a job that measured suspicions submits, and how a store takes it: nothing that it says is believed.

::

    outcomes.json     the answers, one for each suspicion that was measured or could not be
    comparisons/      the A/B runs behind them: evidence, which stays in the artifact

An answer counts for an open suspicion of a run that the pool itself brought, and for no other. Which pool a
set is of, the page of the job says that made it, not the set.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.harness.ab.confirmation import Confirmer, contradiction
from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.possible import LONGEST_S
from torchgauge.results.run_id import is_run_id
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.ingest.intake import artifact_of
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.strict_records import decode
from torchgauge.workflows.ingest.validator import SKEW_S
from torchgauge.workflows.job_statements import Stated, stated_answers
from torchgauge.workflows.night_changes import rule_of
from torchgauge.workflows.open_suspicions import open_in, pool_of
from torchgauge.workflows.plain_text import one_line, plain_values

OUTCOMES_FILE = "outcomes.json"
SET_SCHEMA = 1
MOST_BYTES = 4_000_000
MOST_WORDS = 2_000
"""Characters of a reason."""

_Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class ConfirmSet:
    """The answers of one job of ``pool``."""

    campaign_id: str
    pool: str
    outcomes: tuple[TrendOutcome, ...] = ()
    schema: int = SET_SCHEMA


@dataclass(frozen=True)
class Settled:
    """What became of the open suspicions: answers that are new, what was refused, and what is open still."""

    taken: tuple[TrendOutcome, ...]
    refused: tuple[str, ...]
    left: tuple[Suspicion, ...]


def write_set(folder: Path, found: ConfirmSet) -> None:
    """Write ``found`` into ``folder``, over what an earlier call left: a job may end after any answer."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain_values(to_plain(found)), indent=1, allow_nan=False)
    write_atomically(folder / OUTCOMES_FILE, text.encode("ascii") + b"\n")


def keep_evidence(folder: Path, store: Store, comparison: str) -> None:
    """Copy the A/B run ``comparison`` of ``store`` beside the answers; nothing where there is none."""
    there = store.path / "comparisons" / comparison
    if comparison and there.is_dir():
        with storage_errors(folder):
            shutil.copytree(there, folder / "comparisons" / comparison, dirs_exist_ok=True)


@dataclass(frozen=True)
class Rules:
    """What a repository has: its policy, and the names of its pools, of which a night may use a part.

    ``stated`` is what its jobs say that they made (None: nobody was asked).
    """

    policy: Policy
    pools: frozenset[str]
    stated: Stated | None = None


def settle(
    store: Store, folder: Path, campaign: CampaignPlan, rules: Rules, clock: Clock = SYSTEM_CLOCK
) -> Settled:
    """Take the answers in ``folder`` to the open suspicions of ``store``, and those that need no machine.

    Raises :class:`InfrastructureError` for a failing disk.
    """
    waiting = {_key(each): each for each in open_in(store, rules.policy)}
    pools = {key: pool_of(store, each, campaign) for key, each in waiting.items()}
    given, refused = _answers(folder, campaign, waiting, pools, rules)
    confirmer = Confirmer(_no_machine, clock=clock)
    taken, left = [], []
    for key, each in waiting.items():
        answer = confirmer.known(each) or given.get(key)
        if answer is None and pools[key] not in rules.pools:
            told = f"the change is of pool {pools[key]}" if pools[key] else "its pool is unknown"
            answer = confirmer.not_confirmable(each, f"{told}, which torchgauge.yml does not list")
        if answer is not None and _is_news(each, answer):
            taken.append(_in_time(answer, campaign, clock.now()))
            append_outcome(store, taken[-1])
        if answer is None:
            left.append(each)
    return Settled(tuple(taken), tuple(refused), tuple(left))


def _answers(
    folder: Path,
    campaign: CampaignPlan,
    waiting: dict[_Key, Suspicion],
    pools: dict[_Key, str],
    rules: Rules,
) -> tuple[dict[_Key, TrendOutcome], list[str]]:
    """The answers in ``folder`` that may be believed, and why others may not."""
    found: dict[_Key, TrendOutcome] = {}
    refused: list[str] = []
    for path in sorted(folder.rglob(OUTCOMES_FILE)):
        shown = artifact_of(path.parent)
        try:
            held = _read(path, campaign.campaign_id, rules.stated)
        except RefusedSetError as error:
            refused.append(f"{shown}: {error.detail}")
            continue
        for each in held.outcomes:
            key = each.case_key, each.metric, each.machine, each.good_run, each.suspect_run
            own = held.pool != "" and pools.get(key) == held.pool
            problem = _problem(each, waiting.get(key), own, rules.policy)
            if problem:
                refused.append(f"{shown}: {problem}")
            else:
                found[key] = _cleaned(each, waiting[key])
    return found, refused


def _read(path: Path, campaign_id: str, stated: Stated | None) -> ConfirmSet:
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            raise RefusedSetError(Reason.SCHEMA, f"the file is a link or larger than {MOST_BYTES} bytes")
        data = path.read_bytes()
        found = decode(data, ConfirmSet, "the set of outcomes", MOST_BYTES)
    except OSError as error:
        raise RefusedSetError(Reason.SCHEMA, f"the file cannot be read: {error.strerror}") from error
    if found.schema != SET_SCHEMA:
        raise RefusedSetError(Reason.SCHEMA, f"the schema version is {found.schema}, not {SET_SCHEMA}")
    if found.campaign_id != campaign_id:
        raise RefusedSetError(Reason.FOREIGN_CAMPAIGN, f"the set is not from campaign {campaign_id}")
    if stated is not None and hashlib.sha256(data).hexdigest() not in stated_answers(stated, found.pool):
        pool = one_line(found.pool)[:60]
        words = f"no job `confirm {pool} N` has an annotation with the SHA-256 of this file"
        raise RefusedSetError(Reason.FOREIGN_IDENTITY, words)
    return found


def _problem(each: TrendOutcome, of: Suspicion | None, own: bool, policy: Policy) -> str:
    """Why ``each`` is no answer to the suspicion ``of``; empty where it is one."""
    if of is None:
        return "an outcome for a change that is not, or no longer, suspected"
    if not own:
        return "an outcome for a suspected change that belongs to another pool"
    numbers = [value for value in (each.ratio, each.low, each.high) if value is not None]
    if not all(math.isfinite(value) and value > 0 for value in numbers):
        return "an impossible ratio"
    if each.state is TrendState.SUSPECTED:
        return "an outcome without a verdict"
    return contradiction(each, of, rule_of(of.series, policy).tolerance)


def _cleaned(each: TrendOutcome, of: Suspicion) -> TrendOutcome:
    """``each`` with our own names and with text that may be shown."""
    comparison = each.comparison if is_run_id(each.comparison) else ""
    return replace(
        each, case_id=of.series.case_id, reason=one_line(each.reason)[:MOST_WORDS], comparison=comparison
    )


def _in_time(each: TrendOutcome, campaign: CampaignPlan, now: float) -> TrendOutcome:
    """``each``, decided between the plan of its campaign and now, whatever the machine's clock says."""
    begin = campaign.created_at
    inside = begin - SKEW_S <= each.decided_at <= min(now, begin + LONGEST_S) + SKEW_S
    return each if inside else replace(each, decided_at=now)


def _is_news(each: Suspicion, answer: TrendOutcome) -> bool:
    """Whether ``answer`` says something else than the last one: a night of the same words adds no line."""
    last = each.outcome
    return last is None or (last.state, last.reason) != (answer.state, answer.reason)


def _key(each: Suspicion) -> _Key:
    series = each.series
    return series.case_key, series.metric, series.machine, each.good.run_id, each.suspect.run_id


def _no_machine(*_: object) -> Reading:
    return Reading(Answer.UNUSABLE)
