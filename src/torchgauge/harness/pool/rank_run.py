"""A case in several processes at once: started together, watched together, and reported as one outcome.

A rank that fails leaves the others waiting for it in a collective, where they raise or hang: they are given a
moment to say what they saw, and are then ended. Blamed is who failed first: a rank that died, else one that
passed its deadline, else the first that raised. Who says that it lost its peer raised because of another one.
Where one passed its deadline, what the watchdogs told before says who kept the others waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.devices.cpu_times import allowed_cpus
from torchgauge.harness.flight_records import EVENT as FLIGHT_RECORD
from torchgauge.harness.flight_records import Culprits, FlightRecord, culprits
from torchgauge.harness.job import Job
from torchgauge.harness.pool.derived_status import DerivedStatuses, derive_statuses, describe_exit
from torchgauge.harness.pool.watch import QUIET_TICK_S, TICK_S, TIMED, Ending, Listener, Watch
from torchgauge.harness.pool.worker_host import WorkerHost
from torchgauge.records import Outcome, PlannedCase, Scalar, Status, from_plain

GRACE_S = 5.0
"""Seconds that the other ranks have, once one has failed."""
PEER = "peer"
"""Why a rank was killed that had done nothing wrong."""
LOST_PEER = ("by peer", "remote peer", "remote process exited", "Broken pipe")
"""Words of libraries for collectives about a connection that the other side ended."""


@dataclass(frozen=True)
class RankEnding:
    """The end of one rank, and its log."""

    rank: int
    ending: Ending
    log: Path


def run_ranks(
    hosts: Sequence[WorkerHost], job: Job, log: Path, on_event: Listener, *, shared: bool
) -> list[RankEnding]:
    """Run ``job`` in a worker of each of ``hosts`` and close them; ``on_event`` receives events of the first.

    The workers meet in the file that the job names. The device is ``shared`` by all, or each has its own.
    """
    submission, count = hosts[0].submission, len(hosts)
    settings = replace(job.settings, threads=job.settings.threads or max(1, len(allowed_cpus()) // count))
    job = replace(job, processes=count, settings=settings, shared_budget="")
    logs = [log.with_name(f"{log.stem}-rank{rank}.log") for rank in range(count)]
    try:
        for host in hosts:
            host.begin()
        missing = next((rank for rank, host in enumerate(hosts) if not host.ready()), None)
        if missing is None:
            watches = [
                host.start(_job_of(job, rank, 0 if shared else rank), logs[rank], _deaf if rank else on_event)
                for rank, host in enumerate(hosts)
            ]
            _follow(watches, submission.clock.steady)
            endings = [watch.ending for watch in watches]
        elif submission.cancelled():
            endings = [Ending(killed="cancelled", limit="interrupted") for _ in hosts]
        else:
            endings = [Ending(killed=PEER) for _ in hosts]
            endings[missing] = Ending(
                lost=True,
            )
        return [RankEnding(rank, ending, logs[rank]) for rank, ending in enumerate(endings)]
    finally:
        for host in hosts:
            host.close()
        for file in (job.rendezvous, f"{job.rendezvous}-asked"):
            Path(file).unlink(missing_ok=True)


def derive_rank_status(
    planned: PlannedCase, ranks: Sequence[RankEnding], kernel_oom: Callable[[], bool]
) -> tuple[DerivedStatuses, RankEnding]:
    """The one outcome of ``planned``, and the rank that it is of: the first that failed, else the slowest."""
    key = planned.case.key
    own = [each for each in ranks if each.ending.killed != PEER]
    outcomes = {each.rank: derive_statuses([planned], each.ending, kernel_oom) for each in own}
    order = {each.rank: _blame(each, outcomes[each.rank].outcomes[key]) for each in own}
    first = min(own, key=lambda each: order[each.rank])
    derived = outcomes[first.rank]
    outcome = derived.outcomes[key]
    if first.ending.killed == "timeout" and (guilty := who_kept_waiting(ranks)) is not None:
        return _as_guilty(planned, ranks, guilty, outcome)
    facts: dict[str, Scalar] = {**dict(outcome.facts), "processes": len(ranks)}
    if outcome.status is not Status.PASS:
        alike = [each.rank for each in own if order[each.rank] == order[first.rank]]
        named = f"rank{'s' if len(alike) > 1 else ''} {', '.join(map(str, alike))} of {len(ranks)}"
        facts["failed_rank"] = first.rank
        outcome = replace(outcome, reason=f"{named}: {outcome.reason}")
    else:
        slowest = dict(outcome.facts).get("slowest_rank")
        first = next((each for each in own if each.rank == slowest), first)
    derived.outcomes[key] = replace(outcome, facts=tuple(sorted(facts.items())))
    said = (f"rank {rank}: {each.teardown}" for rank, each in outcomes.items() if each.teardown)
    derived.teardown = "; ".join(said)
    return derived, first


def who_kept_waiting(ranks: Sequence[RankEnding]) -> Culprits | None:
    """Who was to blame when the watchdogs last told; None where nobody waited, or no torch records."""
    records: dict[int, FlightRecord | None] = {}
    for each in ranks:
        told = [event["record"] for event in each.ending.events if event["ev"] == FLIGHT_RECORD]
        records[each.rank] = from_plain(FlightRecord, told[-1]) if told else None
    return culprits(records) if any(records.values()) else None


def _as_guilty(
    planned: PlannedCase, ranks: Sequence[RankEnding], guilty: Culprits, outcome: Outcome
) -> tuple[DerivedStatuses, RankEnding]:
    """``outcome``, a time-out, as one of who is ``guilty`` of it."""
    blamed = next(each for each in ranks if each.rank == guilty.ranks[0])
    facts: dict[str, Scalar] = {
        **dict(outcome.facts),
        "processes": len(ranks),
        "failed_rank": blamed.rank,
        "stuck_call": guilty.call,
    }
    reason = f"{guilty.why}: {outcome.reason}"
    said = replace(outcome, reason=reason, facts=tuple(sorted(facts.items())))
    return DerivedStatuses(outcomes={planned.case.key: said}, exit=describe_exit(blamed.ending)), blamed


def _job_of(job: Job, rank: int, further: int) -> Job:
    """The job of ``rank``, with a cache of its own: what one compiles must not be there for another.

    Its device is so much ``further`` than the one that is named.
    """
    device = replace(job.device, index=job.device.index + further)
    return replace(job, rank=rank, device=device, cache=f"{job.cache}-rank{rank}" if rank else job.cache)


def _follow(watches: Sequence[Watch], now: Callable[[], float]) -> None:
    """Return when all have ended; those that wait for one that has failed are ended."""
    failed_at: float | None = None
    while not all(watch.ended for watch in watches):
        quiet = any(watch.ending.phase in TIMED for watch in watches)
        for watch in watches:
            watch.look((QUIET_TICK_S if quiet else TICK_S) / len(watches))
        if failed_at is None and any(map(_has_failed, watches)):
            failed_at = now()
        if failed_at is not None and now() - failed_at > GRACE_S:
            for watch in watches:
                watch.condemn(PEER, "another rank has failed")


def _has_failed(watch: Watch) -> bool:
    ending = watch.ending
    if ending.killed or ending.lost or (watch.ended and ending.status != 0):
        return True
    said = [event["outcome"]["status"] for event in ending.events if event["ev"] == "outcome"]
    return (bool(said) and said[-1] != Status.PASS.value) or any(
        e["ev"] == "no_device" for e in ending.events
    )


def _blame(each: RankEnding, outcome: Outcome) -> tuple[int, float]:
    """Who is blamed first: it died, hung, raised, lost a peer; of two, the first. Who passed is last."""
    said = [event["t"] for event in each.ending.events if event["ev"] in ("outcome", "no_device")]
    if outcome.status is Status.PASS:
        return 4, 0.0
    if said:
        echo = outcome.failure is not None and any(words in outcome.failure.message for words in LOST_PEER)
        return (3 if echo else 2), said[-1]
    return (1 if each.ending.killed == "timeout" else 0), 0.0


def _deaf(_event: object) -> None:
    """Hear nothing: what one rank says is enough for a line of progress."""
