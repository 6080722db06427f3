"""The Parquet tables of A/B runs, and the records that fill them: verdicts, launches and steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from torchgauge.clock import utc
from torchgauge.records.comparison import ComparisonPlan, Launch, MetricVerdict, Pair
from torchgauge.results.tables import BOOLEAN, INTEGER, NUMBER, STRING, TIME, Column, Table, required

_PAIR = (
    required("run_id", STRING, "the A/B run"),
    required("pair_key", STRING, "sixteen hex digits that identify the pair across runs"),
    required("pair_id", STRING, "readable name of the pair"),
)

VERDICTS = Table(
    "verdicts",
    "one metric of one pair of one A/B run; a run is published once it has this file",
    (
        *_PAIR,
        required("suite", STRING, "name of the suite"),
        required("model", STRING, "name of the model in its suite"),
        required("mode", STRING, "inference, training or generate"),
        required("device", STRING, "name of the device plugin"),
        required("base_case", STRING, "the case of the base"),
        required("head_case", STRING, "the case of the head"),
        required("base_label", STRING, "description of the base"),
        required("head_label", STRING, "description of the head"),
        required("metric", STRING, "name of the metric, or `status`"),
        required("unit", STRING, "its base unit"),
        required("estimator", STRING, "method that reduces a launch to one number: see the comparison page"),
        required("verdict", STRING, "verdict on the metric"),
        Column("reason", STRING, "reason of the verdict"),
        Column("base", NUMBER, "median of the base, in `unit`"),
        Column("head", NUMBER, "median of the head, in `unit`"),
        Column("ratio", NUMBER, "head over base"),
        Column("low", NUMBER, "lower end of the ratio's interval"),
        Column("high", NUMBER, "its upper end"),
        required("confidence", NUMBER, "confidence of the interval"),
        Column("p", NUMBER, "two-sided p-value of no change"),
        Column("p_adjusted", NUMBER, "p-value, adjusted over all hypotheses of the run"),
        required("tolerance", NUMBER, "smallest relative change that matters"),
        required("launches", INTEGER, "launches that entered"),
        Column("needed", INTEGER, "number of launches that would probably give a verdict"),
        Column("detectable", NUMBER, "smallest detectable relative change, at 80 % power"),
        Column("spread", NUMBER, "standard deviation of the log ratio between launches"),
        Column("prior_spread", NUMBER, "standard deviation of the log ratio in the noise history"),
        required("prior_df", NUMBER, "effective degrees of freedom of the noise history"),
        Column(
            "confirmed", BOOLEAN, "whether fresh launches confirmed the verdict; null without fresh launches"
        ),
        required("quarantined", BOOLEAN, "whether the case was in quarantine"),
        required("control", BOOLEAN, "whether the pair is a control: head measured against head"),
        required("action", STRING, "`gate`, `report` or `ignore`"),
        required("time_s", NUMBER, "time spent on the pair, seconds"),
        Column("runner_class", STRING, "class of the machine and device; null where it is not known"),
        required("run_created_at", TIME, "when the run was planned, UTC"),
    ),
)

LAUNCHES = Table(
    "launches",
    "one launch of one pair of one A/B run",
    (
        *_PAIR,
        required("launch", INTEGER, "number of the launch in its run, from 1"),
        required("first", STRING, "the side that started first"),
        required("confirms", BOOLEAN, "whether the launch re-measured a suspected change"),
        required("control", BOOLEAN, "whether the pair is a control: head measured against head"),
        required("cpus", STRING, "CPUs to which both sides were bound, a JSON list; empty without binding"),
        required("base_status", STRING, "status of the base in this launch"),
        required("head_status", STRING, "status of the head in this launch"),
        Column("base_reason", STRING, "reason of the status"),
        Column("head_reason", STRING, "reason of the status"),
        required("base_metrics", STRING, "samples of the base except step times, a JSON object of lists"),
        required("head_metrics", STRING, "samples of the head except step times, a JSON object of lists"),
        required(
            "abba_blocks", INTEGER, "measured groups of four blocks: base, head, head, base, or the reverse"
        ),
        Column("started_at", TIME, "start of the launch, UTC"),
        required("setup_s", NUMBER, "time to start, build and warm up, seconds"),
        required("measure_s", NUMBER, "time of the ABBA blocks, seconds"),
        required("conditions", STRING, "load and other conditions of the machine, a JSON object"),
        Column("case_id", STRING, "the case of the head"),
        Column("runner_class", STRING, "class of the machine and device; null where it is not known"),
        Column("estimator", STRING, "how `log_ratio` was estimated; null where it could not be"),
        Column("log_ratio", NUMBER, "log of head over base by `estimator`; null without an estimate"),
        Column("wall_log_ratio", NUMBER, "log of head over base by wall time"),
        Column(
            "memory_log_ratio", NUMBER, "log of head over base of peak memory; null where a side has none"
        ),
    ),
)

STEPS = Table(
    "steps",
    "one step of one side in one launch of one pair",
    (
        required("run_id", STRING, "the A/B run"),
        required("pair_key", STRING, "the pair"),
        required("launch", INTEGER, "number of the launch"),
        required("abba_block", INTEGER, "number of the ABBA block in its launch, from 0"),
        required("position", INTEGER, "position of the block within ABBA, 0 to 3"),
        required("side", STRING, "`base` or `head`"),
        required("index", INTEGER, "position of the step in its block, from 0"),
        required("wall_s", NUMBER, "wall time, seconds"),
        required("cpu_s", NUMBER, "CPU time of the process, seconds"),
        Column(
            "delay_s",
            NUMBER,
            "time that threads of the process waited for a core, seconds; null where not known",
        ),
        Column("switches", INTEGER, "involuntary context switches; null where not known"),
        Column(
            "device_s", NUMBER, "event time of the device, seconds; null for a device without timing events"
        ),
    ),
)

COMPARISON_TABLES: dict[str, Table] = {table.name: table for table in (STEPS, LAUNCHES, VERDICTS)}
"""In the order in which they are published: ``verdicts`` last, since it publishes the run."""


def verdict_row(
    plan: ComparisonPlan, verdict: MetricVerdict, classes: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The row of ``verdicts``; a verdict on the whole suite belongs to no pair and has ``*`` as its model.

    ``classes`` are classes of runners by name of the device.
    """
    pair = next((pair for pair in plan.pairs if pair.key == verdict.pair_key), None)
    fields = {name: getattr(verdict, name) for name in VERDICTS.names if hasattr(verdict, name)}
    return {
        **fields,
        **_workload(pair, plan.pairs),
        "run_id": plan.run_id,
        "base_label": (plan.head if verdict.control else plan.base).label,
        "head_label": plan.head.label,
        "verdict": verdict.verdict.value,
        "action": verdict.action.value,
        "reason": verdict.reason or None,
        "runner_class": (classes or {}).get(pair.head.device.name) if pair else None,
        "run_created_at": utc(plan.created_at),
    }


def launch_row(run_id: str, launch: Launch) -> dict[str, Any]:
    """The row of ``launches``."""
    return {
        "run_id": run_id,
        "pair_key": launch.pair_key,
        "pair_id": launch.pair_id,
        "launch": launch.number,
        "first": launch.first.value,
        "confirms": launch.confirms,
        "control": launch.control,
        "cpus": json.dumps(list(launch.cpus)),
        "base_status": launch.base.status.value,
        "head_status": launch.head.status.value,
        "base_reason": launch.base.reason or None,
        "head_reason": launch.head.reason or None,
        "base_metrics": _metrics(launch.base.measurements),
        "head_metrics": _metrics(launch.head.measurements),
        "abba_blocks": len({block.abba_block for block in launch.blocks}),
        "started_at": utc(launch.started_at) if launch.started_at else None,
        "setup_s": launch.setup_s,
        "measure_s": launch.measure_s,
        "conditions": json.dumps(dict(launch.conditions), allow_nan=False),
    }


def step_rows(run_id: str, launch: Launch) -> Iterator[dict[str, Any]]:
    """The rows of ``steps``."""
    for block in launch.blocks:
        for index, wall in enumerate(block.wall):
            yield {
                "run_id": run_id,
                "pair_key": launch.pair_key,
                "launch": launch.number,
                "abba_block": block.abba_block,
                "position": block.position,
                "side": block.side.value,
                "index": index,
                "wall_s": wall,
                "cpu_s": block.cpu[index],
                "delay_s": block.delay[index] if block.delay else None,
                "switches": block.switches[index] if block.switches else None,
                "device_s": block.device[index] if block.device else None,
            }


def _workload(pair: Pair | None, pairs: tuple[Pair, ...]) -> dict[str, Any]:
    if pair is None:
        suites = sorted({each.head.workload.suite for each in pairs})
        devices = sorted({str(each.head.device) for each in pairs})
        return {"suite": ",".join(suites), "model": "*", "mode": "*", "device": ",".join(devices)}
    workload = pair.head.workload
    return {
        "suite": workload.suite,
        "model": workload.model,
        "mode": workload.mode,
        "device": str(pair.head.device),
    }


def _metrics(measurements: Any) -> str:
    return json.dumps({each.metric: list(each.samples) for each in measurements if each.samples})
