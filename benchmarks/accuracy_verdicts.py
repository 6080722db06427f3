"""Do our verdicts on accuracy match those of PyTorch's own runner? Both rules on the very same tensors.

Every model of the standard tier runs eagerly twice, in float64, and through dynamo backends. Both rules judge
each backend's result, and a great many wrong results planted in eager's. Each difference is put into a class
by a counterfactual: would our rule agree with the peer's number instead of ours? What no class explains is
counted as ``unexplained``. Each model has a process of its own; a file of finished models is gone on with.

    python benchmarks/accuracy_verdicts.py run --out verdicts.jsonl --suite timm --suite huggingface \
        --dtype float32,amp_bfloat16 --backend aot_eager
    python benchmarks/accuracy_verdicts.py table verdicts.jsonl
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from torchgauge.registry import load, resolve

MODES = ("inference", "training")
LARGEST = 1 << 16
"""Elements that get plants: the first of a larger tensor, flattened."""
TARGETS = 3
WITHOUT = " (no float64)"
"""What the name of a plant ends with where both rules had to do without float64."""


def main() -> None:
    """Run the models, or print the table of what was run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    each = verbs.add_parser("run")
    each.add_argument("--suite", action="append", required=True)
    each.add_argument("--model", action="append", default=[])
    each.add_argument("--tier", default="standard")
    each.add_argument("--dtype", default="float32,amp_bfloat16")
    each.add_argument("--backend", default="aot_eager")
    each.add_argument("--mode", default=",".join(MODES))
    each.add_argument("--targets", type=int, default=TARGETS, help="tensors per case that get plants")
    each.add_argument("--timeout", type=float, default=540.0, help="seconds for one model")
    each.add_argument("--out", type=Path, required=True)
    verbs.add_parser("table").add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    {"run": run, "table": table}[options.verb](options)


# --- running -------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> None:
    """Judge every model."""
    run_models(options, _model)


def run_models(options: argparse.Namespace, work: Callable[..., None]) -> None:
    """Do ``work(suite, entry, options)`` for each model in a process of its own.

    Its lines are appended to the file, with a last one that says how it ended.
    """
    import torch

    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    define_missing_schemas()
    done = {(line["suite"], line["model"]) for line in _lines([options.out]) if line["kind"] == "end"}
    for name in options.suite:
        suite = load("torchgauge.suites", name)
        os.environ.update(suite.environment)
        for module in suite.preload:
            import_module(module)
        for entry in suite.models():
            chosen = entry.name in options.model if options.model else options.tier in entry.tiers
            if chosen and entry.framework == "torch" and (name, entry.name) not in done:
                _run_one(options, suite, entry, work)


def _run_one(options: argparse.Namespace, suite: Any, entry: Any, work: Callable[..., None]) -> None:
    """Do ``work`` for one model in a fork of this process, which has imported libraries and run nothing."""
    where = {"suite": suite.name, "model": entry.name}
    start = time.monotonic()
    process = multiprocessing.get_context("fork").Process(target=work, args=(suite, entry, options))
    process.start()
    process.join(options.timeout)
    late = process.is_alive()
    if late:
        process.kill()
        process.join()
    state = (
        f"over {options.timeout:g} s" if late else f"exit {process.exitcode}" if process.exitcode else "done"
    )
    with options.out.open("a", encoding="utf-8") as file:
        _say(file, "end", where, state=state, s=round(time.monotonic() - start, 1))
    print(f"{suite.name}/{entry.name}: {time.monotonic() - start:.0f} s, {state}", flush=True)


def _model(suite: Any, entry: Any, options: argparse.Namespace) -> None:
    """All modes and dtypes of one model, a line at a time."""
    with options.out.open("a", encoding="utf-8", buffering=1) as file:
        for mode in options.mode.split(","):
            if mode in entry.batch:
                model = ModelRun(suite, entry, mode, options, file)
                for dtype in options.dtype.split(","):
                    model.judge(dtype)


class ModelRun:
    """One model in one mode: its float64 reference serves every dtype."""

    def __init__(self, suite: Any, entry: Any, mode: str, options: argparse.Namespace, file: IO[str]) -> None:
        self.suite, self.entry, self.mode, self.options, self.file = suite, entry, mode, options, file
        self.reference: Any = None

    def judge(self, dtype: str) -> None:
        """Run the model in ``dtype``, and judge every result of it."""
        where = {"suite": self.suite.name, "model": self.entry.name, "mode": self.mode, "dtype": dtype}
        try:
            self._judge(dtype, where)
        except Exception as error:  # noqa: BLE001  a model that does not run here is a line of the table
            _say(self.file, "skip", where, reason=f"{type(error).__name__}: {error}"[:200])

    def _judge(self, dtype: str, where: dict[str, str]) -> None:
        import torch
        from accuracy_peer import peer_rule, peer_scope, peer_verdict

        from torchgauge.harness.scenarios.scenario import implementation_for
        from torchgauge.harness.worker.accuracy import compare, nonfinite
        from torchgauge.harness.worker.observer import Observer
        from torchgauge.harness.worker.reference import SeedWatch, float64_reference
        from torchgauge.harness.worker.subjects import make_subject
        from torchgauge.records import Workload
        from torchgauge.suites.tolerances import tolerance_for

        entry, mode, name = self.entry, self.mode, self.suite.name
        workload = Workload(name, entry.name, mode, dtype, entry.batch[mode], shape=entry.shape)
        built = resolve(self.suite.builder)(workload, entry.recipe)
        scenario = import_module(implementation_for(mode, self.suite))
        torch.set_grad_enabled(mode == "training")
        if self.reference is None:
            self.reference = float64_reference(built, workload, scenario, True)
        fp64 = self.reference.fp64
        subject = make_subject(built, workload, SeedWatch(torch.manual_seed), torch.device("cpu"))
        observer = Observer(scenario, subject)
        eager, again = observer.observe(), observer.observe()
        ours, theirs = tolerance_for(workload, entry), peer_rule(name, entry.name, mode, dtype)
        judge = Judge(where, ours, theirs, self.file)
        repeated = compare(eager, again, None, ours, own_scale=False)
        judge.pair(
            "eager again", 0.0, repeated, peer_verdict(eager, again, eager, replace(theirs, tolerance=0.0))
        )
        _say(self.file, "case", where, reference=self.reference.name, nonfinite=nonfinite(eager))
        for backend in filter(None, self.options.backend.split(",")):
            torch._dynamo.reset()
            try:
                found = observer.observe(torch.compile(subject.module, backend=backend))
            except Exception as error:  # noqa: BLE001  a compiler that raises gives no result to judge
                _say(self.file, "skip", where, reason=f"{backend}: {type(error).__name__}: {error}"[:200])
                continue
            judge.whole(backend, eager, found, fp64, peer_scope(eager, entry.name))
        for path in targets(eager, self.options.targets):
            judge.planted(path, first(eager[path]), None if fp64 is None else first(fp64[path]))


def targets(eager: Mapping[str, Any], most: int) -> list[str]:
    """Paths of the largest, the smallest and evenly spread floating-point tensors, ``most`` in all."""
    kept = {
        path: value.numel()
        for path, value in eager.items()
        if getattr(value, "is_floating_point", bool)() and value.numel()
    }
    ranked = sorted(kept, key=lambda path: (kept[path], path))
    if len(ranked) <= most:
        return ranked
    return [ranked[round(i * (len(ranked) - 1) / max(1, most - 1))] for i in range(most)]


def first(value: Any) -> Any:
    """``value``, or its first elements where there are too many to judge a hundred times over."""
    return value if value.numel() <= LARGEST else value.flatten()[:LARGEST]


class Judge:
    """Both verdicts on one case's results."""

    def __init__(self, where: dict[str, str], ours: Any, theirs: Any, file: IO[str]) -> None:
        self.where, self.ours, self.theirs, self.file = where, ours, theirs, file

    def whole(self, backend: str, eager: Any, found: Any, fp64: Any, scope: Mapping[str, Any]) -> None:
        """Judge the result of a backend, all tensors of it."""
        from accuracy_peer import peer_verdict

        from torchgauge.harness.worker.accuracy import compare

        verdict = compare(eager, found, fp64, self.ours)
        narrow = {path: found[path] for path in scope if path in found}
        theirs = peer_verdict(scope, narrow, fp64, self.theirs)
        why = ""
        if verdict.ok != theirs:
            why = self.explain(eager, found, fp64, theirs)
            if why in {"unexplained", "own scale"} and compare(scope, narrow, fp64, self.ours).ok == theirs:
                why = "scope"
        self.pair(backend, 0.0, verdict, theirs, why, verdict.detail)

    def planted(self, path: str, eager: Any, fp64: Any) -> None:
        """Judge every wrong result that can be planted in one tensor, with float64 and without."""
        from accuracy_peer import peer_verdict
        from accuracy_plants import plants

        from torchgauge.harness.worker.accuracy import compare

        usable = fp64 if fp64 is not None and fp64.dtype.is_floating_point else None
        for each in plants(eager, usable, path):
            for truth, suffix in ((usable, ""), (None, WITHOUT)):
                wide = None if truth is None else {path: truth}
                pair = {path: each.reference}, {path: each.result}, wide
                verdict, theirs = compare(*pair, self.ours), peer_verdict(*pair, self.theirs)
                why = "" if verdict.ok == theirs else self.explain(*pair, theirs)
                self.pair(each.kind + suffix, each.size, verdict, theirs, why, path)
                if usable is None:
                    break

    def explain(self, eager: Any, found: Any, fp64: Any, theirs: bool) -> str:
        """Which of the known differences makes our verdict another than ``theirs``."""
        import torch

        from torchgauge.harness.worker.accuracy import nonfinite

        if eager.keys() != found.keys():
            return "structure"
        for path, value in eager.items():
            shape = getattr(value, "shape", None)
            if shape != getattr(found[path], "shape", None):
                return "shape"
            whole = isinstance(value, torch.Tensor) and not value.dtype.is_floating_point
            if whole and theirs and not torch.equal(value, found[path]):
                return "integers"
        if nonfinite(found):
            return "non-finite result"
        if nonfinite(eager):
            return "non-finite eager"
        if theirs and tolerated(eager, found, fp64, self.ours):
            return "own scale"
        return self._numbers(eager, found, fp64, theirs)

    def _numbers(self, eager: Any, found: Any, fp64: Any, theirs: bool) -> str:
        """Which of the peer's numbers, put in place of ours, gives its verdict."""
        import torch
        from accuracy_peer import peer_multiplier

        tensors = [value for value in found.values() if isinstance(value, torch.Tensor)]
        factor = max((peer_multiplier(value, self.theirs) for value in tensors), default=2.0)
        number = {"absolute": self.theirs.tolerance, "relative": self.theirs.tolerance}
        ways: dict[str, dict[str, float]] = {"tolerance": number}
        if fp64 is not None and len(tensors) == 1:
            ways["multiplier"] = {"rmse_multiplier": factor}
            ways["tolerance and multiplier"] = {**number, "rmse_multiplier": factor}
        for name, changed in ways.items():
            if tolerated(eager, found, fp64, replace(self.ours, **changed)) == theirs:
                return name
        return "cosine" if fp64 is None else "unexplained"

    def pair(  # noqa: PLR0917  one line of the file
        self, plant: str, size: float, verdict: Any, theirs: bool, why: str = "", path: str = ""
    ) -> None:
        """Write down both verdicts, why they differ, and which tensor they were about."""
        fields = {"plant": plant, "size": size, "ours": verdict.ok, "theirs": theirs}
        _say(self.file, "pair", self.where, **fields, why=why, path=path[:120])


def tolerated(eager: Any, found: Any, fp64: Any, rule: Any) -> bool:
    """Whether our rule passes ``found`` but for what it says of tensors on their own scale."""
    from torchgauge.harness.worker.accuracy import compare

    return compare(eager, found, fp64, rule, own_scale=False).ok


def _say(file: IO[str], kind: str, where: Mapping[str, str], **fields: object) -> None:
    file.write(json.dumps({"kind": kind, **where, **fields}) + "\n")


# --- the table -----------------------------------------------------------------------------------


def table(options: argparse.Namespace) -> None:
    """Print how many verdicts agree, and every class of difference, as Markdown."""
    lines = list(_lines(options.files))
    keys = ("suite", "model", "mode", "dtype", "plant", "size", "path")
    # of a model that was interrupted and judged again, the last line counts
    latest = {tuple(line[key] for key in keys): line for line in lines if line["kind"] == "pair"}
    pairs = list(latest.values())
    print(_counts("results", pairs, _case_of))
    print(_counts("planted", pairs, lambda p: p["plant"]))
    print("| class of difference | ours passes | PyTorch's passes | models |\n|---|---:|---:|---:|")
    for why in sorted({p["why"] for p in pairs if p["ours"] != p["theirs"]}):
        some = [p for p in pairs if p["why"] == why and p["ours"] != p["theirs"]]
        passed = sum(p["ours"] for p in some)
        models = len({(p["suite"], p["model"]) for p in some})
        print(f"| {why or 'eager runs'} | {passed} | {len(some) - passed} | {models} |")
    ends = Counter(line["state"] for line in lines if line["kind"] == "end")
    print(f"\nmodels: {dict(ends)}")
    for line in lines:
        if line["kind"] == "skip":
            case = "/".join(line[key] for key in ("suite", "model", "mode", "dtype"))
            print(f"not judged: {case}: {line['reason']}")


def _case_of(pair: dict[str, Any]) -> str:
    without = ", no float64" if pair["plant"].endswith(WITHOUT) else ""
    return f"{pair['suite']}, {pair['mode']}, {pair['dtype']}{without}"


def _counts(title: str, pairs: Sequence[dict[str, Any]], key: Any) -> str:
    rows: dict[str, Counter[str]] = {}
    for pair in pairs:
        word = {(True, True): "both pass", (False, False): "both fail", (True, False): "ours passes"}.get(
            (pair["ours"], pair["theirs"]), "theirs passes"
        )
        rows.setdefault(key(pair), Counter())[word] += 1
    words = ("both pass", "both fail", "ours passes", "theirs passes")
    text = [f"| {title} | " + " | ".join(words) + " |", "|---|" + "---:|" * len(words)]
    text += [
        f"| {name} | " + " | ".join(str(row[word]) for word in words) + " |" for name, row in rows.items()
    ]
    total: Counter[str] = sum(rows.values(), Counter())
    text.append("| all | " + " | ".join(str(total[word]) for word in words) + " |\n")
    return "\n".join(text)


def _lines(files: Iterable[Path]) -> list[dict[str, Any]]:
    found = []
    for file in files:
        if file.exists():
            found += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return found


if __name__ == "__main__":
    main()
