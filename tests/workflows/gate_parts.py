"""Parts of the gate's tests: a run that ended, reports of any size, sets as jobs submit them."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from stored_runs import BEGIN, case, verdict

from torchgauge.records.comparison import MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.gate_verdict import headline
from torchgauge.results.journal import RunState
from torchgauge.results.reports.report import ComparisonReport, SideFacts, count
from torchgauge.workflows.config import parse_config
from torchgauge.workflows.gate_base import GateBase, asked_by
from torchgauge.workflows.gate_plan import GateJob, GatePlan
from torchgauge.workflows.gate_set import Origin, write_gate_set
from torchgauge.workflows.workflow_event import GateRun

SHA, NEWER, BASE = "a" * 40, "b" * 40, "c" * 40
FORK = "stranger/project"
RUN = GateRun("owner/project", 77, 1, SHA, "topic", FORK, "success")
PLAN = GatePlan(("cpu",))
CAMPAIGN = "campaign: {suites: [toy], models: [noop], configs: [eager]}"
"""It plans the one case that a set here has, where it has one."""
ORIGIN = Origin("owner/project", SHA, 77, 1)
WORSE = {"ratio": 1.1, "low": 1.05, "high": 1.15, "base": 1.0, "head": 1.1, "p_adjusted": 0.001}
FINE = {"ratio": 1.0, "low": 0.99, "high": 1.01, "base": 1.0, "head": 1.0, "spread": 0.005}


def config_of(*pools: str, own: tuple[str, ...] = ()) -> str:
    """The text of a torchgauge.yml with ``pools`` for everyone and ``own`` ones for collaborators."""
    lines = [f"  - {{name: {name}, device: fake, runs-on: ubuntu-24.04, trust: anyone}}" for name in pools]
    lines += [f"  - {{name: {name}, device: fake, runs-on: [self-hosted, tg-{name}]}}" for name in own]
    return f"version: 1\n{CAMPAIGN}\npools:\n" + "\n".join(lines) + "\n"


def base_with(*pools: str, own: tuple[str, ...] = ()) -> GateBase:
    """What :func:`config_of` asks for."""
    return asked_by(parse_config(config_of(*pools, own=own)))


def job(name: str, conclusion: str = "success") -> GateJob:
    """A job of a run."""
    return GateJob(name, conclusion)


def pair(model: str = "noop") -> Pair:
    return Pair(case(model), case(model))


def of(said: Verdict, model: str = "noop", **fields: Any) -> MetricVerdict:
    """A verdict on the latency of ``model``, with numbers that fit it."""
    numbers = WORSE if said is Verdict.REGRESSION else FINE if said is Verdict.UNCHANGED else {}
    return verdict(pair(model), said, **{**numbers, **fields})


def report(*verdicts: MetricVerdict, state: RunState = RunState.COMPLETE, **fields: Any) -> ComparisonReport:
    """A report of ``verdicts``."""
    counts = count(len({each.pair_key for each in verdicts}), verdicts, 0)
    told: dict[str, Any] = {
        "run_id": "20260528T201000Z-00000001",
        "created_at": BEGIN,
        "state": state,
        "headline": headline(verdicts, incomplete=state is not RunState.COMPLETE),
        "counts": counts,
        "base": SideFacts("torch==2.12.0", "/old/python", (), "", ()),
        "head": SideFacts("torch==2.13.0", "/new/python", (), "", ()),
        "verdicts": tuple(verdicts),
        "not_run": (),
        "detectable": 0.02,
        "false_alarms": None,
        "command": ("torchgauge", "ci", "gate"),
        "policy": "",
        "marker": "0" * 16,
    }
    return ComparisonReport(**{**told, **fields})


def gate_set(folder: Path, made: ComparisonReport | None, pool: str = "cpu", **fields: Any) -> Path:
    """A set of ``pool`` in ``folder``, as a job of :data:`RUN` submits it."""
    origin = fields.pop("origin", ORIGIN)
    out = folder / f"pr-gate-v1-{pool}"
    folder.mkdir(parents=True, exist_ok=True)
    write_gate_set(out, origin, pool, ("torch==2.12.0", "torch==2.13.0"), made, **fields)
    return out


def zipped(folder: Path) -> bytes:
    """The zip of an artifact of the files in ``folder``."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    return stream.getvalue()


def pull(number: int = 5, sha: str = SHA, **fields: Any) -> dict[str, Any]:
    """A pull request as the API lists it."""
    told = {
        "number": number,
        "state": "open",
        "title": "${{ secrets.TOKEN }} @everyone",
        "user": {"login": "stranger", "type": "User"},
        "labels": [],
        "head": {"sha": sha, "ref": "topic", "repo": {"full_name": FORK}},
        "base": {"ref": "main", "sha": BASE},
    }
    return {**told, **fields}


def event(**changes: Any) -> dict[str, Any]:
    """The event of a run of the gate that has ended, as GitHub sends it for a fork."""
    run = {
        "id": 77,
        "name": "pr-gate",
        "path": ".github/workflows/pr-gate.yml",
        "event": "pull_request",
        "status": "completed",
        "conclusion": "success",
        "run_attempt": 1,
        "head_sha": SHA,
        "head_branch": "topic",
        "head_repository": {"full_name": FORK},
        "pull_requests": [],
    }
    return {
        "action": "completed",
        "repository": {"full_name": "owner/project", "default_branch": "main"},
        "workflow_run": {**run, **changes},
    }
