"""How often ``torchgauge ops blockers`` predicts right, where operators are taken from a device by a seed.

Each round draws operators, starts a device without them, and runs three verbs of the command there: ``ops``
(all operators, forward and backward), ``census --static`` and ``run`` (models, eager, inference and
training). Models are then predicted from the operator matrix and the census alone: neither the list of what
was taken nor any row of a model is read. A model did not run where its row says so.

Drawn are base names that models of the census use, by how many of the chosen workloads use them (few: up to
a fifth, some: up to a half, most: the rest), and names that no model uses. Left out are operators that
PyTorch composes for every device, since no device can lack them, and those without which the device cannot
be opened, since then nothing runs and nothing can be judged: the latter are printed.

    python benchmarks/blockers_prediction.py --device npusim --seed 2026 --rounds 4 --work /tmp/prediction
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from child_run import run_child

from torchgauge.harness.census.static import static_census
from torchgauge.results.blockers.evidence import Evidence, evidence_of
from torchgauge.results.blockers.prediction import Accuracy, Forecast, accuracy_of, did_run, predict
from torchgauge.results.blockers.ranking import Question, blockers
from torchgauge.results.blockers.text import accuracy_sentence
from torchgauge.results.blockers.verdicts import judge_of
from torchgauge.results.store import Store
from torchgauge.suites.census.data import CensusData, load
from torchgauge.suites.census.record import EAGER, ModelCensus, base_name
from torchgauge.suites.ops.census_static import COMPOSITE

VARIABLE = "TORCHGAUGE_NPUSIM_MISSING_OPS"
DTYPE = "float32"
MODES = ("inference", "training")
MODELS = {
    "toy": ("mlp", "convnet", "transformer", "embedding", "rnn"),
    "timm": (
        "deit_tiny_patch16_224.fb_in1k",
        "ghostnet_100",
        "lcnet_050",
        "levit_128",
        "mobilenetv3_large_100",
        "mobilevit_s",
        "regnety_002",
        "resnet18",
        "tinynet_a",
    ),
    "huggingface": (
        "AlbertForMaskedLM",
        "BertForMaskedLM",
        "DistillGPT2",
        "ElectraForCausalLM",
        "SwinForImageClassification",
        "T5Small",
        "openai/whisper-tiny",
    ),
}
OPENING = frozenset(
    f"aten::{name}"
    for name in (
        "empty",
        "empty_strided",
        "ones",
        "fill_",
        "add",
        "_to_copy",
        "copy_",
        "_copy_from",
        "_copy_from_and_resize",
    )
)
"""What opening the device needs, which is to add ones: without one of them every row is ``infra``."""
QUICK = (
    "--no-memory-probe --no-calibration --no-accuracy --no-warm-compile --measure-seconds 0.01 --precision 1"
)


@dataclass(frozen=True)
class Round:
    """What was taken, how many models ran, and every wrong forecast with its cause."""

    taken: tuple[str, ...]
    found_missing: tuple[str, ...]
    seconds_ops: float
    seconds_models: float
    matrix_only: Accuracy
    as_the_command: Accuracy
    silent: tuple[str, ...]
    misses: tuple[dict[str, str], ...]


def usage(census: CensusData) -> Counter[str]:
    """Number of the chosen workloads that use each base name."""
    found: Counter[str] = Counter()
    for each in chosen(census):
        found.update({base_name(name) for name, _ in each.operators | each.received})
    return found


def chosen(census: CensusData) -> list[ModelCensus]:
    """The eager censuses of the chosen models."""
    return [
        each
        for each in census.models
        if each.path == EAGER
        and each.dtype == DTYPE
        and each.mode in MODES
        and each.model in MODELS.get(each.suite, ())
        and each.operators
    ]


def strata(census: CensusData, kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """Candidates by how many workloads use them; ``kinds`` are those of the whole device's dispatcher."""
    composed = {base_name(name) for name, kind in kinds.items() if kind == COMPOSITE}
    native = {base_name(name) for name, kind in kinds.items() if kind != COMPOSITE}
    used, workloads = usage(census), len(chosen(census))
    everywhere = {base_name(name) for each in census.models for name, _ in each.operators | each.received}
    found: dict[str, list[str]] = {"few": [], "some": [], "most": [], "nobody": []}
    for name in sorted(native - OPENING):
        if not name.startswith("aten::"):
            continue
        share = used[name] / workloads
        if name in used:
            found["few" if share <= 0.2 else "some" if share <= 0.5 else "most"].append(name)
        elif name not in everywhere and name not in composed:
            found["nobody"].append(name)
    return found


def draw(candidates: Mapping[str, Sequence[str]], dice: random.Random, number: int) -> tuple[str, ...]:
    """Four of few, one of some, four of nobody; every fourth round one of most, every fourth none of some."""
    taken = dice.sample(candidates["few"], 4) + dice.sample(candidates["nobody"], 4)
    if number % 4 != 1:
        taken += dice.sample(candidates["some"], 1)
    if number % 4 == 3:
        taken += dice.sample(candidates["most"], 1)
    return tuple(sorted(taken))


def torchgauge(store: Path, taken: Sequence[str], *words: str) -> float:
    """Run one verb on the device without the operators that were taken; its wall time in seconds."""
    command = [sys.executable, "-m", "torchgauge.cli.main", *words, "--store", str(store)]
    variables = {**os.environ, VARIABLE: ",".join(taken), "OMP_NUM_THREADS": "1"}
    return run_child(command, str, good=(0, 1, 3), env=variables).seconds  # failures are the question


def measure(device: str, store: Path, taken: Sequence[str]) -> tuple[float, float]:
    """Fill ``store`` with the matrix and the models; seconds of either."""
    torchgauge(store, taken, "ops", "census", "--static", "--device", device)
    words = ("ops", "judge", "--device", device, "--tier", "full", "--dtype", DTYPE, "--threads", "1")
    ops = torchgauge(store, taken, *words, "--variant", "forward,backward")
    names = ",".join(f"{suite}/{model}" for suite, models in MODELS.items() for model in models)
    words = ("run", *MODELS, "--models", names, "--device", device, "--mode", ",".join(MODES))
    models = torchgauge(store, taken, *words, "--config", "eager", "--threads", "1", *QUICK.split())
    return ops, models


def judged(
    evidence: Evidence, census: CensusData, taken: Sequence[str], seconds: tuple[float, float]
) -> Round:
    """Forecasts from the matrix and the census alone, against the rows of the models."""
    without_models = replace(evidence, models=())
    judge = judge_of(without_models, census.opinfo)
    pairs, silent, misses = [], [], []
    blamed = set()
    for row in evidence.models:
        name, ran = f"{row.suite}/{row.model}:{row.mode}", did_run(row.status)
        if ran is None:
            silent.append(f"{name}: {row.status.value}: {row.reason}")
            continue
        of_model = census.of(row.suite, row.model, row.mode, row.path)
        found = predict(judge, of_model, row.dtype)
        blamed |= found.blockers
        pairs.append((found.forecast, ran))
        if (found.forecast is Forecast.BLOCKED) == ran or found.forecast is Forecast.UNKNOWN:
            misses.append(
                {
                    "model": name,
                    "forecast": found.forecast.value,
                    "because": found.reason[:400],
                    "status": row.status.value,
                    "named": row.missing,
                    "reason": row.reason[:200],
                    "cause": cause(found.blockers, row.missing, taken, of_model),
                }
            )
    whole = blockers(Question(evidence, census, EAGER, tuple(MODELS)), DTYPE)
    return Round(
        tuple(taken),
        tuple(sorted(blamed & set(taken))),
        round(seconds[0], 1),
        round(seconds[1], 1),
        accuracy_of(pairs),
        whole.accuracy,
        tuple(silent),
        tuple(misses),
    )


def cause(blamed: frozenset[str], named: str, taken: Sequence[str], census: ModelCensus | None) -> str:
    """Why a forecast was wrong, as far as what was taken tells: read only after the forecast was made."""
    needs = {base_name(name) for name, _ in census.operators | census.received} if census else set()
    known = sorted(needs & set(taken))
    if blamed and not known:
        return f"blamed {', '.join(sorted(blamed))}, which the model does without"
    if named in taken and named not in needs:
        return f"{named} was taken and the census of the model lacks it"
    if known:
        return f"{', '.join(known)} was taken and is in the census; the matrix does not show it"
    return "no operator that was taken is in the census of the model"


def total(rounds: Sequence[Accuracy]) -> Accuracy:
    """The sum of tallies."""
    return Accuracy(
        *(sum(values) for values in zip(*(asdict(each).values() for each in rounds), strict=True))
    )


def main() -> int:
    """Print all rounds as JSON and the figures; exit 1 where precision or recall is below 0.95."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", required=True)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--work", type=Path, required=True, help="folder for one store per round")
    parser.add_argument("--census", type=Path, help="instead of the census that ships")
    parser.add_argument("--again", action="store_true", help="judge the stores that are there already")
    options = parser.parse_args()
    census = load(options.census)
    kinds = static_census(sys.executable, options.device).operators
    candidates = strata(census, kinds)
    print(json.dumps({name: len(found) for name, found in candidates.items()}), file=sys.stderr)
    dice, rounds = random.Random(options.seed), []
    for number in range(options.rounds):
        store = options.work / f"seed-{options.seed}-round-{number}"
        note = store.with_suffix(".json")
        if options.again:
            if not note.exists():
                break
            taken, seconds = map(tuple, json.loads(note.read_text("utf-8")))
        else:
            taken = draw(candidates, dice, number)
            seconds = measure(options.device, store, taken)
            note.write_text(json.dumps([taken, seconds]), "utf-8")
        rounds.append(judged(evidence_of(Store.open(store), options.device), census, taken, seconds))
        print(f"round {number}: {accuracy_sentence(rounds[-1].matrix_only)}", file=sys.stderr, flush=True)
    return report(options, candidates, rounds)


def report(options: Any, candidates: Mapping[str, Sequence[str]], rounds: Sequence[Round]) -> int:
    """Print everything; 1 where a number that was asked for is not reached."""
    matrix_only = total([each.matrix_only for each in rounds])
    as_the_command = total([each.as_the_command for each in rounds])
    data = {
        "device": options.device,
        "seed": options.seed,
        "candidates": {name: len(found) for name, found in candidates.items()},
        "left out": sorted(OPENING),
        "rounds": [asdict(each) for each in rounds],
        "matrix_only": asdict(matrix_only),
        "as_the_command": asdict(as_the_command),
    }
    print(json.dumps(data, indent=1))
    print(f"from matrix and census alone: {accuracy_sentence(matrix_only)}", file=sys.stderr)
    print(f"with rows of other models:    {accuracy_sentence(as_the_command)}", file=sys.stderr)
    enough = all((share.value or 0.0) >= 0.95 for share in (matrix_only.precision, matrix_only.recall))
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
