"""Whether rows of TorchBench's standard models are what bare upstream code does, case by case.

Every model runs in inference and training, in each configuration, twice: by ``torchgauge run``, and by
``torchbench_bare.py``, a process without torchgauge. Both get the same checkout, batch, threads and limits,
one process at a time. Statuses agree, or the case has its line in :data:`EXPLAINED`. A disagreement without
a line ends the script with 1, and so does a line that no disagreement of the models run here needs.

- *neither ran*: both ended badly and for the same reason; both causes are printed, and it is not agreement.
- *module*: upstream compiles the whole of ``train()`` or ``eval()``, torchgauge the module. Where the former
  ends otherwise than the row, upstream's step runs once more with the module alone compiled, and that ended
  as the row did.

``--rounds 6`` also times :data:`TIMED`, a launch of each side in turns: the 95 % intervals of the median
overlap, or the row gives the reason in :data:`SLOWER`. Training compiles there what torchgauge compiles, and
both keep freed memory, which torchgauge does by default (``docs/method.md``, Threads and allocator).

Each launch is a line of ``records.jsonl`` in ``--out``: start the command again after an interruption.
Prints Markdown. It takes hours: ``torchbench_against_upstream.py --torchbench PATH --rounds 6``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from typing import Any

from child_run import ChildFailure, run_child

from torchgauge.harness.planning.plan import load_suites
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Cause, Result, Status
from torchgauge.results import journal
from torchgauge.results.store import Store
from torchgauge.suites.suite import ModelEntry

SUITE, TIERS = "torchbench", {"smoke", "standard"}
EAGER, STATUS = "eager", "status"
TESTS = {"inference": "eval", "training": "train"}
BARE = Path(__file__).with_name("torchbench_bare.py")
TIMED = (
    "lennard_jones",
    "basic_gnn_gcn",
    "pyhpc_equation_of_state",
    "phlippe_resnet",
    "dcgan",
    "soft_actor_critic",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",
    "timm_efficientnet",
    "resnet18",
    "tts_angular",
    "hf_DistilBert",
)
"""Light models of different kinds, in the order in which they are timed."""
UNTRAINED = (
    "upstream declares no training (DEFAULT_TRAIN_BSIZE is None), as torchgauge reads; "
    "its train() returns a NotImplementedError and raises none, so upstream's step does nothing"
)
COPIES = (
    "checks keep copies of weights, gradients and optimizer state, with which the worker needs more memory "
    "than the 14 GiB that it may have"
)
EXPLAINED: dict[str, str] = {
    "demucs training inductor": COPIES,
    "hf_BigBird training inductor": COPIES,
    "hf_T5_* training inductor": COPIES,
    "timm_vision_transformer_large training *": COPIES,
    "llama training *": UNTRAINED,
    "moondream training *": UNTRAINED,
    "pytorch_CycleGAN_and_pix2pix training *": "upstream downloads its images from a server of its company "
    "and raises; torchgauge writes random images of their sizes in their place, and the training runs",
    "hf_T5* inference inductor": "the model's cached keys and values have other strides in inductor than "
    "in eager, where `torch.cat` joins an empty tensor and a transposed view (torch 2.13.0)",
    "timm_resnest training inductor": "with a batch of one, a batch norm gets one value per channel; eager "
    "raises ValueError before anything is compiled, and upstream's compiled step wraps it in a "
    "TorchRuntimeError",
}
"""Why statuses differ, by ``model mode configuration``; each part may be a pattern."""
SLOWER: dict[str, str] = {
    "pyhpc_* inference *": "upstream's float64 is cast to the case's dtype",
    # upstream compiles all of eval()
    "soft_actor_critic inference inductor": "compiled configurations compile its module",
    # without dropout, attention runs another kernel; under inductor, a bare loop then takes 2.44 s
    "hf_DistilBert training *": "dropout is off",
}
"""Why medians differ, by the same, in words that each row of the case has to contain."""
UNKNOWN_SIZE = 150_000_000
"""Parameters that a model counts as having whose data names none: those of transformers."""
QUICK = ("--no-calibration", "--no-memory-probe", "--no-warm-compile", "--quiet-wait", "0")
CHOSEN = ("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_")
"""Beginnings of variables that would be no default."""
STEADY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
"""The allocator of both sides in rounds: with glibc's default, some steps fault all of their memory in."""
NO_GRAPH = "dynamo captured no graph"
"""What the reason of a degraded row contains if no compiled code ran."""
Key = tuple[str, str, str]
"""Model, mode and configuration."""


@dataclass(frozen=True)
class Ending:
    """How one side of a case ended: ``word`` is what is compared, ``problem`` its cause in one line.

    ``latency`` is median and interval in seconds of a step; ``frames`` and ``largest`` are the bare side's.
    ``notes`` are the notes and facts of torchgauge's row.
    """

    word: str
    problem: str = ""
    latency: tuple[float, float | None, float | None] | None = None
    frames: int = 0
    largest: float | None = None
    notes: str = ""


@dataclass(frozen=True)
class Settings:
    """What a folder was begun with: results of other settings are not mixed with these."""

    torchbench: str
    python: str
    configurations: tuple[str, ...]
    threads: int
    limit_s: float
    memory_gib: float


class Comparison:
    """All launches, in the folder ``out``; what has a record there is not repeated."""

    def __init__(self, settings: Settings, out: Path) -> None:
        self.settings, self.out = settings, out.resolve()
        self.records = self.out / "records.jsonl"
        self.out.mkdir(parents=True, exist_ok=True)
        begun, now = self.out / "settings.json", json.dumps(asdict(settings), indent=1)
        if begun.exists() and begun.read_text(encoding="utf-8") != now:
            raise SystemExit(f"{out} was begun with other settings. Try: remove it, or use another --out.")
        begun.write_text(now, encoding="utf-8")
        text = self.records.read_text(encoding="utf-8") if self.records.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a line that was cut off does not count
        self.records.write_text(whole, encoding="utf-8")
        self.done: dict[str, dict[str, Ending]] = {}
        for line in map(json.loads, whole.splitlines()):
            self.done[line["unit"]] = {name: Ending(**each) for name, each in line["endings"].items()}

    def forget(self, models: Iterable[str]) -> None:
        """Drop the records of ``models``, so that they run again."""
        dropped = set(models)
        self.done = {unit: endings for unit, endings in self.done.items() if unit.split()[2] not in dropped}
        self.records.write_text("".join(map(_line, self.done.items())), encoding="utf-8")

    def ours(self, entry: ModelEntry, mode: str, turn: str, seconds: float) -> dict[str, Ending]:
        """Return how each configuration of ``torchgauge run`` ended."""
        unit = f"{turn} ours {entry.name} {mode}"
        if unit not in self.done:
            self._keep(unit, self._run_torchgauge(entry, mode, turn, seconds))
        return self.done[unit]

    def bare(self, entry: ModelEntry, key: Key, turn: str, seconds: float, part: str = "step") -> Ending:
        """Return how upstream's own code ended; ``part`` is what is compiled of it."""
        _, mode, configuration = key
        unit = f"{turn} bare {entry.name} {mode} {configuration} {part}"
        if unit not in self.done:
            self._keep(unit, {configuration: self._run_upstream(entry, key, turn, seconds, part)})
        return self.done[unit][configuration]

    def _keep(self, unit: str, endings: Mapping[str, Ending]) -> None:
        self.done[unit] = dict(endings)
        with self.records.open("a", encoding="utf-8") as file:
            file.write(_line((unit, endings)))
        print(unit, *(f"{name}: {each.word}" for name, each in endings.items()), file=sys.stderr, flush=True)

    def _run_torchgauge(self, entry: ModelEntry, mode: str, turn: str, seconds: float) -> dict[str, Ending]:
        given, store = self.settings, self.out / "store"
        shutil.rmtree(store, ignore_errors=True)
        words = [given.python, "-m", "torchgauge", "run", SUITE, "--models", entry.name, "--mode", mode]
        words += [
            "--config",
            ",".join(given.configurations),
            "--device",
            "cpu",
            *QUICK,
            "--store",
            str(store),
        ]
        words += ["--torchbench", given.torchbench, "--threads", str(given.threads)]
        words += ["--measure-seconds", str(seconds), "--timeout", str(given.limit_s)]
        words += [
            "--memory-limit",
            f"{given.memory_gib:g}G",
            "--compile-cache",
            str(self.out / "ours-compiled"),
        ]
        limit_s, env = given.limit_s * (1 + len(given.configurations)), _variables(turn)
        try:
            # 3: the machine failed a case, which is a word that agrees with nothing
            ended = run_child(words, lambda _: _rows(store), good=(0, 1, 3), limit_s=limit_s, env=env)
        except ChildFailure as failure:
            return dict.fromkeys(given.configurations, _failed(failure))
        rows = {row.case.configuration.name: _of_row(row) for row in ended.results}
        return {name: rows.get(name, Ending("no row")) for name in given.configurations}

    def _run_upstream(self, entry: ModelEntry, key: Key, turn: str, seconds: float, part: str) -> Ending:
        given, (_, mode, configuration) = self.settings, key
        words = [given.python, str(BARE), given.torchbench, entry.name, TESTS[mode], str(entry.batch[mode])]
        words += ["--seconds", str(seconds), "--threads", str(given.threads), "--part", part]
        words += ["--compiler", "" if configuration == EAGER else configuration]
        words += ["--memory-gib", f"{given.memory_gib:g}"]
        own = {"TORCHINDUCTOR_CACHE_DIR": str(self.out / "bare-compiled"), "PYTHONDONTWRITEBYTECODE": "1"}
        options = {"given": json.dumps(entry.recipe), "limit_s": given.limit_s, "env": _variables(turn) | own}
        try:
            return _of_bare(run_child(words, json.loads, **options).results)
        except ChildFailure as failure:
            return _failed(failure)


# --- how a side ended ----------------------------------------------------------------------------


def _line(record: tuple[str, Mapping[str, Ending]]) -> str:
    unit, endings = record
    return (
        json.dumps({"unit": unit, "endings": {name: asdict(each) for name, each in endings.items()}}) + "\n"
    )


def _variables(turn: str) -> dict[str, str]:
    """Return the environment without what would choose threads, spinning or memory; rounds choose memory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(CHOSEN)}
    return kept if turn == STATUS else kept | STEADY


def _rows(store: Path) -> tuple[Result, ...]:
    """Return the rows of the only run of ``store``; raise ``ValueError`` where it has none."""
    opened = Store.open(store)
    (run_id,) = opened.run_ids()
    return tuple(journal.results(opened.run(run_id).journal_path))


def _failed(failure: ChildFailure) -> Ending:
    """Return the ending of a process without results, which is never a time."""
    late = failure.problem.startswith("did not end within")
    return Ending("late" if late else "killed", failure.problem[:400])


def _of_row(row: Result) -> Ending:
    """Return the ending that the row names."""
    words = {
        Status.PASS: "ran",
        Status.SKIPPED: "skipped",
        Status.TIMEOUT: "late",
        Status.CRASH: "killed",
        Status.OOM: "memory",
        Status.UNSUPPORTED: "nothing" if "does nothing" in row.reason else "raised NotImplementedError",
        Status.ERROR: f"raised {row.failure.type}" if row.failure else "error",
    }
    word = words.get(row.status, f"{row.status.value}: {row.cause.value if row.cause else ''}")
    if row.cause is Cause.NONFINITE:
        word = "nonfinite"
    if row.reason.startswith("the configuration did not run") or NO_GRAPH in row.degraded:
        word = "uncompiled"
    said = [each for each in row.summaries if each.metric == "latency" and each.median is not None]
    latency = (said[0].median, said[0].low, said[0].high) if said else None
    problem = "" if row.status is Status.PASS else f"{row.status.value}: {' '.join(row.reason.split())[:400]}"
    realised = row.realised.notes if row.realised else ()
    notes = "; ".join(map(str, (*realised, *dict(row.facts).values())))
    return Ending(word, problem or row.degraded[:400], latency, notes=notes)


def _of_bare(told: Mapping[str, Any]) -> Ending:
    """Return the ending that the bare process prints."""
    status = {"ok": "ran", "raised": f"raised {told.get('type')}"}.get(told["status"], told["status"])
    problem = f"{told['type']}: {told['problem']}" if "type" in told else ""
    if "seconds" not in told:
        return Ending(status, problem)
    return Ending(status, problem, _interval(told["seconds"]), told["frames"], told["largest"])


def _interval(samples: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Return the median with its 95 % interval by order statistics; the widest where there are too few."""
    ranked = sorted(samples)
    rank = max(1, interval_rank(len(ranked), 0.95))
    return median(ranked), ranked[rank - 1], ranked[-rank]


# --- judging -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """One case: its verdict and one line of text."""

    key: Key
    verdict: str
    text: str


def statuses(comparison: Comparison, entries: Sequence[ModelEntry], modes: Sequence[str]) -> Iterator[Judged]:
    """Run every case on both sides and yield what the statuses say."""
    for entry in entries:
        for mode in (mode for mode in modes if mode in entry.batch):
            ours = comparison.ours(entry, mode, STATUS, 0.1)
            for name in comparison.settings.configurations:
                key = (entry.name, mode, name)
                bare = comparison.bare(entry, key, STATUS, 0.1)
                verdict = _verdict(bare, ours[name])
                text = f"upstream {_told(bare)}; torchgauge {_told(ours[name])}"
                if verdict == "disagree" and name != EAGER:
                    module = comparison.bare(entry, key, STATUS, 0.1, part="module")
                    verdict = "module" if module.word == ours[name].word else verdict
                    text += f"; upstream with the module compiled {_told(module)}"
                yield _explained(Judged(key, verdict, text), EXPLAINED)


def _verdict(bare: Ending, ours: Ending) -> str:
    if bare.word != ours.word:
        return "disagree"
    return "agree" if bare.word in {"ran", "nothing"} else "neither ran"


def _told(ending: Ending) -> str:
    return f"{ending.word} ({ending.problem})" if ending.problem else ending.word


def medians(
    comparison: Comparison, entries: Sequence[ModelEntry], given: argparse.Namespace
) -> Iterator[Judged]:
    """Time every case on both sides in turns and yield what the medians say."""
    for entry in entries:
        for mode in (mode for mode in given.modes if mode in entry.batch):
            names = comparison.settings.configurations
            pairs: dict[str, list[tuple[Ending, Ending]]] = {name: [] for name in names}
            for number in range(given.rounds):
                turn = f"round-{number}"
                ours = comparison.ours(entry, mode, turn, given.seconds)
                for name in names:
                    key = (entry.name, mode, name)
                    whole = mode == "inference" or entry.recipe.get("compiled") == "step"
                    part = "step" if whole else "module"
                    bare = comparison.bare(entry, key, turn, given.seconds, part)
                    pairs[name].append((bare, ours[name]))
            for name, launches in pairs.items():
                rows = [row for _, row in launches]
                reasons = {
                    at: words for at, words in SLOWER.items() if all(words in row.notes for row in rows)
                }
                yield _explained(_beside((entry.name, mode, name), launches), reasons)


def _beside(key: Key, launches: Sequence[tuple[Ending, Ending]]) -> Judged:
    """Return whether the intervals of both medians overlap; a launch that fell over is no time."""
    lost = [each for pair in launches for each in pair if each.word != "ran" or each.latency is None]
    if lost:
        alike = len(lost) == 2 * len(launches) and len({each.word for each in lost}) == 1
        text = f"{len(lost)} launches have no time, the first: {_told(lost[0])}"
        return Judged(key, "neither ran" if alike else "disagree", text)
    bare, ours = ([each.latency[0] for each in side if each.latency] for side in zip(*launches, strict=True))
    theirs, own = _interval(bare), _interval(ours)
    apart = own[1] > theirs[2] or theirs[1] > own[2]
    cells = [f"{1e3 * each[0]:.4g} ({1e3 * each[1]:.4g} to {1e3 * each[2]:.4g})" for each in (theirs, own)]
    ratio = median(mine / other for other, mine in zip(bare, ours, strict=True))
    return Judged(key, "disagree" if apart else "agree", f"{cells[0]} | {cells[1]} | {ratio:.3f}")


def _explained(judged: Judged, reasons: Mapping[str, str]) -> Judged:
    """Return ``judged`` with its reason, where it disagrees and one is given."""
    reason = next((reasons[pattern] for pattern in reasons if _about(pattern, judged.key)), "")
    if judged.verdict != "disagree" or not reason:
        return judged
    return Judged(judged.key, "explained", f"{judged.text} | {reason}")


def _about(pattern: str, key: Key) -> bool:
    return all(map(fnmatch, key, pattern.split()))


def unneeded(judged: Sequence[Judged], reasons: Mapping[str, str]) -> list[str]:
    """Return the lines of ``reasons`` that cases here were judged for and that none of them needs."""
    return [
        pattern
        for pattern in reasons
        if (about := [each for each in judged if _about(pattern, each.key)])
        and all(each.verdict != "explained" for each in about)
    ]


# --- the command line ----------------------------------------------------------------------------


def main() -> int:
    """Run what has no record, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torchbench", type=Path, required=True, help="checkout of pytorch/benchmark")
    parser.add_argument("--out", type=Path, default=Path("torchbench-against-upstream"))
    parser.add_argument(
        "--models", default="", help="names, separated by commas (default: all standard ones)"
    )
    parser.add_argument("--limit", type=int, default=0, help="only so many, the smallest first")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(TESTS))
    parser.add_argument("--config", default="eager,inductor")
    parser.add_argument("--rounds", type=int, default=0, help="of times of the twelve models")
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps in a launch of a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--limit-s", type=float, default=600.0, help="for a launch of upstream, or a phase of ours"
    )
    parser.add_argument("--memory-gib", type=float, default=14.0, help="for a process")
    parser.add_argument("--python", default=sys.executable, help="interpreter with the models' packages")
    parser.add_argument("--again", action="store_true", help="forget the records of the models first")
    given = parser.parse_args()
    known = {entry.name: entry for entry in load_suites([SUITE])[SUITE].models() if TIERS & {*entry.tiers}}
    light = sorted(known.values(), key=lambda entry: entry.parameters or UNKNOWN_SIZE)
    chosen = [known[name] for name in given.models.split(",")] if given.models else light
    entries = chosen[: given.limit or None]
    names = [entry.name for entry in entries]
    checkout = given.torchbench.resolve()
    settings = Settings(
        str(checkout),
        given.python,
        tuple(given.config.split(",")),
        given.threads,
        given.limit_s,
        given.memory_gib,
    )
    comparison = Comparison(settings, given.out)
    if given.again:
        comparison.forget(names)
    judged = list(statuses(comparison, entries, given.modes))
    timed = [known[name] for name in TIMED if name in names] if given.rounds else []
    beside = list(medians(comparison, timed, given))
    stale = [*unneeded(judged, EXPLAINED), *unneeded(beside, SLOWER)]
    _print_tables(judged, beside, checkout)
    for pattern in stale:
        print(f"\nno longer needed: {pattern}")
    return int(bool(stale) or any(each.verdict == "disagree" for each in [*judged, *beside]))


def _print_tables(judged: Sequence[Judged], beside: Sequence[Judged], checkout: Path) -> None:
    commit = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    where = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    print(f"{where}; TorchBench {commit.stdout[:12]}; python {command}\n")
    print(f"{len({each.key[0] for each in judged})} models, {len(judged)} cases:", _counts(judged))
    print("\n| case | verdict | endings |\n|---|---|---|")
    for each in judged:
        print(f"| {' '.join(each.key)} | {each.verdict} | {each.text} |")
    if beside:
        print(f"\n{len(beside)} medians of {len({each.key[0] for each in beside})} models:", _counts(beside))
        print("\n| case | verdict | upstream, ms | torchgauge, ms | ratio |\n|---|---|---|---|---|")
        for each in beside:
            print(f"| {' '.join(each.key)} | {each.verdict} | {each.text} |")


def _counts(judged: Sequence[Judged]) -> str:
    return ", ".join(
        f"{count} {verdict}" for verdict, count in Counter(each.verdict for each in judged).items()
    )


if __name__ == "__main__":
    sys.exit(main())
