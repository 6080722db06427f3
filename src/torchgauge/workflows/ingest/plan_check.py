"""The plan in a set against the campaign: the cases of its shard, each once, and configurations as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from torchgauge.counted import counted
from torchgauge.harness.backends.backend import named_by_backend
from torchgauge.records import SCHEMA_VERSION, Case, Configuration, Plan, PlannedCase
from torchgauge.workflows.campaign import PoolPlan, ShardPlan, terms_of
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import Window
from torchgauge.workflows.ingest.strict_records import check_depth, decode

RECIPES_BYTES = 1 << 20
"""Most bytes of what suites say of how to build all models of a shard; one recipe has some hundred."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that is the campaign's: its digest, and each planned case by its id.

    What is expected of a case is the campaign's word, in the place of the set's own.
    """

    run_id: str
    created_at: float
    digest: str
    cases: dict[str, PlannedCase]


def check_plan(
    raw: bytes, pool: PoolPlan, shard: ShardPlan, known: Mapping[str, Configuration], window: Window
) -> CheckedPlan:
    """Return the plan in ``raw``; raises :class:`RefusedSetError` where it is not that of ``shard``.

    ``known`` are the configurations that the campaign's names mean.
    """
    plan = decode(raw, Plan, "the plan", len(raw))
    if plan.schema_version != SCHEMA_VERSION:
        raise RefusedSetError(
            Reason.SCHEMA, f"the plan has schema version {plan.schema_version}, not {SCHEMA_VERSION}"
        )
    window.check(plan.created_at, "the plan")
    wanted, expected = frozenset(shard.cases), dict(shard.expected)
    cases: dict[str, PlannedCase] = {}
    recipes = 0
    for group in plan.groups:
        check_depth(group.recipe, "the recipe of a group")
        recipes += len(msgspec.json.encode(group.recipe))
        if recipes > RECIPES_BYTES:
            raise RefusedSetError(Reason.TOO_LARGE, f"recipes have more than {RECIPES_BYTES} bytes")
        if not group.cases:
            raise RefusedSetError(Reason.SCHEMA, "a group of the plan without a case")
        for planned in group.cases:
            case = planned.case
            _check_case(case, pool, wanted, known)
            if case.id in cases:
                raise RefusedSetError(Reason.CASE_TWICE, f"{case.id} is in the plan twice")
            cases[case.id] = replace(planned, expectation=expected.get(case.id))
    if missing := wanted - cases.keys():
        words = f"{counted(len(missing), 'case is', 'cases are')} not planned: {min(missing)}, ..."
        raise RefusedSetError(Reason.MISSING_CASE, words)
    if terms_of(cases) != shard.terms:
        raise RefusedSetError(
            Reason.TOLERANCE, "the cases, tolerances or models in this plan differ from the campaign's"
        )
    return CheckedPlan(plan.run_id, plan.created_at, plan.digest, cases)


def _check_case(
    case: Case, pool: PoolPlan, wanted: frozenset[str], known: Mapping[str, Configuration]
) -> None:
    if case.id not in wanted:
        raise RefusedSetError(Reason.FOREIGN_CASE, "the plan has a case that is not in the shard")
    if case.device.name != pool.device:
        raise RefusedSetError(Reason.DEVICE, f"{case.id} is not for the device of the pool")
    name = case.configuration.name
    if (known.get(name) or named_by_backend(name)) != case.configuration:
        raise RefusedSetError(
            Reason.CONFIGURATION, f"{case.id}: configuration {name} differs from the campaign's"
        )
