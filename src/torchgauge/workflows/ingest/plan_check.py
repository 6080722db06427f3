"""The plan in a set against the campaign: the cases of its shard, each once, and configurations as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from torchgauge.records import SCHEMA_VERSION, Case, Configuration, Plan, digest
from torchgauge.workflows.campaign import PoolPlan, ShardPlan
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import Window
from torchgauge.workflows.ingest.strict_records import check_depth, decode_large


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that is the campaign's: its digest, and the strict twin of each case by the case's id."""

    run_id: str
    created_at: float
    digest: str
    cases: dict[str, Any]


def check_plan(
    raw: bytes, pool: PoolPlan, shard: ShardPlan, known: Mapping[str, Configuration], window: Window
) -> CheckedPlan:
    """The plan in ``raw``; raises :class:`RefusedSetError` where it is not that of ``shard``.

    ``known`` are the configurations that the campaign's names mean.
    """
    plan = decode_large(raw, Plan, "the plan")
    if plan.schema_version != SCHEMA_VERSION:
        raise RefusedSetError(
            Reason.SCHEMA, f"the plan is of schema {plan.schema_version}, not {SCHEMA_VERSION}"
        )
    window.check(plan.created_at, "the plan")
    cases: dict[str, Any] = {}
    wanted = frozenset(shard.cases)
    for group in plan.groups:
        check_depth(group.recipe, "the recipe of a group")
        for planned in group.cases:
            case = msgspec.convert(planned.case, Case, from_attributes=True)
            _check_case(case, pool, wanted, known)
            if case.id in cases:
                raise RefusedSetError(Reason.CASE_TWICE, f"{case.id} is in the plan twice")
            cases[case.id] = planned.case
    missing = wanted - cases.keys()
    if missing:
        raise RefusedSetError(
            Reason.MISSING_CASE, f"{len(missing)} cases are not planned: {min(missing)}, ..."
        )
    return CheckedPlan(plan.run_id, plan.created_at, digest(msgspec.to_builtins(plan.groups)), cases)


def _check_case(
    case: Case, pool: PoolPlan, wanted: frozenset[str], known: Mapping[str, Configuration]
) -> None:
    if case.id not in wanted:
        raise RefusedSetError(Reason.FOREIGN_CASE, "the plan has a case that is not in the shard")
    if case.device.name != pool.device:
        raise RefusedSetError(Reason.DEVICE, f"{case.id} is not on the device of the pool")
    if known.get(case.configuration.name) != case.configuration:
        raise RefusedSetError(Reason.CONFIGURATION, f"{case.id}: its configuration is not what we call so")
