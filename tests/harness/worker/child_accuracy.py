"""Child: verdicts of torchgauge's accuracy rule beside those of PyTorch's own, on random pairs."""

from __future__ import annotations

import json
import logging

import torch
from torch._dynamo.utils import same

from torchgauge.harness.worker.accuracy import compare
from torchgauge.harness.worker.torch_checks import _accuracy
from torchgauge.records import Tolerance, to_json

SHAPES = ((), (1,), (10,), (999,), (1000,), (40, 50), (3, 7, 2, 2), (64, 32, 1, 1))
MULTIPLIER = {torch.float32: 2.0, torch.float16: 3.0, torch.bfloat16: 3.0}


def verdicts(shape, dtype, tol, errors, generator):
    """Ours and theirs for one result; ``errors`` are its reference's and how many times that its own is."""
    noise, ratio = errors
    truth = torch.randn(shape, generator=generator, dtype=torch.float64)
    error = torch.randn(shape, generator=generator, dtype=torch.float64) * noise
    other = torch.randn(shape, generator=generator, dtype=torch.float64) * noise * ratio
    reference, result = (truth + error).to(dtype), (truth + other).to(dtype)
    rule = Tolerance(tol, tol, MULTIPLIER[dtype], "test")
    ours = compare({"out": reference}, {"out": result}, {"out": truth}, rule).ok
    theirs = same(reference, result, truth, tol=tol)
    alone = compare({"out": reference}, {"out": result}, None, rule).ok
    return (ours, bool(theirs)), (alone, bool(torch.allclose(reference, result, atol=tol, rtol=tol)))


def main() -> None:
    """Print how many pairs there were, how many passed and which verdicts differ."""
    logging.disable(logging.CRITICAL)
    generator = torch.Generator().manual_seed(0)
    differences, pairs, passed = [], 0, 0
    for shape in SHAPES:
        for dtype in MULTIPLIER:
            for tol in (1e-4, 1e-3, 2e-2):
                for noise in (1e-5, 1e-2, 0.3):
                    for ratio in (0.5, 1.8, 2.2, 2.8, 3.3, 10.0):
                        judged = verdicts(shape, dtype, tol, (noise, ratio), generator)
                        pairs, passed = pairs + 1, passed + judged[0][0]
                        if any(ours != theirs for ours, theirs in judged):
                            differences.append([list(shape), str(dtype), tol, noise, ratio, judged])
    found = {"pairs": pairs, "passed": passed, "differences": differences}
    print(json.dumps({**found, "special": special(), "overflow": overflow()}))


def special() -> dict[str, list[bool]]:
    """Ours and theirs where there is nothing random about it."""
    one, nan, inf = torch.ones(4), torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("inf")])
    pairs = {
        "equal": (one, one),
        "empty": (torch.empty(0), torch.empty(0)),
        "other shape": (one, torch.ones(5)),
        "other dtype": (one, one.double()),
        "integers": (torch.arange(4), torch.arange(4)),
        "other integers": (torch.arange(4), torch.arange(1, 5)),
        "booleans": (one > 0, one > 0),
        "nan in both": (nan, nan),
        "nan in the result": (torch.ones(2), nan),
        "infinity in both": (inf, inf),
    }
    rule = Tolerance(1e-4, 1e-4, 2.0, "test")
    found = {}
    for name, (reference, result) in pairs.items():
        ours = compare({"out": reference}, {"out": result}, None, rule).ok
        try:
            theirs = bool(same(reference, result, None, tol=1e-4, equal_nan=True))
        except (AssertionError, RuntimeError):
            theirs = False
        found[name] = [ours, theirs]
    found["other structure"] = [compare({"a": one}, {"b": one}, None, rule).ok, False]
    found["other number"] = [compare({"a": 1}, {"a": 2}, None, rule).ok, False]
    found["close number"] = [compare({"a": 1.0}, {"a": 1.00001}, None, rule).ok, True]
    return found


def overflow() -> dict[str, object]:
    """The accuracy record of a result whose reference overflowed to infinity, as it travels."""
    reference, truth = torch.tensor([1.0, float("inf")]), torch.ones(2, dtype=torch.float64)
    rule = Tolerance(1e-4, 1e-4, 2.0, "test")
    verdict = compare({"out": reference}, {"out": torch.ones(2)}, {"out": truth}, rule)
    return json.loads(to_json(_accuracy("test", verdict)))


if __name__ == "__main__":
    main()
