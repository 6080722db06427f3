"""What the library promises of its numbers: a step of 100 microseconds, A/A pairs, 3 % slower, the import.

    python benchmarks/live_numbers.py step [N]     tg.measure beside a bare loop and torch.utils.benchmark
    python benchmarks/live_numbers.py alike [N]    tg.compare of equal callables: how many it calls different
    python benchmarks/live_numbers.py slower [N]   tg.compare with one that does 3 % more: how many it finds
    python benchmarks/live_numbers.py import [N]   CPU seconds of `import torchgauge` over the interpreter

Each prints a line of JSON for each repetition and a summary at the end. A step is a hundred small operations,
so that three more are 3 %.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from child_run import run_child

OPERATIONS = 100
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch.utils.benchmark waits for what is there


def step_of(operations: int) -> Any:
    """Return a module that runs so many additions to its own small buffer."""
    import torch

    class Additions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("own", torch.zeros(64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x
            for _ in range(operations):
                y = y + self.own
            return y

    return Additions().eval()


def step(count: int) -> None:
    """Time one step by three means, in alternation."""
    import torch
    from torch.utils.benchmark import Timer

    import torchgauge as tg

    model, x = step_of(OPERATIONS), torch.ones(64)

    def bare() -> float:
        with torch.no_grad():
            took = []
            for _ in range(50):
                began = time.perf_counter()
                for _ in range(100):
                    model(x)
                took.append((time.perf_counter() - began) / 100)
        return median(took)

    def timer() -> float:
        with torch.no_grad():
            found = Timer("model(x)", globals={"model": model, "x": x}, num_threads=1)
            return float(found.blocked_autorange(min_run_time=1).median)

    ratios: dict[str, list[float]] = {"bare": [], "timer": []}
    for number in range(count):
        before = bare(), timer()
        found = tg.measure(model, x, configs=["eager"], progress=False)
        after = bare(), timer()
        ours = found.seconds() or 0.0
        ratios["bare"].append(ours / ((before[0] + after[0]) / 2))
        ratios["timer"].append(ours / ((before[1] + after[1]) / 2))
        say(
            number=number,
            ours=ours,
            bare=[before[0], after[0]],
            timer=[before[1], after[1]],
            doubts=found.notes,
        )
    say(
        **{
            name: {"median": median(each), "all": [round(r, 4) for r in each]}
            for name, each in ratios.items()
        }
    )


def alike(count: int) -> None:
    """Compare equal callables: one twice, and two of equal code with memory of their own."""
    pairs(count, lambda number: (one := step_of(OPERATIONS), one if number % 2 else step_of(OPERATIONS)))


def slower(count: int) -> None:
    """Compare a step with one that does three operations more in a hundred."""
    pairs(count, lambda _: (step_of(OPERATIONS), step_of(OPERATIONS + 3)))


def pairs(count: int, make: Callable[[int], tuple[Any, Any]]) -> None:
    """Compare ``count`` pairs and count the verdicts."""
    import torch

    import torchgauge as tg

    torch.set_num_threads(1)
    x, verdicts, seconds = torch.ones(64), [], []
    for number in range(count):
        old, new = make(number)
        began = time.perf_counter()
        with torch.no_grad():
            found = tg.compare(old, new, args=(x,), seed=number)
        seconds.append(time.perf_counter() - began)
        verdicts.append(found.verdict.value)
        interval = [found.ratio, found.low, found.high]
        say(number=number, verdict=verdicts[-1], interval=interval, parts=found.parts, seconds=seconds[-1])
    say(verdicts={name: verdicts.count(name) for name in sorted(set(verdicts))}, seconds=median(seconds))


def imported(count: int) -> None:
    """Take the CPU time of children with and without the import, in alternation."""

    def spent(program: str) -> float:
        return run_child([sys.executable, "-c", program], str).cpu_s

    both = [(spent("pass"), spent("import torchgauge")) for _ in range(count)]
    more = median(ours - bare for bare, ours in both)
    say(bare=median(bare for bare, _ in both), with_import=median(ours for _, ours in both), more=more)


def say(**values: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    WHAT = {"step": (step, 10), "alike": (alike, 400), "slower": (slower, 100), "import": (imported, 20)}
    run, default = WHAT[sys.argv[1]]
    run(int(sys.argv[2]) if len(sys.argv) > 2 else default)
