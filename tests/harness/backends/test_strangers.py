"""Backends of a stranger's package: a good one needs no edit of ours, a bad one ends its own case only."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.harness.planning.configurations import load_configurations
from torchgauge.records import Result, Status

pytestmark = pytest.mark.torch

PLUGIN = Path(__file__).parents[2] / "backends_plugin"
NAMES = (
    "polite",
    "wrong",
    "raises",
    "hands_a_number",
    "undeclared",
    "numbered",
    "blind",
    "torn",
    "idle",
    "indebted",
    "wanders",
    "refuses",
    "refuses_badly",
    "needy",
    "nowhere",
    "unloadable",
    "leaves",
    "trips",
    "meddles",
    "listed",
    "quits",
    "hangs",
)
ENDINGS = {
    "polite": (Status.PASS, ""),
    "wrong": (Status.FAIL_ACCURACY, "out: largest error"),
    "raises": (Status.ERROR, "ValueError: I cannot do this (while backend 'raises' prepared it)"),
    "hands_a_number": (Status.ERROR, "backend 'hands_a_number': prepare() must return a Prepared"),
    "undeclared": (
        Status.ERROR,
        "backend 'undeclared' reports the metric 'swiftness', which is not declared",
    ),
    "numbered": (Status.ERROR, "backend 'numbered': `evidence` must be a dict with strings as keys"),
    "blind": (Status.PASS, ""),
    "torn": (Status.PASS, ""),
    "idle": (Status.ERROR, "backend 'idle' returned the module as it was built: the configuration did not"),
    "indebted": (
        Status.ERROR,
        "backend 'indebted' reports -4 count of 'cache_hits', which is never below 0",
    ),
    "wanders": (
        Status.ERROR,
        "backend 'wanders' changes the working directory, the number of threads for the whole process",
    ),
    "refuses": (Status.UNSUPPORTED, "no mlp on cpu"),
    "refuses_badly": (Status.ERROR, "backend 'refuses_badly' raised ValueError: I do not know"),
    "needy": (Status.SKIPPED, "backend 'needy' needs 'torchgauge_no_such_package', which is not installed"),
    "nowhere": (Status.ERROR, "(while backend 'nowhere' prepared it)"),
    "unloadable": (Status.ERROR, "plugin 'unloadable' of torchgauge.backends"),
    "leaves": (Status.CRASH, "exit status 3 and without a result, in phase compile, in backend 'leaves'"),
    "trips": (Status.ERROR, "ValueError: I tripped (in backend 'trips')"),
    "meddles": (
        Status.ERROR,
        "backend 'meddles' changes the working directory, the default dtype for the whole process",
    ),
    "listed": (Status.ERROR, "backend 'listed': implementation must be a string"),
    "quits": (Status.ERROR, "backend 'quits' raised SystemExit: 4"),
    "hangs": (Status.TIMEOUT, "phase compile took longer than 30 s, in backend 'hangs'"),
}
"""Status of each, and words of its reason."""

MODES = {
    "twice": (Status.PASS, ""),
    "boasts": (Status.ERROR, "scenario 'boasts' reports the metric 'swiftness', which is not declared"),
    "rambles": (Status.ERROR, "scenario 'rambles': run() returned list instead of measurements by series"),
    "gives_up": (Status.ERROR, "ValueError: I give up (in run() of scenario 'gives_up')"),
    "forgets": (Status.ERROR, "scenario 'forgets': run() gave no calls_per_s for a series"),
    "undone": (Status.ERROR, "torchgauge_strangers.undone"),
    "gone": (Status.ERROR, "plugin 'gone' of torchgauge.scenarios"),
    "sleeps": (Status.TIMEOUT, "phase measure took longer than 30 s, in scenario 'sleeps'"),
}
"""The same of scenarios."""


@pytest.fixture(scope="module")
def rows(make_sandbox) -> dict[str, Result]:
    """One run with all of them, each by the name of its configuration."""
    sandbox = make_sandbox()
    path = sandbox.environment["PYTHONPATH"]
    file = sandbox.store_path.with_name("strangers.yaml")
    options = {"polite": "\n    options: {word: hi}"}
    entries = [
        f"  - name: {name}\n    doc: x\n    backend: {name}{options.get(name, '')}\n" for name in NAMES
    ]
    file.write_text("configurations:\n" + "".join(entries), encoding="utf-8")
    done = sandbox.measure(
        *("toy", "--models", "mlp", "--device", "cpu", "--timeout", "30"),
        *("--config", ",".join(("eager", *NAMES)), "--config-file", str(file)),
        PYTHONPATH=f"{path}:{PLUGIN}",
    )
    assert "Traceback" not in done.stderr
    return {row.case.configuration.name: row for row in sandbox.rows()}


def test_every_case_has_its_row_and_eager_passes_beside_them(rows) -> None:
    """The run goes on, whatever a stranger does."""
    assert set(rows) == {"eager", *NAMES}
    assert rows["eager"].status is Status.PASS


@pytest.mark.parametrize("name", NAMES)
def test_a_stranger_ends_as_its_own_case(rows, name: str) -> None:
    """With the status of what it did, and its name in the reason."""
    status, words = ENDINGS[name]
    assert (rows[name].status, words in rows[name].reason) == (status, True), rows[name].reason


def test_what_cannot_be_looked_at_is_a_fact(rows) -> None:
    """A look that returns nothing says why nothing is known, and ends nobody."""
    assert "TypeError" in dict(rows["blind"].facts)["blind_look_unknown"]


def test_a_good_one_is_judged_and_timed_as_ours(rows) -> None:
    """Its measurement, its evidence and its look are in the row, with a speed-up over eager."""
    row = rows["polite"]
    found = {each.metric: each for each in row.measurements}
    assert found["cache_hits"].samples == (7.0,)
    assert found["latency"].samples
    assert found["speedup"].samples
    assert row.accuracy is not None
    assert row.accuracy.reference.startswith("eager and ")
    facts = dict(row.facts)
    assert (facts["polite_word"], facts["polite_look"]) == ("hi", "taken")
    assert "polite_look_unknown" not in facts


@pytest.fixture(scope="module")
def modes(make_sandbox) -> dict[str, Result]:
    """One run with all scenarios of the package and one of ours, each row by its mode."""
    sandbox = make_sandbox()
    done = sandbox.measure(
        *("toy", "--models", "mlp", "--device", "cpu", "--config", "eager", "--timeout", "30"),
        *("--mode", ",".join(("inference", *MODES))),
        PYTHONPATH=f"{sandbox.environment['PYTHONPATH']}:{PLUGIN}",
    )
    assert "Traceback" not in done.stderr
    return {row.case.workload.mode: row for row in sandbox.rows()}


def test_every_scenario_has_its_row_on_a_model_that_never_heard_of_it(modes) -> None:
    """What a scenario needs is a capability of the model: no suite lists these modes."""
    assert set(modes) == {"inference", *MODES}
    assert modes["inference"].status is Status.PASS


@pytest.mark.parametrize("mode", MODES)
def test_a_strange_scenario_ends_as_its_own_case(modes, mode: str) -> None:
    """With the status of what it did, and its name in the reason."""
    status, words = MODES[mode]
    assert (modes[mode].status, words in modes[mode].reason) == (status, True), modes[mode].reason


def test_a_scenario_that_measures_by_itself_is_judged_as_ours(modes) -> None:
    """Its numbers are in the row with their unit, and its results were compared."""
    row = modes["twice"]
    found = {each.metric: each for each in row.summaries}
    assert (found["calls_per_s"].n, found["calls_per_s"].unit) == (2, "1/s")
    assert "latency" not in found
    assert row.accuracy is not None
    assert dict(row.facts)["compared_elements"] > 0


def test_options_are_held_to_their_schema(tmp_path: Path, monkeypatch) -> None:
    """A name or a type that the dataclass has not is refused with file, line and what there is."""
    monkeypatch.syspath_prepend(str(PLUGIN))
    from torchgauge import registry
    from torchgauge.errors import DataFileError

    registry._installed.cache_clear()
    try:
        file = tmp_path / "mine.yaml"
        for options in ("{wrd: hi}", "{times: many}"):
            file.write_text(
                f"configurations:\n  - name: a\n    doc: x\n    backend: polite\n    options: {options}\n",
                encoding="utf-8",
            )
            with pytest.raises(DataFileError, match=r"mine.yaml:5.*backend polite: ") as caught:
                load_configurations(file)
            assert "its options: word, times" in caught.value.hint
    finally:
        registry._installed.cache_clear()
