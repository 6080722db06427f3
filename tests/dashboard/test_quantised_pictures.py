"""What quantisation trades, drawn: each point is where the store says, and no doubtful one stands out."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from picture_file import SVG, PictureFile, words
from store_builder import CPU, EAGER, INDUCTOR, NOW, NPU, RunBuilder, environment, result

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pictures.quantised import front_of
from torchgauge.dashboard.pictures.tradeoff_drawing import Point
from torchgauge.records import METRICS, Case, Configuration, Measurement, Modifier, Status, Workload

MIB = 1 << 20
LINEAR = Workload("quant", "linear-8x8", dtype="bfloat16")
NUMBERS = {
    "torchao-fast": (2.0, 6 * MIB, 30.0),
    "torchao-small": (1.5, 4 * MIB, 20.0),
    "torchao-beaten": (1.4, 6 * MIB, 29.0),
    "torchao-degraded": (3.0, 3 * MIB, 40.0),
    "torchao-unsteady": (4.0, 2 * MIB, 50.0),
}
MARKS = {"torchao-degraded": Modifier.DEGRADED, "torchao-unsteady": Modifier.UNSTEADY}


def measured(**numbers: float) -> list[Measurement]:
    """A measurement for each metric: a speed in eight blocks, any other one once."""
    found = []
    for name, value in numbers.items():
        samples = (
            tuple(value * (1 + 0.001 * i) for i in range(-4, 5)) if name == "speedup_compiled" else (value,)
        )
        found.append(Measurement(name, METRICS[name].unit, samples, tuple(range(len(samples))), "test"))
    return found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures of one model on one device; the other device has refused all."""
    folder = tmp_path_factory.mktemp("quantised")
    run = RunBuilder(
        "20260101T110000Z-00000001", NOW - 3_600, environments=[environment("cpu"), environment("npusim")]
    )
    for configuration in (EAGER, INDUCTOR):
        result(run, Case(LINEAR, configuration, CPU), measurements=measured(model_size=8.0 * MIB))
    for name, (speed, size, quality) in NUMBERS.items():
        marks = (MARKS[name],) if name in MARKS else ()
        result(
            run,
            Case(LINEAR, Configuration(name, "torchao"), CPU),
            measurements=measured(speedup_compiled=speed, model_size=float(size), sqnr=quality),
            modifiers=marks,
            facts=tuple((mark.value, "seen") for mark in marks),
        )
    for device in (CPU, NPU):
        refused = Case(LINEAR, Configuration("torchao-refused", "torchao"), device)
        result(run, refused, Status.UNSUPPORTED, reason="the library says no")
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site" / "pictures"


def test_each_point_stands_where_its_numbers_say(pictures: Path) -> None:
    """Heights are logarithms of speeds, places those of bytes; only what nothing beats has a name."""
    (path,) = (
        each for each in pictures.glob("quantised-*.svg") if not each.stem.endswith(("-narrow", "-card"))
    )
    picture = PictureFile(path)
    groups = {
        (each.findtext(f"{SVG}title") or "").partition(":")[0]: each for each in picture.root.iter(f"{SVG}g")
    }
    dots = {name: group.find(f"{SVG}circle") for name, group in groups.items() if name in NUMBERS}
    assert dots.keys() == NUMBERS.keys()
    at = {
        name: (float(dot.attrib["cx"]), float(dot.attrib["cy"]))
        for name, dot in dots.items()
        if dot is not None
    }
    assert at.keys() == NUMBERS.keys()

    def place(name: str) -> tuple[float, float]:
        speed, size, _ = NUMBERS[name]
        return math.log(size), math.log(speed)

    one, other = "torchao-unsteady", "torchao-fast"
    scale = [(at[other][i] - at[one][i]) / (place(other)[i] - place(one)[i]) for i in (0, 1)]
    assert scale[0] > 0 > scale[1]  # larger to the right, faster above
    for name in NUMBERS:
        expected = [at[one][i] + scale[i] * (place(name)[i] - place(one)[i]) for i in (0, 1)]
        assert at[name] == pytest.approx(expected, abs=0.3)
    css = {name: dot.attrib["class"] for name, dot in dots.items() if dot is not None}
    assert css == {
        "torchao-fast": "b",
        "torchao-small": "b",
        "torchao-beaten": "u",
        "torchao-degraded": "page su",
        "torchao-unsteady": "page su",
    }
    written = {words(each) for each in picture.texts}
    assert {"torchao-fast 30 dB", "torchao-small 20 dB", "compiled"} <= written
    assert not any(
        text.startswith(("torchao-beaten", "torchao-degraded", "torchao-unsteady")) for text in written
    )
    assert (
        "5 configurations of 6 ran and have size, speed and quality. Fastest is torchao-fast"
        in picture.description
    )


def test_the_front_is_of_three_numbers() -> None:
    """What is slower and larger stays where it is the most exact; of two equal ones both do."""
    small, fast, exact = Point("a", 1, 1, 1, True), Point("b", 2, 2, 1, True), Point("c", 3, 1, 9, True)
    worse, twin = Point("d", 3, 1, 8, True), Point("e", 1, 1, 1, True)
    found = front_of([worse, exact, fast, small, twin, Point("f", 0.1, 9, 99, False)])
    assert [each.name for each in found] == ["a", "e", "b", "c"]
    assert front_of([]) == ()
