"""Nights of a real campaign: planned, collected and gated by their commands, measured once and replayed.

The first night is measured for real. Later ones submit its rows again, with other step times or endings, so
that no test waits for twenty nights or depends on how busy a machine is; what a suspicion needs is measured.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from statistics import median_low
from typing import Any

from click.testing import CliRunner
from click.testing import Result as Done

import torchgauge
from torchgauge.cli.main import cli
from torchgauge.records import METRICS, Environment, Modifier, Plan, Result, from_plain
from torchgauge.results.journal import End, Kind, RunState, read, results
from torchgauge.results.stats import summarise
from torchgauge.results.store import RunFolder, Store
from torchgauge.workflows.campaign import read_campaign
from torchgauge.workflows.result_set import Job, pack

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLUGIN = Path(__file__).resolve().parents[1] / "harness" / "ab" / "racers_plugin"
MODELS = ("steady", "faulty")
CONFIG = """\
version: 1
campaign: {{suites: [{suite}], models: [{models}], modes: [{mode}], configs: [eager], budget: 15m}}
pools:
  - {{name: bench, device: {device}, runs-on: [self-hosted, tg-bench], install: sh build.sh}}
"""
BUILD = """\
site=$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
echo 'import os; os.environ["RACERS_FACTOR"] = "{factor}"' >"$site/racers.pth"
"""
NIGHTS = 20
BLOCKS = 20
DAY = 86_400.0
CLOCKED = {"latency", "first_token_time", "output_token_time"}
"""Times of the blocks of a row."""
Edit = Callable[[Result], Result]


@dataclass
class Nights:
    """A repository with its history; the folder is the place where the commands run.

    ``good`` and ``suspect`` are the commits of the nights before the change and after it.
    """

    folder: Path
    good: str = "a" * 40
    suspect: str = "b" * 40
    number: int = NIGHTS
    outputs: dict[str, str] = field(default_factory=dict)
    plugin: Path = PLUGIN

    @property
    def path(self) -> str:
        """Where Python finds the package and the plugin."""
        return os.pathsep.join([str(SOURCE), str(self.plugin)])

    @property
    def store(self) -> Store:
        return Store.open(self.folder / "history")

    def ci(self, *words: str) -> Done:
        """Run one command here, with step outputs as a runner reads them."""
        told = self.folder / "outputs"
        told.unlink(missing_ok=True)
        variables = {
            "GITHUB_OUTPUT": str(told),
            "GITHUB_SHA": self.suspect,
            "GITHUB_REPOSITORY": "owner/name",
        }
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            done = CliRunner().invoke(cli, ["ci", *words], env=variables)
        finally:
            os.chdir(before)
        if told.is_file():
            self.outputs = read_outputs(told.read_text())
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    def configure(
        self, *models: str, suite: str = "racers", mode: str = "inference", device: str = "fake"
    ) -> None:
        words = {"suite": suite, "models": ", ".join(models), "mode": mode, "device": device}
        (self.folder / "torchgauge.yml").write_text(CONFIG.format(**words))

    def plan(self) -> None:
        self.number += 1
        night = (date(2026, 6, 1) + timedelta(days=self.number)).isoformat()
        assert self.ci("plan", "--store", "history", "--night", night).exit_code == 0

    def night(self, edit: Edit = lambda row: row) -> Done:
        """A whole night up to its gate: the rows of the first one as ``edit`` leaves them."""
        self.plan()
        campaign = read_campaign(self.folder / "campaign.json")
        (pool,) = campaign.pools
        work = Store.open(self.folder / "work", create=True)
        run_id = f"20260601T000000Z-{self.number:08x}"
        wanted = set(pool.shards[0].cases)
        shape = RunFolder(self.folder / "first")
        rows = [edit(row) for row in steady(shape) if row.case_id in wanted]
        write_run(work, shape, run_id, time.time(), rows)
        artifacts = self.folder / f"artifacts-{self.number}"
        job = Job(campaign, pool, pool.shards[0])
        artifacts.mkdir()
        pack(work.run(run_id), job, artifacts / job.artifact)
        self.ci("collect", artifacts.name, "--store", "history")
        return self.gate()

    def gate(self, *words: str) -> Done:
        return self.ci("gate", "--store", "history", *words)

    def legs(self) -> list[dict[str, Any]]:
        """The jobs that the night dispatches for what it suspects."""
        assert self.ci("suspects", "--store", "history", "--github").exit_code == 0
        legs = json.loads(self.outputs["matrix"])["include"]
        assert self.outputs["confirm"] == ("true" if legs else "false")
        return legs

    def confirm(self, leg: dict[str, Any], good: str, suspect: str) -> subprocess.CompletedProcess[str]:
        """One such job, on a machine with its own history; ``good`` and ``suspect`` are scripts of builds."""
        machine = self.folder / f"machine-{self.number}"
        shutil.copytree(self.folder / "history", machine / "history")
        for name in ("campaign.json", "torchgauge.yml"):
            shutil.copy(self.folder / name, machine / name)
        for side, text in (("good", good), ("suspect", suspect)):
            (machine / "sides" / side).mkdir(parents=True)
            (machine / "sides" / side / "build.sh").write_text(text)
        words = ["--pool", leg["pool"], "--good", leg["good_run"], "--suspect", leg["suspect_run"]]
        words += ["--install", leg["install"], "--good-from", "sides/good", "--suspect-from", "sides/suspect"]
        words += ["--store", "history", "--budget", leg["budget"], "--out", f"../confirmed-{self.number}/set"]
        return subprocess.run(
            [sys.executable, "-m", "torchgauge.cli.main", "ci", "suspects", "measure", *words],
            cwd=machine,
            env={**os.environ, "PYTHONPATH": self.path},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def settle(self) -> Done:
        (self.folder / f"confirmed-{self.number}").mkdir(exist_ok=True)
        done = self.ci("settle", f"confirmed-{self.number}", "--store", "history")
        assert done.exit_code == 0
        return done


def measured(nights: Nights) -> Nights:
    """``nights`` after one that was measured here; ``NIGHTS`` replays of it are the history."""
    folder = nights.folder
    nights.plan()
    done = nights.ci("run", "--pool", "bench", "--out", "set", "--store", "real", "--threads", "1")
    assert done.exit_code == 0, done.output
    real = Store.open(folder / "real")
    (run_id,) = real.run_ids()
    shutil.copytree(real.path / "runs" / run_id, folder / "first")
    shape = RunFolder(folder / "first")
    history = Store.open(folder / "history", create=True)
    rng = random.Random(1)
    for number in range(NIGHTS):
        rows = [times(rng.gauss(1.0, 0.02))(row) for row in steady(shape)]
        assert rows
        assert all(row.counted for row in rows)
        at = time.time() - (NIGHTS - number) * DAY
        run = write_run(history, shape, f"20260501T000000Z-{number:08x}", at, rows)
        history.finish(run)
        said = {
            "campaign_id": f"past-{number}",
            "pool": "bench",
            "shard": 1,
            "attempt": 1,
            "sha": nights.good,
        }
        (history.path / "runs" / run / "provenance.json").write_text(json.dumps(said))
    nights.number = NIGHTS
    return nights


def copied(nights: Nights, folder: Path) -> Nights:
    """The same, for one test."""
    shutil.copytree(nights.folder, folder)
    return replace(nights, folder=folder, outputs={})


def steady(shape: RunFolder) -> list[Result]:
    """The rows of ``shape`` as a quiet machine had them: how busy this one was is not what is replayed.

    Whoever takes a row judges its times again, so that they, and not the word alone, have to be steady.
    """
    busy = {Modifier.UNSTEADY.value, "stolen_share", "throttled_share"}
    return [
        replace(
            _quiet(row),
            modifiers=tuple(each for each in row.modifiers if each is not Modifier.UNSTEADY),
            facts=tuple(fact for fact in row.facts if fact[0] not in busy),
        )
        for row in results(shape.journal_path)
    ]


def _quiet(row: Result) -> Result:
    """``row`` with ``BLOCKS`` step times around those of its middle block, and no other number of blocks."""
    of_blocks = {"contention", "decode_bandwidth", "latency_contended", "latency_cpu", "latency_device"}
    of_blocks.add("launch_overhead")
    rng, found = random.Random(2), []
    noise = [rng.uniform(0.99, 1.01) for _ in range(BLOCKS)]
    walls = next((each.samples for each in row.measurements if each.metric == "latency"), ())
    middle = walls.index(median_low(walls)) if walls else 0
    for each in row.measurements:
        if each.metric in CLOCKED and each.samples:
            samples = tuple(each.samples[middle] * one for one in noise)
            found.append(replace(each, samples=samples, blocks=tuple(range(BLOCKS))))
        elif each.metric not in of_blocks:
            found.append(each)
    return times(1.0)(replace(row, measurements=tuple(found)))


def write_run(store: Store, shape: RunFolder, run_id: str, at: float, rows: list[Result]) -> str:
    """A run like ``shape`` with another id, time and rows; not published."""
    plan: Plan = replace(shape.plan(), run_id=run_id, created_at=at)
    kept = {row.case.key for row in rows}
    groups = tuple(group for group in plan.groups if {each.case.key for each in group.cases} & kept)
    folder = store.begin(replace(plan, groups=groups))
    with folder.open_journal() as journal:
        found = [each for each in read(shape.journal_path) if each.kind is Kind.ENVIRONMENT]
        journal.append(Kind.ENVIRONMENT, [from_plain(Environment, each.data) for each in found])
        journal.append(Kind.RESULT, [replace(row, run_id=run_id, started_at=at + 1) for row in rows])
        journal.append(Kind.END, [End(RunState.COMPLETE, at + 2)])
    return run_id


def times(factor: float, model: str = "") -> Edit:
    """Rows whose step times are ``factor`` times as long, of ``model`` alone where one is named."""

    def edit(row: Result) -> Result:
        if model not in ("", row.case.workload.model):
            return row
        by_name = {each.metric: each for each in row.measurements if each.samples}
        for name in by_name.keys() & CLOCKED:
            by_name[name] = replace(by_name[name], samples=tuple(v * factor for v in by_name[name].samples))
        found = tuple(by_name.get(each.metric, each) for each in row.measurements)
        return replace(
            row, measurements=found, summaries=tuple(summarise(each, METRICS[each.metric]) for each in found)
        )

    return edit


def read_outputs(text: str) -> dict[str, str]:
    """Step outputs, written as NAME=VALUE or between delimiters."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, mark, end = line.partition("<<")
        if mark and "=" not in name:
            found[name] = "\n".join(iter(lambda end=end: next(lines, end), end))
        else:
            name, _, found_value = line.partition("=")
            found[name] = found_value
    return found
