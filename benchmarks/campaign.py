"""A whole campaign against PyTorch's own benchmark runner: wall time and precision, on one machine.

Both sides take the same models through accuracy, eager, inductor and compile time: float32 inference on the
CPU or on ``--device``, equal batches and images, OMP_NUM_THREADS threads, kernels compiled one after another.
Each side has a compile cache and a temporary folder of its own that are empty at the start; a side's
processes share them, as a user's would. The peer takes two processes for a model (accuracy, then
performance), torchgauge one campaign:

* ``default`` is ``torchgauge run`` as it is, with warm compilation, peak memory and calibration on top;
* ``restricted`` leaves out warm compilation and peak memory, which the peer does not measure on their own;
* ``first-night`` is ``restricted`` as nights run: several models are prepared at once and one is timed at a
  time, kernels are compiled into a cache that is kept (empty at first), a share of the models compiles cold;
* ``second-night`` is the same again with what the first night kept; ``peer-again`` is that of the peer.

The sides take turns in chunks of models, in an order that is reversed from chunk to chunk, so that a machine
that slows down slows both. A campaign in chunks pays its start-up for every chunk. What has its record in the
work folder is not repeated: start the command again after an interruption. Prints Markdown: wall time, and
CPU time of all processes beside it, which depends less on what else the machine does.

Needs a checkout of pytorch/benchmark and an interpreter that has what the peer imports (psutil, tqdm).
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import campaign_peer
from campaign_phases import END, Tap, breakdown
from campaign_schedule import NIGHTS, VARIANTS, Settings, Unit, batches, schedule, settings_of
from campaign_table import PEER, PEER_AGAIN, ModelRecord, render
from child_run import ChildFailure, run_child

import torchgauge
from torchgauge.results.query import query
from torchgauge.results.store import Store


class CampaignBenchmark:
    """The campaign in its work folder; :meth:`run` does what has no record yet."""

    def __init__(self, settings: Settings, work: Path) -> None:
        self.settings, self.work = settings, work.resolve()
        self.records = self.work / "records.jsonl"
        self.runner = self.work / "peer-runner"
        self.work.mkdir(parents=True, exist_ok=True)

    def check(self) -> None:
        """Raise ``SystemExit`` where this cannot become a comparison."""
        begun = self.work / "settings.json"
        now = json.dumps(asdict(self.settings), indent=1)
        if begun.exists() and begun.read_text(encoding="utf-8") != now:
            raise SystemExit(f"{self.work} was begun with other settings: remove it, or use another --work")
        missing = campaign_peer.missing_packages(self.settings.peer_python, self.environment(PEER))
        if missing:
            raise SystemExit(
                f"{self.settings.peer_python} lacks {', '.join(missing)}, which the peer imports; "
                "install them there, or name another interpreter with --peer-python"
            )
        try:
            campaign_peer.prepare(Path(self.settings.torchbench), self.runner)
        except FileNotFoundError as error:
            raise SystemExit(f"{error}; --torchbench takes the path of one") from None
        begun.write_text(now, encoding="utf-8")

    def run(self) -> list[ModelRecord]:
        """Do what is left of the schedule; all records, in order."""
        done = self.done()
        units = schedule(self.settings)
        for number, unit in enumerate(units, 1):
            if unit.key in done:
                continue
            load = os.getloadavg()[0]
            say(f"[{number}/{len(units)}] {unit.key}, load {load:.1f}")
            self.forget_unfinished(unit.side)
            marker = self.side(unit.side) / "unfinished"
            marker.touch()
            before = cpu_seconds()
            found = self.peer(unit) if unit.side in (PEER, PEER_AGAIN) else self.ours(unit)
            found = share_cpu(found, cpu_seconds() - before)
            line = json.dumps(
                {"unit": unit.key, "load_1min": load, "records": [asdict(record) for record in found]}
            )
            with self.records.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            marker.unlink()
            done[unit.key] = found
            for record in found:
                say(f"  {record.model}: {record.problem or f'{record.seconds:.1f} s'}")
        return [record for unit in units for record in done[unit.key]]

    def done(self) -> dict[str, list[ModelRecord]]:
        """Unit to records, from the file."""
        return {
            entry["unit"]: [ModelRecord(**record) for record in entry["records"]] for entry in self.entries()
        }

    def loads(self) -> list[float]:
        """The machine's load average before each unit."""
        return [entry["load_1min"] for entry in self.entries()]

    def entries(self) -> list[dict[str, Any]]:
        """The lines of the records' file; one that was cut off does not count."""
        text = self.records.read_text(encoding="utf-8") if self.records.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.records.write_text(whole, encoding="utf-8")
        return [json.loads(line) for line in whole.splitlines()]

    # --- a side's own folder -----------------------------------------------------------------

    def side(self, name: str) -> Path:
        """The folder of one side: its caches, its temporary files; later nights have those of the first."""
        owner = {PEER_AGAIN: PEER, **dict.fromkeys(NIGHTS, "nights")}.get(name, name)
        folder = self.work / owner / "caches"
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        return folder

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a side's processes."""
        folder, package = self.side(name), Path(torchgauge.__file__).resolve().parent.parent
        return {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TORCHGAUGE_COMPILE_CACHE": str(folder / "kept"),
            "TMPDIR": str(folder / "tmp"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": str(self.settings.threads),
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH", "")])),
        }

    def forget_unfinished(self, name: str) -> None:
        """Remove what an interrupted unit left in its side's caches: a repetition must not find it."""
        folder = self.side(name)
        marker = folder / "unfinished"
        if not marker.exists():
            return
        since = marker.stat().st_mtime
        for path in folder.rglob("*"):
            if path.is_file() and path.stat().st_mtime >= since:
                path.unlink()

    # --- the two sides -----------------------------------------------------------------------

    def peer(self, unit: Unit) -> list[ModelRecord]:
        """One model on a side of the peer: its accuracy run, then its performance run."""
        (model,) = unit.models
        peer = campaign_peer.Peer(
            self.settings.peer_python, self.runner, self.environment(PEER), self.settings.device
        )
        runs: list[Any] = []
        for run in (peer.accuracy, peer.performance):
            try:
                runs.append(run(model, batches()[model]))
            except ChildFailure as failure:
                problem = f"{run.__name__} {failure.problem}, see {peer.output}"
                return [ModelRecord(unit.side, model, None, problem=problem)]
        (first_s, compile_s), (second_s, samples) = runs
        parts = {"accuracy run": first_s, "performance run": second_s}
        return [ModelRecord(unit.side, model, first_s + second_s, samples, parts=parts, compile_s=compile_s)]

    def ours(self, unit: Unit) -> list[ModelRecord]:
        """One campaign of torchgauge over a chunk of models."""
        number = schedule(self.settings).index(unit)
        store, kept = (self.work / unit.side / f"{what}-{number}" for what in ("store", "events"))
        for folder in (store, kept):
            shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "torchgauge.cli.main", "run", "timm", "--models"]
        command += [",".join(f"timm/{model}" for model in unit.models)]
        command += ["--device", self.settings.device]
        command += ["--mode", "inference", "--config", "eager,inductor", "--dtype", "float32"]
        command += ["--store", str(store), "--json", *VARIANTS[unit.side]]
        log = self.work / unit.side / f"run-{number}.log"
        with Tap(store, kept), log.open("wb") as output:
            began = time.time()
            ended = run_child(
                command,
                lambda text: read_store(store, json.loads(text)["run_id"]),
                good=(0, 1, 3),  # a case that ended badly is a row, and its model has a problem
                log=output,
                env=self.environment(unit.side),
            )
        parts = {} if unit.side in NIGHTS else breakdown(kept, began, began + ended.seconds)
        return records_of(unit, ended.seconds, parts, ended.results)


def read_store(path: Path, run_id: str) -> dict[str, dict[str, Any]]:
    """Model to its samples, cold compile time and problem, from the published tables of a run."""
    store = Store.open(path)
    results = query(store, [], "results", run_id)
    samples = query(store, ["metric=latency", "metric=compile_cold"], "samples", run_id)
    found: dict[str, dict[str, Any]] = {}
    for row in results.to_dict("records"):
        model = found.setdefault(row["model"], {"samples": {}, "compile_s": None, "problem": ""})
        if row["status"] != "pass":
            model["problem"] += f"{row['configuration']} is {row['status']}: {row['reason']}. "
            continue
        own = samples[samples["case_key"] == row["case_key"]].sort_values("index")
        model["samples"][row["configuration"]] = own[own["metric"] == "latency"]["value"].tolist()
        cold = own[own["metric"] == "compile_cold"]["value"].tolist()
        model["compile_s"] = cold[0] if cold else model["compile_s"]
    return found


def records_of(
    unit: Unit, seconds: float, parts: Mapping[str, Mapping[str, float]], found: Mapping[str, Any]
) -> list[ModelRecord]:
    """The records of a chunk's models; what they share is charged to each in equal parts.

    Without ``parts``, because models were worked on at once, the whole time is shared out in equal parts.
    """
    count = len(unit.models)
    lacking = {"samples": {}, "compile_s": None, "problem": "no row"}
    if not parts:
        return [
            ModelRecord(unit.side, model, seconds / count, **(found.get(model) or lacking))
            for model in unit.models
        ]
    shared = {part: length / count for part, length in parts.get("", {}).items()}
    named = sum(sum(parts.get(model, {}).values()) for model in unit.models)
    rest = (seconds - named) / count
    shared[END] = shared.get(END, 0.0) + rest - sum(shared.values())  # the parts add up to the wall time
    records = []
    for model in unit.models:
        own = {**shared, **parts.get(model, {})}
        facts = found.get(model) or lacking
        records.append(ModelRecord(unit.side, model, sum(own.values()), parts=own, **facts))
    return records


def share_cpu(records: Sequence[ModelRecord], cpu_s: float) -> list[ModelRecord]:
    """``records`` of one unit with the CPU time of its processes, shared out as their wall time is."""
    total = sum(record.seconds or 0.0 for record in records)
    return [
        record if record.seconds is None else replace(record, cpu_s=cpu_s * record.seconds / total)
        for record in records
    ]


def cpu_seconds() -> float:
    """CPU time of all processes that have ended below this one, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def say(text: str) -> None:
    """Progress, beside the table on standard output."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure what is left, and print the tables; 1 where a model has no result on a side."""
    settings, work = settings_of(sys.argv[1:])
    benchmark = CampaignBenchmark(settings, work)
    benchmark.check()
    records = benchmark.run()
    loads = benchmark.loads()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {settings.threads} threads, "
        f"Python {platform.python_version()}, chunks of {settings.chunk}, "
        f"load {min(loads):.1f} to {max(loads):.1f} before each part\n"
    )
    print(render(records))
    return int(any(record.problem for record in records))


if __name__ == "__main__":
    sys.exit(main())
