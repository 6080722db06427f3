"""Several attempts at a case: all are kept, and one of them is its row.

An attempt that broke down, or that was made beside others who may be to blame, gives way to the next. Of
attempts that somebody asked for the last one stands; where they ended differently the case is flaky, and the
last one that did not pass stands, so that no repetition makes a failure a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchgauge.records import Again, Attempt, Modifier, Result, Status, are_flaky, say_flaky
from torchgauge.records.attempt import MEASURED_ON
from torchgauge.results.journal import EarlierAttempt


@dataclass
class Attempts:
    """The earlier attempts at cases that have no row yet, by the key of the case."""

    earlier: dict[str, list[EarlierAttempt]] = field(default_factory=dict)

    def add(self, again: Again, result: Result) -> EarlierAttempt:
        """Keep ``result``, whose case is attempted ``again``; the record with its number."""
        said = EarlierAttempt(again, _next(result, self.earlier.get(result.case.key, [])))
        self.restore(said)
        return said

    def restore(self, said: EarlierAttempt) -> None:
        """Know of an attempt that a journal has."""
        self.earlier.setdefault(said.result.case.key, []).append(said)

    def close(self, last: Result) -> tuple[Result, EarlierAttempt | None]:
        """The row of the case of ``last``, and ``last`` itself where an earlier attempt is the row."""
        earlier = self.earlier.pop(last.case.key, [])
        if last.attempts:  # a worker elsewhere has closed them; what was lost before it is not in them
            first = min(each.number for each in last.attempts)
            before = (attempt_of(each.result, each.again) for each in earlier if each.result.attempt < first)
            return replace(last, attempts=(*before, *last.attempts)), None
        if earlier and last.status is Status.NOT_RUN and _says(earlier[-1]):  # it came to no other attempt
            last = earlier.pop().result
        if not earlier:
            return last, None
        last = _next(last, earlier)
        rows = [*(each.result for each in earlier), last]
        attempts = (*(attempt_of(each.result, each.again) for each in earlier), attempt_of(last))
        told = [place for place, each in enumerate(attempts) if each.tells]
        flaky = are_flaky(attempts)
        if flaky:
            told = [place for place in told if attempts[place].status is not Status.PASS]
        chosen = told[-1] if told else len(rows) - 1
        row = replace(rows[chosen], attempts=attempts)
        if flaky:
            facts = {**dict(row.facts), Modifier.FLAKY.value: say_flaky(attempts)}
            modifiers = (*row.modifiers, Modifier.FLAKY)
            row = replace(row, modifiers=modifiers, facts=tuple(sorted(facts.items())))
        return row, None if rows[chosen] is last else EarlierAttempt(Again.ASKED, last)

    def give_up(self, key: str) -> Result | None:
        """The row of a case of which no further attempt was made; None where there was none at all."""
        earlier = self.earlier.get(key)
        return self.close(earlier.pop().result)[0] if earlier and _says(earlier[-1]) else None

    def has(self, result: Result) -> bool:
        """Whether this attempt is known: a resumed run reads again what the job of a part had told."""
        known = (each.result for each in self.earlier.get(result.case.key, ()))
        return any(
            (each.log, each.started_at) == (result.log, result.started_at) for each in known if each.log
        )


def attempt_of(result: Result, again: Again | None = None) -> Attempt:
    """What is told of ``result`` among the attempts at its case."""
    return Attempt(
        number=result.attempt,
        status=result.status,
        phase=result.phase,
        cause=result.cause,
        reason=result.reason,
        device=str(dict(result.facts).get(MEASURED_ON) or result.case.device),
        started_at=result.started_at,
        duration_s=result.duration_s,
        log=result.log,
        again=again,
    )


def _says(attempt: EarlierAttempt) -> bool:
    """Whether an attempt may stand: what neighbours may be to blame for says nothing of its case."""
    return attempt.again is not Again.ALONE or attempt.result.status is Status.PASS


def _next(result: Result, earlier: list[EarlierAttempt]) -> Result:
    """``result`` with a number above those of the ``earlier`` attempts."""
    known = earlier[-1].result.attempt if earlier else 0
    return replace(result, attempt=max(result.attempt, known + 1))
