"""Which share of wrong tensors the accuracy rule finds, and whether it accuses any that is right.

Every model of the tier runs in float64, eagerly, and once more in each of several ways that are all correct:
eagerly again, through dynamo backends, and with PyTorch's native kernels in place of oneDNN's. Of each tensor
the sums are kept that the rule needs. From them the table derives three faults in one tensor at a time:
zeroed, negated, scaled by 1.1; once planted in eager's own tensor, where everything else is equal to the bit,
and once in that of another correct implementation, where everything else differs by rounding. Derived and
measured sums are the same (``tests/benchmarks/test_accuracy_faults.py``). A file of finished models is
gone on with.

    python benchmarks/accuracy_faults.py run --out faults.jsonl --suite timm --suite huggingface
    python benchmarks/accuracy_faults.py table faults.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torchgauge.harness.worker.closeness import NOTHING, Closeness, Yardstick, nonsense, strangers

FAULTS = {"zeroed": 0.0, "negated": -1.0, "times 1.1": 1.1}
AGAIN, NATIVE, EAGER = "again", "native", "eager"
BACKENDS = f"{AGAIN},aot_eager,{NATIVE}"
SAME = {AGAIN, "aot_eager"}
"""Ways that run eager's own kernels: a fault planted in their results is one planted in eager's."""
FEW = 10
"""Tensors up to which a planted fault may move the median that it is judged by."""


def main() -> None:
    """Run the models, or print the tables of what was run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    each = verbs.add_parser("run")
    each.add_argument("--suite", action="append", required=True)
    each.add_argument("--model", action="append", default=[])
    each.add_argument("--tier", default="standard")
    each.add_argument("--dtype", default="float32,amp_bfloat16")
    each.add_argument("--backend", default=BACKENDS)
    each.add_argument("--mode", default="inference,training")
    each.add_argument("--timeout", type=float, default=540.0, help="seconds for one model")
    each.add_argument("--out", type=Path, required=True)
    verbs.add_parser("table").add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.verb == "table":
        table(options.files)
    else:
        from accuracy_verdicts import run_models

        run_models(options, _model)


# --- running -------------------------------------------------------------------------------------


def _model(suite: Any, entry: Any, options: argparse.Namespace) -> None:
    """All modes and dtypes of one model, a line for each result."""
    from accuracy_verdicts import _say

    with options.out.open("a", encoding="utf-8", buffering=1) as file:
        for mode in options.mode.split(","):
            reference = None
            for dtype in options.dtype.split(",") if mode in entry.batch else ():
                where = {"suite": suite.name, "model": entry.name, "mode": mode, "dtype": dtype}
                try:
                    case = _Case(suite, entry, mode, dtype, reference)
                    reference = case.reference
                    for backend in options.backend.split(","):
                        rows = list(case.rows(backend))
                        _say(file, "case", where, backend=backend, reference=reference.name, rows=rows)
                except Exception as error:  # noqa: BLE001  what does not run here is a line of the table
                    _say(file, "skip", where, reason=f"{type(error).__name__}: {error}"[:200])


class _Case:
    """One workload with its float64 reference and its eager observation."""

    def __init__(self, suite: Any, entry: Any, mode: str, dtype: str, reference: Any) -> None:
        import torch

        from torchgauge.harness.scenarios.scenario import implementation_for
        from torchgauge.harness.worker.observer import Observer
        from torchgauge.harness.worker.reference import SeedWatch, float64_reference
        from torchgauge.harness.worker.subjects import make_subject
        from torchgauge.records import Workload
        from torchgauge.registry import resolve
        from torchgauge.suites.tolerances import tolerance_for

        workload = Workload(suite.name, entry.name, mode, dtype, entry.batch[mode], shape=entry.shape)
        built = resolve(suite.builder)(workload, entry.recipe)
        scenario = import_module(implementation_for(mode, suite))
        torch.set_grad_enabled(mode == "training")
        self.reference = reference or float64_reference(built, workload, scenario, True)
        self.subject = make_subject(built, workload, SeedWatch(torch.manual_seed), torch.device("cpu"))
        self.tolerance = tolerance_for(workload, entry)
        self.observer = Observer(scenario, self.subject)
        self.eager = self.observer.observe()
        self.kept: dict[str, dict[str, Any]] = {}

    def rows(self, backend: str) -> Iterator[dict[str, Any]]:
        """The sums of each floating-point tensor of one more run."""
        import torch

        found, fp64 = self._observe(backend), self.reference.fp64 or {}
        factors = (1.0,) if backend in SAME else (1.0, *FAULTS.values())
        for path, eager in self.eager.items():
            if isinstance(eager, torch.Tensor) and eager.is_floating_point() and eager.numel():
                truth = fp64.get(path)
                if truth is not None and truth.dtype != torch.float64:
                    truth = None
                if path not in self.kept:
                    self.kept[path] = of_eager(path, eager, truth, self.tolerance)
                yield of_result(self.kept[path], (eager, found[path], truth), factors)

    def _observe(self, backend: str) -> Any:
        import torch

        if backend == AGAIN:
            return self.observer.observe()
        if backend == NATIVE:
            with torch.backends.mkldnn.flags(enabled=False):
                return self.observer.observe()
        torch._dynamo.reset()
        return self.observer.observe(torch.compile(self.subject.module, backend=backend))


def sums(  # noqa: PLR0917  a tensor with its references
    path: str, eager: Any, found: Any, truth: Any, tolerance: Any, factors: Iterable[float]
) -> dict[str, Any]:
    """Sums of products of float64 (T), eager (E) and the result (R), and which faults ``allclose`` passes."""
    return of_result(of_eager(path, eager, truth, tolerance), (eager, found, truth), factors)


def of_eager(path: str, eager: Any, truth: Any, tolerance: Any) -> dict[str, Any]:
    """The sums that no result is needed for: every way of running shares them."""
    from torchgauge.harness.worker.accuracy import multiplier

    e, limit = eager.double().flatten(), tolerance.absolute
    most = float(e.abs().max())  # a multiple of eager is farthest off where eager is largest
    close = {str(c): most * (abs(1 - c) - limit * abs(c)) <= limit for c in (1.0, *FAULTS.values())}
    row = {"path": path, "n": e.numel(), "m": multiplier(eager, tolerance), "tol": limit, "closeE": close}
    row |= {"EE": float(e @ e), "filled": int(e.count_nonzero()) / e.numel()}
    if truth is not None:
        t = truth.flatten()
        row |= {"TT": float(t @ t), "TE": float(t @ e), "dTE": float((t - e).square_().sum())}
    return row


def of_result(
    row: Mapping[str, Any], tensors: tuple[Any, Any, Any], factors: Iterable[float]
) -> dict[str, Any]:
    """All sums, given those of eager; ``tensors`` are eager, the result and float64."""
    import torch

    eager, found, truth = tensors
    if torch.equal(eager, found):
        more = {"RR": row["EE"], "ER": row["EE"], "dER": 0.0, "closeR": row["closeE"]}
        return {**row, **more, **({"TR": row["TE"], "dTR": row["dTE"]} if "TT" in row else {})}
    e, r, limit = eager.double().flatten(), found.double().flatten(), row["tol"]
    more = {"RR": float(r @ r), "ER": float(e @ r), "dER": float((e - r).square_().sum())}
    if truth is not None:
        more |= {"TR": float(truth.flatten() @ r), "dTR": float((truth.flatten() - r).square_().sum())}
    close = {str(c): torch.allclose(eager, c * found, rtol=limit, atol=limit) for c in factors}
    return {**row, **more, "closeR": close}


# --- what the rule says ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """One tensor of a result: what the rule needs, and whether PyTorch's part of the rule passes it."""

    closeness: Closeness
    tolerated: bool

    @property
    def zero(self) -> bool:
        """Whether float64 says zero: eager's error is a thousand times the tensor, or there is no tensor."""
        noise = self.closeness.noise
        return (noise is not None and noise >= NOTHING) or not self.closeness.truth


def tensor(row: Mapping[str, Any], factor: float = 1.0, base: str = "R") -> Tensor:
    """The tensor of ``row`` times ``factor``: eager's (``base`` E) or the result's."""
    n, square, along = row["n"], row[base * 2], row["ER"] if base == "R" else row["EE"]
    known = factor == 1.0 and base == "R"
    gap = row["dER"] if known else row["EE"] - 2 * factor * along + factor**2 * square
    close = row["close" + base][str(factor)]
    if "TT" not in row:
        return Tensor(
            Closeness(row["path"], n, row["m"], row["EE"], factor**2 * square, max(0.0, gap)), close
        )
    shadow = row["T" + base]
    error = row["dTR"] if known else row["TT"] - 2 * factor * shadow + factor**2 * square
    closeness = Closeness(
        row["path"],
        n,
        row["m"],
        row["EE"],
        factor**2 * square,
        max(0.0, gap),
        row["filled"],
        truth=row["TT"],
        eager_error=row["dTE"],
        error=max(0.0, error),
        along=factor * shadow - row["TE"],
    )
    limit = row["m"] * math.sqrt(row["dTE"] / n) + row["tol"] / 10
    return Tensor(closeness, close or math.sqrt(max(0.0, error) / n) <= limit)


def accused(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Path of each tensor of a correct result that the rule fails, and why."""
    tensors = [tensor(row) for row in rows]
    found = {near.path: reason for near, reason, _ in strangers([each.closeness for each in tensors])}
    return found | {t.closeness.path: "tolerance" for t in tensors if not t.tolerated}


def planted(rows: list[dict[str, Any]], base: str) -> Iterator[tuple[str, Tensor, str]]:
    """Every fault in every tensor that is not all zeros: its name, the tensor, and the rule's word on it."""
    right = [tensor(row, 1.0, base) for row in rows if row["EE"]]
    others = [each.closeness for each in right]
    usual = Yardstick.of(others)
    for place, row in enumerate(row for row in rows if row["EE"]):
        for name, factor in FAULTS.items():
            wrong = tensor(row, factor, base)
            judge = usual
            if len(others) <= FEW:
                judge = Yardstick.of([*others[:place], wrong.closeness, *others[place + 1 :]])
            yield name, wrong, judge.judge(wrong.closeness)


# --- the tables ----------------------------------------------------------------------------------


def table(files: list[Path]) -> None:
    """Print how many faults are found and whom the rule accuses, as Markdown."""
    results: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    faults: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    notes, models = [], set()
    for line in _lines(files):
        if line["kind"] != "case":
            if line["kind"] == "skip" or line.get("state") != "done":
                case = "/".join(line.get(key, "") for key in ("suite", "model", "mode", "dtype"))
                notes.append(f"not judged: {case}: {line.get('reason', line.get('state'))}")
            continue
        where, rows = (line["mode"], line["dtype"]), line["rows"]
        models.add((line["suite"], line["model"]))
        wrong = accused(rows)
        row = results[(*where, line["backend"])]
        row.update(observations=1, tensors=len(rows), accused=bool(wrong), tensors_accused=len(wrong))
        notes += [f"accused: {line['model']} {where} {line['backend']} {p}: {w}" for p, w in wrong.items()]
        if (
            line["backend"] == AGAIN
            and line["dtype"] == "float32"
            and (odd := nonsense([tensor(row).closeness for row in rows]))
        ):
            notes.append(f"eager nothing like float64: {line['model']} {where}: {odd}")
        if line["backend"] == AGAIN or line["backend"] not in SAME:
            base = EAGER if line["backend"] == AGAIN else line["backend"]
            for fault, each, reason in planted(rows, "E" if base == EAGER else "R"):
                count = faults[(*where, base, fault)]
                hit = bool(reason) or not each.tolerated
                noise = each.closeness.noise or 0.0
                count.update(all=1, found_all=hit, tolerated=each.tolerated)
                count.update(zero=each.zero, found=hit and not each.zero)
                count.update(clear=noise <= 0.02, found_clear=hit and noise <= 0.02)
    print(f"models: {len(models)}\n")
    _print_results(results)
    _print_faults(faults)
    print("\n".join(notes))


def _print_results(results: Mapping[tuple[str, ...], Counter[str]]) -> None:
    head = ("mode", "dtype", "result", "observations", "accused", "tensors", "tensors accused")
    print("| " + " | ".join(head) + " |\n" + "|---" * 3 + "|---:" * 4 + "|")
    for key, row in sorted(results.items()):
        counts = (row["observations"], row["accused"], row["tensors"], row["tensors_accused"])
        print("| " + " | ".join([*key, *(f"{count:,}" for count in counts)]) + " |")
    print()


def _print_faults(faults: Mapping[tuple[str, ...], Counter[str]]) -> None:
    head = ("mode", "dtype", "planted in", "fault", "tensors", "zero by float64", "found of the others")
    head += ("found of all", "noise to 2 %", "found of these", "found by the tolerance alone, of all")
    print("| " + " | ".join(head) + " |\n" + "|---" * 4 + "|---:" * 7 + "|")
    for key, row in sorted(faults.items()):
        cells = (
            f"{row['all']:,}",
            f"{row['zero']:,}",
            _share(row["found"], row["all"] - row["zero"]),
            _share(row["found_all"], row["all"]),
            f"{row['clear']:,}",
            _share(row["found_clear"], row["clear"]),
            _share(row["all"] - row["tolerated"], row["all"]),
        )
        print("| " + " | ".join([*key, *cells]) + " |")
    print()


def _share(part: int, whole: int) -> str:
    """A percentage, rounded down so that 100 means all."""
    return f"{math.floor(10000 * part / whole) / 100:.2f} %" if whole else ""


def _lines(files: list[Path]) -> Iterator[dict[str, Any]]:
    """The lines of ``files``, one at a time, as a model's may be megabytes; of equal cases the last one."""
    latest: dict[tuple[str, ...], tuple[Path, int]] = {}
    for file in files:
        with file.open(encoding="utf-8") as text:
            for number, written in enumerate(text):
                latest[_key(json.loads(written))] = file, number
    wanted = set(latest.values())
    for file in files:
        with file.open(encoding="utf-8") as text:
            for number, written in enumerate(text):
                if (file, number) in wanted:
                    yield json.loads(written)


def _key(line: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(line.get(key, "")) for key in ("kind", "suite", "model", "mode", "dtype", "backend"))


if __name__ == "__main__":
    main()
