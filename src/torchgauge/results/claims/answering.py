"""Asking a store: which rows stand for which model, and what they say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.records import INCOMPLETE
from torchgauge.results.claims.aggregate import aggregate
from torchgauge.results.claims.answer import Answer, Answers, Part, Where, Workloads, judge, states
from torchgauge.results.claims.choosing import (
    NEWEST,
    PREVIOUS,
    common_torch,
    fits,
    fits_any,
    fits_torch,
    newest,
    one_torch,
    pair,
    side_torch,
    size_notes,
    size_of,
)
from torchgauge.results.claims.claim import MEASURES, Aggregation, Claim, Question, Select, Side
from torchgauge.results.claims.member import COUNTED, Measured, Member, member_of, member_of_two
from torchgauge.results.claims.missing import commands_for
from torchgauge.results.claims.paired import Paired, paired
from torchgauge.results.claims.stored import EAGER, Keep, Stored, StoredCase, read_keys
from torchgauge.results.comparing.run_pairs import changed_facts
from torchgauge.results.runner_class import runner_class

Key = tuple[str, str]
WITHIN_LAUNCH = "a model's interval covers one launch; variation between launches and hours is not included"


@dataclass(frozen=True)
class Listing:
    """The models that a claim counts, as (suite, model), and which of the stored ones no suite lists.

    ``notes`` are sentences, such as on a suite that is not installed.
    """

    models: tuple[Key, ...]
    unlisted: tuple[Key, ...] = ()
    notes: tuple[str, ...] = ()


Lister = Callable[[Select, Mapping[str, Collection[str]]], Listing]
"""From what is selected, and models by suite in the stores, to what is counted."""


def answer_claim(claim: Claim, stores: Sequence[str], lister: Lister) -> Answers:
    """The answers to ``claim``: one per device and configuration that its rows have.

    Raises :class:`UsageError` where there is no store, or two sides select the same environments.
    """
    question, select = claim.question, claim.select
    metrics = [MEASURES[question.measure].metric] if question.measure else []
    keys = read_keys(stores, select, _configurations(question, select))
    listing = lister(select, keys.models)
    stored = keys.cases(listing.models, _keeper(question, select), metrics)
    asking = _Asking(claim, stores, stored, listing)
    answers = asking.answers()
    return Answers(claim, _with_common(answers, question), (*keys.notes, *listing.notes))


def _configurations(question: Question, select: Select) -> frozenset[str]:
    """Names of the configurations that are read; empty for all, which globs ask for."""
    names = set(select.configurations)
    for side in question.sides or ():
        names |= {side.configuration} if side.configuration else set()
    if question.measure and MEASURES[question.measure].against_eager:
        names.add(EAGER)
    return frozenset() if any("*" in name or "?" in name for name in names) else frozenset(names)


def _keeper(question: Question, select: Select) -> Keep:
    """Which versions of torch have to be read, so that a history of every night need not be.

    All of them where a system or a machine is asked for, since its newest version may be an old one.
    """
    sides = question.sides
    filtered = bool(select.system or select.machine)
    mixed = any(side.device or side.configuration for side in sides or ())

    def keep(_device: str, configuration: str, versions: Sequence[str]) -> Collection[str]:
        fitting = [version for version in versions if fits_torch(select.torch, version)]
        if sides is None:
            asked = fits_any(select.configurations, configuration)
            return fitting[:1] if asked and not filtered else fitting
        named = {side.torch for side in sides}
        words = named & {NEWEST, PREVIOUS}
        if "" in named or (words and (filtered or mixed)):
            return fitting
        by_time = fitting[:2] if words else []
        return {
            *by_time,
            *(each for each in fitting if any(fits_torch(glob, each) for glob in named - words)),
        }

    return keep


def _with_common(answers: Sequence[Answer], question: Question) -> tuple[Answer, ...]:
    """``answers``, each with its number over the models that all of them count.

    Why: the numbers of two devices over different models compare the models, not the devices.
    """
    if len(answers) < 2:
        return tuple(answers)
    sides = [{each.name for each in answer.members if each.state in COUNTED} for answer in answers]
    shared = set.intersection(*sides)
    return tuple(
        replace(answer, common=_part("", [each for each in answer.members if each.name in shared], question))
        for answer in answers
    )


def _part(suite: str, members: Sequence[Member], question: Question) -> Part:
    found = aggregate(members, question)
    return Part(suite, len(members), found.estimate, found.low, found.high, found.n)


@dataclass(frozen=True)
class _Chosen:
    """The rows that stand for the models on one side, by model and then by what pairs them."""

    rows: Mapping[Key, Mapping[str, Measured]]
    where: Where
    notes: tuple[str, ...] = ()

    @property
    def identities(self) -> frozenset[tuple[str, str]]:
        """Run and case of every row."""
        cases = (found.case for below in self.rows.values() for found in below.values())
        return frozenset((case.run_id, case.case_key) for case in cases)


@dataclass(frozen=True)
class _Drawn:
    """What an answer is made of: its models, the rows that stand for them, and one side or two."""

    members: tuple[Member, ...]
    used: tuple[StoredCase, ...]
    size: str
    sides: tuple[_Chosen, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Asking:
    claim: Claim
    stores: Sequence[str]
    stored: Stored
    listing: Listing

    @cached_property
    def _counted(self) -> frozenset[Key]:
        return frozenset(self.listing.models)

    def answers(self) -> list[Answer]:
        """One answer per column; one of nothing where no row fits."""
        question = self.claim.question
        columns = self._columns()
        if question.sides:
            return [self._of_two(device, configuration) for device, configuration in columns]
        return [self._of_one(device, configuration) for device, configuration in columns]

    def _columns(self) -> list[tuple[str, str]]:
        """Devices and configurations that have an answer of their own; ``""`` where the sides name them."""
        question, select = self.claim.question, self.claim.select
        own_device = any(side.device for side in question.sides or ())
        own_configuration = any(side.configuration for side in question.sides or ())
        found = {
            ("" if own_device else case.device, "" if own_configuration else case.configuration): None
            for case in self._selected()
            if own_configuration or fits_any(select.configurations, case.configuration)
        }
        asked = {
            ("" if own_device else device, "" if own_configuration else configuration): None
            for device in (select.devices or ("",))
            for configuration in select.configurations
        }
        empty = [
            (device, configuration)
            for device, configuration in asked
            if not any(fits(device, name) and fits(configuration, other) for name, other in found)
        ]
        return [*sorted(found), *empty]

    def _selected(self) -> Iterable[StoredCase]:
        """Rows of the models and devices of the claim."""
        select = self.claim.select
        for case in self.stored.cases:
            if case.key in self._counted and fits_any(select.devices, case.device):
                yield case

    def _rows(self, device: str, configuration: str) -> list[StoredCase]:
        select = self.claim.select
        return [
            case
            for case in self._selected()
            if fits(device, case.device)
            and fits(configuration, case.configuration)
            and self._fits_environment(case, Side(system=select.system, machine=select.machine))
        ]

    def _fits_environment(self, case: StoredCase, side: Side) -> bool:
        """Whether ``case`` is of ``side``; a row of which nothing is known fits where nothing is asked."""
        if not (fits(side.device, case.device) and fits(side.configuration, case.configuration)):
            return False
        if not fits(side.environment, case.environment):
            return False
        if not (side.system or side.machine):
            return True
        return fits(side.system, self._system(case)) and fits(side.machine, self._machine(case))

    def _system(self, case: StoredCase) -> str:
        environment = self.stored.environments.get(case.environment)
        return str(dict(environment.identity).get("host.system") or "") if environment else ""

    def _machine(self, case: StoredCase) -> str:
        environment = self.stored.environments.get(case.environment)
        return runner_class(environment) if environment else ""

    def _of_one(self, device: str, configuration: str) -> Answer:
        select, question = self.claim.select, self.claim.question
        stored = self.stored.versions.get((device, configuration), ())
        versions = [version for version in stored if fits_torch(select.torch, version)]
        rows, note = one_torch(self._rows(device, configuration), select.torch, versions)
        size = size_of(select.size, rows)
        chosen = self._chosen([case for case in rows if case.size == size], (device, configuration))
        members = tuple(
            member_of(key, newest(chosen.rows.get(key, {})), question) for key in self.listing.models
        )
        used = [found.case for key in chosen.rows if (found := newest(chosen.rows[key]))]
        notes = (*([note] if note else []), *size_notes(rows, size), *chosen.notes)
        return self._answer((device, configuration), _Drawn(members, tuple(used), size, (chosen,), notes))

    def _of_two(self, device: str, configuration: str) -> Answer:
        question = self.claim.question
        assert question.sides is not None
        torch = self.claim.select.torch
        rows = [case for case in self._rows(device, configuration) if fits_torch(torch, case.torch)]
        size = size_of(self.claim.select.size, rows)
        sized = [case for case in rows if case.size == size]
        sides, notes = [], list(size_notes(rows, size))
        found = [[case for case in sized if self._fits_environment(case, side)] for side in question.sides]
        if not any(side.torch or side.environment for side in question.sides):
            found[0], found[1], said = common_torch(*found)
            notes += said
        for name, side, fitting in zip(("base", "head"), question.sides, found, strict=True):
            kept, note = side_torch(fitting, side.torch, rows)
            notes += [f"{name}: {each}" for each in note]
            sides.append(self._chosen(kept, (side.device or device, side.configuration or configuration)))
        found_together = paired(self.claim, self.stores, device, configuration)
        if found_together.members:
            sides = [_with_matrix(side, found_together, at) for at, side in enumerate(sides)]
            held = len(found_together.members.keys() & self._counted)
            names = ", ".join(found_together.matrices)
            notes.append(
                f"{counted(held, 'ratio is', 'ratios are')} from version "
                f"matrix {names}, which alternated base and head"
            )
        base, head = sides
        if base.identities and base.identities == head.identities:  # their ratio would be 1 and say nothing
            raise UsageError(
                "base and head select the same rows", hint="--base torch=VERSION --head torch=VERSION"
            )
        members, used = [], []
        for key in self.listing.models:
            both = pair(base.rows.get(key, {}), head.rows.get(key, {}))
            members.append(found_together.members.get(key) or member_of_two(key, *both, question))
            used += [side.case for side in both if side]
        notes += [f"{name}: {each}" for name, side in (("base", base), ("head", head)) for each in side.notes]
        drawn = _Drawn(tuple(members), tuple(used), size, (base, head), tuple(notes))
        return self._answer((device, configuration), drawn)

    def _chosen(self, rows: Sequence[StoredCase], names: tuple[str, str]) -> _Chosen:
        """The newest row of every model and workload, with eager beside it; where they were measured."""
        measure = self.claim.question.measure
        eager = self._eager() if measure and MEASURES[measure].against_eager else {}
        found: dict[Key, dict[str, Measured]] = {}
        for case in rows:
            beside = eager.get((case.run_id, case.workload, case.device))
            beside = beside or eager.get((case.environment, case.workload, case.device))
            below = found.setdefault(case.key, {})
            before = below.get(case.workload)
            if before and case.status in INCOMPLETE and before.case.status not in INCOMPLETE:
                continue
            below.pop(case.workload, None)  # the newest is the last one
            below[case.workload] = Measured(case, beside)
        several = sum(len(each) > 1 for each in found.values())
        used = [measured.case for each in found.values() for measured in each.values()]
        where = self._where(used, names)
        notes = []
        if several:
            notes.append(
                f"{counted(several, 'model has', 'models have')} several "
                "workloads (batch, shape or weights): the newest counts"
            )
        if len(where.machines) > 1:
            notes.append(
                f"numbers are from {counted(len(where.machines), 'class')} of machine; --machine selects one"
            )
        return _Chosen(found, where, tuple(notes))

    def _eager(self) -> dict[tuple[str, str, str], StoredCase]:
        """Eager rows by run and by environment, each with workload and device."""
        return {
            (where, case.workload, case.device): case
            for case in self.stored.cases
            if case.configuration == EAGER
            for where in (case.run_id, case.environment)
        }

    def _where(self, cases: Sequence[StoredCase], names: tuple[str, str]) -> Where:
        latest = sorted(cases, key=lambda case: case.at, reverse=True)
        device, configuration = names
        return Where(
            device=", ".join(dict.fromkeys(case.device for case in latest)) or device,
            configuration=", ".join(dict.fromkeys(case.configuration for case in latest)) or configuration,
            torch=tuple(dict.fromkeys(case.torch for case in latest if case.torch)),
            systems=tuple(dict.fromkeys(text for case in latest if (text := self._system(case)))),
            machines=tuple(dict.fromkeys(text for case in latest if (text := self._machine(case)))),
            environments=tuple(dict.fromkeys(case.environment for case in latest if case.environment)),
            runs=len({case.run_id for case in cases}),
            oldest_at=latest[-1].at if latest else None,
            newest_at=latest[0].at if latest else None,
        )

    def _answer(self, column: tuple[str, str], drawn: _Drawn) -> Answer:
        question, select = self.claim.question, self.claim.select
        members, sides, notes = drawn.members, drawn.sides, drawn.notes
        found = aggregate(members, question)
        verdict, why = judge(found, question)
        where = tuple(side.where for side in sides)
        suites = dict.fromkeys(member.suite for member in members)
        by_suite = [
            _part(suite, [each for each in members if each.suite == suite], question) for suite in suites
        ]
        if found.n and question.aggregation is not Aggregation.PASS_RATE:
            notes = (*notes, WITHIN_LAUNCH)
        unlisted = {f"{suite}/{model}" for suite, model in self.listing.unlisted}
        listed = [member for member in members if member.name not in unlisted]  # and so can be run
        if others := len(members) - len(listed):
            notes = (*notes, f"listed by no installed suite: {counted(others, 'model')} of the store")
        return Answer(
            claim=self.claim.name,
            device=where[0].device if len(where) == 1 else column[0] or _both(where, "device"),
            configuration=where[0].configuration
            if len(where) == 1
            else column[1] or _both(where, "configuration"),
            verdict=verdict,
            why=why,
            estimate=found.estimate,
            low=found.low,
            high=found.high,
            n=found.n,
            unit=question.unit,
            method=found.method,
            confidence=found.confidence,
            planned=len(members),
            counts=states(members),
            members=members,
            suites=tuple(by_suite) if len(by_suite) > 1 else (),
            where=where,
            workloads=_workloads(select, drawn.used),
            differs=self._differs(sides) if len(sides) == 2 else (),
            notes=notes,
            commands=commands_for(listed, self.claim, where, drawn.size or select.size, self.stores[0]),
        )

    def _differs(self, sides: tuple[_Chosen, ...]) -> tuple[tuple[str, str, str], ...]:
        """Facts in which the newest environments of base and head differ."""
        ids = [side.where.environments[:1] for side in sides]
        known = [self.stored.environments.get(each[0]) if each else None for each in ids]
        if known[0] is None or known[1] is None:
            return ()
        changed = changed_facts(known[0], known[1])
        return tuple((name, str(old), str(new)) for name, (old, new) in sorted(changed.items()))


def _with_matrix(side: _Chosen, found: Paired, at: int) -> _Chosen:
    """One side with where the matrix measured it."""
    where = side.where
    times = [each for each in (where.newest_at, found.newest_at) if each is not None]
    return replace(
        side,
        where=replace(
            where,
            torch=tuple(dict.fromkeys((*found.torch[at], *where.torch))),
            machines=tuple(dict.fromkeys((*found.machines, *where.machines))),
            runs=where.runs + 1,
            oldest_at=min([*times, *([] if where.oldest_at is None else [where.oldest_at])]),
            newest_at=max(times),
        ),
    )


def _both(where: tuple[Where, ...], name: str) -> str:
    return " -> ".join(dict.fromkeys(str(getattr(each, name)) for each in where))


def _workloads(select: Select, used: Sequence[StoredCase]) -> Workloads:
    counts = Counter(size for size, _ in {(case.size, case.key) for case in used})
    known = [case.parameters for case in used if case.parameters is not None]
    return Workloads(
        mode=select.mode,
        dtype=select.dtype,
        sizes=tuple(sorted(counts.items())),
        batches=tuple(sorted({case.batch for case in used})),
        extras=tuple(sorted({case.extras for case in used if case.extras})),
        parameters=(min(known), max(known)) if known else None,
    )
