"""What planning a large night costs, and how evenly its jobs are cut.

Real suites on four devices, 16 jobs each, with a store of five nights behind them: 64 published runs a
night, whose durations are drawn at random (log-normal, median 12 s) and whose other columns are filled in.
The work is that of ``torchgauge ci plan``: select the cases, read the durations, share out, name, write. Its
time in one process that has imported everything is "logic", held against the limit in CPU seconds, since
other work on a machine stretches wall time; the wall time of the command, with the interpreter and imports,
stands apart.

Asked: 5,000 cases, 4 pools, 16 shards in <= 1 s; union = plan, disjoint, none empty, longest within 10 %
of the mean.

::

    python benchmarks/ci_plan.py [--repeat 5] [--nights 5] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from child_run import run_child

from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.durations import recorded_durations
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES
from torchgauge.workflows import planning
from torchgauge.workflows.campaign import CampaignPlan, campaign_json, read_campaign
from torchgauge.workflows.config import Config, read_config

DEVICES = ("cpu", "cuda", "xpu", "npu")
SHARDS = 16
CAMPAIGN = """\
version: 1
campaign:
  suites: [timm, huggingface]
  tier: full
  modes: [inference, training]
  dtypes: [float32, bfloat16, float16]
pools:
"""
LIMITS = {"logic_cpu_s": 1.0, "longest_over_mean": 1.1}


def write_config(folder: Path) -> Path:
    """The configuration of the night."""
    pools = [
        f"  - {{name: {device}, device: {device}, runs-on: [self-hosted, tg-{device}], shards: {SHARDS}}}"
        for device in DEVICES
    ]
    path = folder / "torchgauge.yml"
    path.write_text(CAMPAIGN + "\n".join(pools) + "\n")
    return path


def write_history(store: Store, plan: CampaignPlan, nights: int) -> int:
    """Runs of ``nights`` earlier nights, one for each job; returns how many."""
    generator, runs = random.Random(20), 0
    usual = {
        case: generator.lognormvariate(2.5, 0.9)
        for pool in plan.pools
        for shard in pool.shards
        for case in shard.cases
    }
    for night in range(nights):
        for pool in plan.pools:
            for shard in pool.shards:
                run_id = f"2027010{night + 1}T0200{shard.index:02d}Z-{pool.device}{shard.index:02d}"
                _write_run(store, run_id, shard.cases, usual, generator)
                runs += 1
    return runs


def _write_run(
    store: Store, run_id: str, cases: tuple[str, ...], usual: dict[str, float], generator: random.Random
) -> None:
    known: dict[str, Any] = {
        "run_id": [run_id] * len(cases),
        "case_id": list(cases),
        "status": ["pass"] * len(cases),
        "duration_s": [usual[case] * generator.uniform(0.95, 1.05) for case in cases],
    }
    columns = [
        pa.array(known.get(field.name) or [_filler(field.type)] * len(cases), field.type)
        for field in TABLES["results"].schema
    ]
    schema = TABLES["results"].schema.with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
    path = store.table_path("results", run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)


def _filler(kind: Any) -> Any:
    if pa.types.is_string(kind):
        return "x" * 16
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    if pa.types.is_timestamp(kind):
        return datetime(2027, 1, 1, tzinfo=timezone.utc)
    return 1


def plan_once(config: Config, store: Path | None, out: Path) -> CampaignPlan:
    """What the command does, without its words."""
    work = planning.select_cases(config.campaign, planning.devices_of(config.pools))
    recorded = recorded_durations(str(store) if store else None, work.case_ids)
    plan = planning.plan_campaign(config.pools, planning.Occasion(1.0, "2027-01-31"), work, recorded)
    out.write_text(campaign_json(plan))
    return plan


def check(plan: CampaignPlan, config: Config) -> dict[str, Any]:
    """The properties of the packing, over all pools."""
    work = planning.select_cases(config.campaign, planning.devices_of(config.pools))
    worst = 0.0
    for pool in plan.pools:
        wanted = sorted(each.case.id for group in work.groups[pool.device] for each in group.cases)
        held = [case for shard in pool.shards for case in shard.cases]
        assert sorted(held) == wanted, "union is not the plan"
        assert len(set(held)) == len(held), "a case is in two jobs"
        assert len(pool.shards) == SHARDS
        assert all(shard.cases for shard in pool.shards), "an empty job"
        mean = pool.expected_s / len(pool.shards)
        worst = max(worst, *(shard.expected_s / mean for shard in pool.shards))
    return {"cases": len(work.case_ids), "longest_over_mean": round(worst, 5)}


def main() -> int:
    """Measure, print and compare with what was asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nights", type=int, default=5)
    parser.add_argument("--json", metavar="OUT")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_config(folder)
        config, out = read_config(path), folder / "campaign.json"
        store = Store.open(folder / "store", create=True)
        first = plan_once(config, None, out)
        runs = write_history(store, first, words.nights)
        cpu, logic, wall = [], [], []
        for _ in range(words.repeat):
            began, began_cpu = time.perf_counter(), time.process_time()
            plan = plan_once(config, store.path, out)
            logic.append(time.perf_counter() - began)
            cpu.append(time.process_time() - began_cpu)
        command = [sys.executable, "-m", "torchgauge.cli.main", "ci", "plan", "--config", str(path)]
        command += ["--store", str(store.path), "--out", str(folder / "command.json")]
        for _ in range(words.repeat):
            ended = run_child(command, lambda _: read_campaign(folder / "command.json"))
            if ended.results.pools != plan.pools:
                raise SystemExit("the command has planned another night than its functions")
            wall.append(ended.seconds)
        report = {
            **check(plan, config),
            "pools": len(plan.pools),
            "jobs": sum(len(pool.shards) for pool in plan.pools),
            "runs_in_store": runs,
            "logic_cpu_s": round(statistics.median(cpu), 3),
            "logic_wall_s": round(statistics.median(logic), 3),
            "logic_wall_min_s": round(min(logic), 3),
            "process_wall_s": round(statistics.median(wall), 3),
            "process_wall_min_s": round(min(wall), 3),
            "load": round(os.getloadavg()[0], 1),
        }
    print(json.dumps(report, indent=1))
    if words.json:
        Path(words.json).write_text(json.dumps(report, indent=1) + "\n")
    return int(any(report[key] > limit for key, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
