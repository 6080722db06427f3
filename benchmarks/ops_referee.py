"""Does suite ``ops`` judge as PyTorch's own test classes do? Entries drawn by a seed, and both verdicts.

The referee is upstream's machinery: a class called ``TestCommon`` with ``test_compare_cpu``, made for the
device by ``instantiate_device_type_tests``, so that every skip, expected failure and tolerance of the
database holds for it. It makes its samples on the device and compares with the host in the same dtype.
Entries that draw random numbers, or return memory that nobody wrote, are not drawn.

    python benchmarks/ops_referee.py --device npusim --entries 200 --seed 2026 --threads 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import unittest
import warnings
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_utils import TestCase

from torchgauge.suites.ops.database import draws_random_numbers, dtype_name, operators
from torchgauge.suites.ops.judge import judge
from torchgauge.suites.ops.suite import SUITE
from torchgauge.suites.ops.tried import depends_on_seed, tried_samples
from torchgauge.suites.ops.upstream import FORWARD

Entry = tuple[str, Any]
"""Full name of an operator and a ``torch.dtype``."""
GROUPS = {"pass": "pass", "fail_accuracy": "fail", "error": "fail", "unsupported": "fail", "skipped": "skip"}
"""Our statuses in the referee's three words."""


def draw(device_type: str, entries: int, seed: int, limit: int) -> list[Entry]:
    """``entries`` operators with a dtype, drawn without repetition; none whose results depend on a seed."""
    not_judged = {each.name for each in SUITE.not_judged if each.variant in (None, FORWARD)}
    every = [
        (name, dtype)
        for name, op in operators().items()
        if name not in not_judged and not draws_random_numbers(op)
        for dtype in sorted(op.supported_dtypes(device_type), key=str)
    ]
    random.Random(seed).shuffle(every)
    chosen = (entry for entry in every if not _is_random(*entry, limit))
    return list(islice(chosen, entries))


def _is_random(name: str, dtype: Any, limit: int) -> bool:
    op = operators()[name]
    return any(depends_on_seed(op, each.sample) for each in tried_samples(op, dtype, FORWARD, limit))


def referee(device_type: str, entries: Sequence[Entry], limit: int) -> dict[str, str]:
    """``pass``, ``fail`` or ``skip`` of every entry as upstream's machinery says it, by name and dtype."""
    known = operators()
    chosen = [known[name] for name in dict.fromkeys(name for name, _ in entries)]

    class TestCommon(TestCase):
        """Upstream's name: the database's decorators look for it."""

        @ops(chosen, dtypes=OpDTypes.supported)
        def test_compare_cpu(self, device: str, dtype: Any, op: Any) -> None:
            """The results of the device are those of the host."""
            for sample in islice(op.sample_inputs(device, dtype), limit or None):
                there = op(sample.input, *sample.args, **sample.kwargs)
                copy = sample.transform(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t)
                if "device" in copy.kwargs:
                    copy.kwargs["device"] = "cpu"
                here = op(copy.input, *copy.args, **copy.kwargs)
                wanted = copy.output_process_fn_grad(here)
                self.assertEqual(sample.output_process_fn_grad(there), wanted)  # noqa: PT009  upstream's rule

    scope: dict[str, Any] = {"TestCommon": TestCommon}
    instantiate_device_type_tests(TestCommon, scope)
    kind = "privateuse1" if device_type == torch._C._get_privateuse1_backend_name() else device_type
    classes = [c for c in scope.values() if getattr(c, "device_type", None) in (kind, device_type)]
    verdicts = {}
    for name, dtype in entries:
        end = f"_{known[name].formatted_name}_{{}}_{dtype_name(dtype)}"
        names = ["test_compare_cpu" + end.format(each) for each in (device_type, kind)]
        found = [c(n) for c in classes for n in names if hasattr(c, n)]
        verdicts[_key(name, dtype)] = _ran(found[0]) if found else "no test"
    return verdicts


def _ran(test: unittest.TestCase) -> str:
    result = unittest.TestResult()
    type(test).setUpClass()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test.run(result)
    if result.skipped or result.expectedFailures:
        return "skip"
    return "fail" if result.errors or result.failures else "pass"


def ours(device_type: str, entries: Sequence[Entry], limit: int) -> dict[str, tuple[str, str]]:
    """Our verdict on every entry in the referee's words, and the reason."""
    found = {}
    for name, dtype in entries:
        verdict = judge(operators()[name], dtype, FORWARD, torch.device(device_type), limit=limit)
        found[_key(name, dtype)] = (GROUPS[verdict.status], verdict.reason)
    return found


def _key(name: str, dtype: Any) -> str:
    return f"{name} {dtype_name(dtype)}"


def compare(device_type: str, entries: int, seed: int, limit: int) -> dict[str, Any]:
    """Both verdicts over the drawn entries: counts, seconds and every disagreement."""
    drawn = draw(device_type, entries, seed, limit)
    began = time.perf_counter()
    mine = ours(device_type, drawn, limit)
    middle = time.perf_counter()
    theirs = referee(device_type, drawn, limit)
    ended = time.perf_counter()
    counts: dict[str, int] = {}
    for word in theirs.values():
        counts[word] = counts.get(word, 0) + 1
    return {
        "device": device_type,
        "torch": torch.__version__,
        "seed": seed,
        "entries": len(drawn),
        "samples": limit,
        "equal": sum(mine[key][0] == theirs[key] for key in theirs),
        "referee": counts,
        "seconds_ours": round(middle - began, 2),
        "seconds_referee": round(ended - middle, 2),
        "different": [
            {"entry": key, "ours": mine[key][0], "reason": mine[key][1], "referee": theirs[key]}
            for key in theirs
            if mine[key][0] != theirs[key]
        ],
    }


def main() -> int:
    """Print the comparison as JSON; exit 1 where the two disagree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", required=True)
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    found = compare(options.device, options.entries, options.seed, options.samples)
    print(json.dumps(found, indent=1))
    return int(found["equal"] != found["entries"])


if __name__ == "__main__":
    sys.exit(main())
