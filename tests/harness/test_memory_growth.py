"""Memory that steps keep is measured and marks the row; garbage and a cache that fills up do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from torchgauge.records import Modifier, Result, Status

pytestmark = pytest.mark.torch
LEAKS = {
    "inference": ("keeps_64_kib", "keeps_untouched", "keeps_python_objects", "keeps_outputs"),
    "training": ("keeps_64_kib", "keeps_graph"),
}
HONEST = ("eager", "honest", "keeps_20", "keeps_100", "keeps_little", "leaves_cycles")
CASES = [(mode, kind) for mode, kinds in LEAKS.items() for kind in kinds]


@pytest.fixture(scope="module")
def rows(
    make_sandbox: Callable[[], Any], cheats: Callable[..., dict[str, Any]]
) -> dict[tuple[str, str], Result]:
    """Return each row of a run with code that keeps memory, by mode and configuration."""
    found = {}
    for mode, leaks in LEAKS.items():
        box = make_sandbox()
        kinds = (*HONEST[1:], *leaks)
        setup = cheats(box, kinds)
        words = ("toy", "--models", "mlp", "--device", "cpu", "--mode", mode, "--measure-seconds", "1")
        done = box.measure(
            *words,
            *("--config", ",".join(("eager", *kinds)), "--config-file", setup["file"]),
            PYTHONPATH=setup["PYTHONPATH"],
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found.update({(mode, row.case.configuration.name): row for row in box.rows()})
    return found


def growth(row: Result) -> list[float]:
    """Return the samples of ``memory_growth``."""
    return next(list(each.samples) for each in row.measurements if each.metric == "memory_growth")


@pytest.mark.parametrize(("mode", "kind"), CASES)
def test_a_leak_is_measured_and_marked(rows: dict[tuple[str, str], Result], mode: str, kind: str) -> None:
    """The row passes with the modifier ``leaks``, a sentence, and a growth whose interval is above 0."""
    row = rows[mode, kind]
    assert row.status is Status.PASS
    assert Modifier.LEAKS in row.modifiers
    assert str(dict(row.facts)["leaks"]).startswith("host memory grew by ")
    assert min(growth(row)) > 1024


def test_the_growth_is_the_size_of_what_is_kept(rows: dict[tuple[str, str], Result]) -> None:
    """A tensor of 64 KiB, whether it was written to or not, is found to 2 %."""
    for kind in ("keeps_64_kib", "keeps_untouched"):
        assert median(growth(rows["inference", kind])) == pytest.approx(65536, rel=0.02)


@pytest.mark.parametrize("mode", LEAKS)
@pytest.mark.parametrize("kind", HONEST)
def test_steps_that_keep_nothing_are_not_marked(
    rows: dict[tuple[str, str], Result], mode: str, kind: str
) -> None:
    """Caches that fill up and cyclic garbage are not leaks, and steps beside leaking ones do not grow."""
    row = rows[mode, kind]
    assert row.status is Status.PASS
    assert Modifier.LEAKS not in row.modifiers
    if kind != "keeps_100":  # a busy machine may end while this cache still fills
        assert abs(median(growth(row))) < 1024


@pytest.fixture(scope="module")
def states(make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """Return the rows of programs that keep memory in their state or elsewhere, by model."""
    box = make_sandbox()
    models = "keeps_in_an_attribute,keeps_each_thirtieth,fills_in_an_attribute,fills_slowly,empties"
    done = box.run(
        *("run", "states", "--models", models, "--device", "cpu", "--config", "eager"),
        *("--no-calibration", "--no-memory-probe", "--store", str(box.store_path), "--measure-seconds", "1"),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {row.case.workload.model: row for row in box.rows()}


@pytest.mark.parametrize(
    ("model", "size"), [("keeps_in_an_attribute", 65536), ("keeps_each_thirtieth", 34953)]
)
def test_a_leak_in_state_or_in_few_steps_is_marked(states: dict[str, Result], model: str, size: int) -> None:
    """State is restored before each block, and most blocks grow by nothing."""
    row = states[model]
    assert Modifier.LEAKS in row.modifiers
    assert median(growth(row)) == pytest.approx(size, rel=0.2)


@pytest.mark.parametrize("model", ["fills_in_an_attribute", "fills_slowly", "empties"])
def test_growth_that_ends_is_no_leak(states: dict[str, Result], model: str) -> None:
    """A cache fills up, or is emptied, while the program runs on."""
    row = states[model]
    assert (row.status, row.modifiers.count(Modifier.LEAKS)) == (Status.PASS, 0)


@pytest.mark.parametrize(
    ("kind", "words", "why"),
    [
        ("keeps_20_mib", ("--memory-limit", "900M"), "host memory grew by 20,480.* KiB per step; killed at "),
        (
            "keeps_to_the_limit",
            (),
            "host memory grew by 1,02.* KiB per step; RuntimeError: .*allocate memory",
        ),
    ],
)
def test_a_lack_of_memory_names_the_growth(
    make_sandbox: Callable[[], Any],
    cheats: Callable[..., dict[str, Any]],
    kind: str,
    words: tuple[str, ...],
    why: str,
) -> None:
    """The process is killed or cannot allocate, and the reason does not name its few parameters."""
    box = make_sandbox()
    setup = cheats(box, (kind,))
    done = box.measure(
        *("toy", "--models", "mlp", "--device", "cpu", "--mode", "inference", "--config", kind),
        *("--config-file", setup["file"], *words),
        PYTHONPATH=setup["PYTHONPATH"],
    )
    (row,) = box.rows()
    assert (done.returncode, row.status) == (1, Status.OOM)
    assert re.match(why, row.reason)
    assert "parameters" not in row.reason
