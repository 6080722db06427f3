"""What an entry says of its own execution, and whose model it is: planned so, and refused with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge import registry
from torchgauge.cli.main import cli
from torchgauge.devices.cpu import DEVICE
from torchgauge.errors import DataFileError, UsageError
from torchgauge.harness.cold_sampling import cold_count
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.harness.planning.plan import all_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.campaigns import plan_of, planned_parts
from torchgauge.records import Cause, RunSettings, Status
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.check import CHECK
from torchgauge.suites.lending import as_lender_knows, lender
from torchgauge.suites.suite import Unavailable

OWN = """\
suite: mine
models:
  - name: compile.knobs-one
    tiers: [smoke]
    batch: {inference: 2, training: 1}
    modes: [training, inference]
    configurations: [eager, aot_eager]
    dtypes: [float32, bfloat16]
    cold: true
  - name: plain
    tiers: [smoke]
    batch: {inference: 1, training: 1}
"""
PLAIN = """\
  - name: plain
    tiers: [smoke]
    batch: {inference: 1}
"""
LENT = """\
suite: mine
models:
  - name: regional-lent
    tiers: [smoke]
    batch: {inference: 3}
    of: {model}
"""
WRONG = {
    "modes: [training]": ("mine.yaml:6", "no batch for 'training'", "add it to batch"),
    "modes: [inference, inference]": ("`models[0].modes[1]`", "'inference' is listed twice", "keep one"),
    "configurations: []": ("mine.yaml:6", "length >= 1", ""),
    "of: mine/other": ("mine.yaml:6", "is in the same suite", "another"),
    "of: features/attention.flex-masks": (
        "mine.yaml:6",
        "its axis is not set: 'mask'",
        "noop, causal",
    ),
    "of: features/attention.flex-masks\n    axes: {mask: [causl]}": (
        "mine.yaml:7",
        "no mask 'causl'",
        "causal",
    ),
    "of: toy/mlp\n    axes: {seq: [1, 2]}": ("mine.yaml:7", "toy/mlp has no size 'seq'", "processes"),
    "of: features/device.autoload-on": ("mine.yaml:6", "is a check", "use a model"),
    "framework: check\n    configurations: [eager]": (
        "mine.yaml:7",
        "a check must not have configurations",
        "remove",
    ),
    "of: toy/mlp\n    framework: python": ("mine.yaml:7", "toy/mlp already sets this field", "remove it"),
}
NOT_HERE = {
    "configurations: [eager, inductr]": ("mine.yaml:6", "unknown configuration 'inductr'", "inductor"),
    "of: timm/mobilenet": ("mine.yaml:6", "unknown model of timm 'mobilenet'", "mobilenetv2_100"),
    "of: vendor/mlp": ("mine.yaml:6", "unknown suite 'vendor'", "install the package of this suite"),
}


class Coded:
    """A suite of a package that lists its models in code."""

    name, doc, unavailable = "mine", "", None

    def __init__(self, entries) -> None:
        self.entries = tuple(entries)

    def models(self):
        return self.entries


def refusal_of(group) -> Status:
    (status,) = {planned.refusal.status for planned in group.cases}
    return status


def suite_of(folder: Path, text: str) -> YamlSuite:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return YamlSuite(name="mine", doc="", data=path, builder="a:b")


def groups_of(suite: YamlSuite, **chosen: tuple[str, ...]):
    selection = Selection((suite.name,), ("cpu",), **chosen)
    return all_groups(selection, {"cpu": DEVICE}, {suite.name: suite})


def case_ids(suite: YamlSuite, **chosen: tuple[str, ...]) -> list[str]:
    return [planned.case.id for group in groups_of(suite, **chosen) for planned in group.cases]


def test_an_entry_says_what_runs_where_nothing_is_named(tmp_path: Path) -> None:
    """Modes, dtypes and configurations are the entry's own; another entry has those of every model."""
    assert case_ids(suite_of(tmp_path, OWN)) == [
        *(
            f"mine/compile.knobs-one:{mode}:{dtype}:b{batch}:{configuration}@cpu"
            for mode, batch in (("training", 1), ("inference", 2))
            for dtype in ("float32", "bfloat16")
            for configuration in ("eager", "aot_eager")
        ),
        "mine/plain:inference:float32:b1:eager@cpu",
        "mine/plain:inference:float32:b1:inductor@cpu",
    ]


def test_what_is_named_wins(tmp_path: Path) -> None:
    """A mode, dtype or configuration that the user names replaces the entry's, and is not cut by it."""
    found = case_ids(
        suite_of(tmp_path, OWN), modes=("inference",), dtypes=("float16",), configurations=("inductor",)
    )
    assert found == [
        "mine/compile.knobs-one:inference:float16:b2:inductor@cpu",
        "mine/plain:inference:float16:b1:inductor@cpu",
    ]


@pytest.mark.parametrize(("wanted", "cold"), [("all", 5), ("none", 0), ("1/9999", 4)])
def test_a_cold_entry_compiles_cold_in_every_run(tmp_path: Path, wanted: str, cold: int) -> None:
    """Sampling leaves out the plain entry only; `none` leaves out both."""
    groups = groups_of(suite_of(tmp_path, OWN))
    plan = plan_of(groups, RunSettings(cold_compile=wanted), ())
    assert cold_count(plan) == (cold, 5)


@pytest.mark.parametrize(("line", "said"), WRONG.items())
def test_a_mistake_is_refused_with_its_line(tmp_path: Path, line: str, said: tuple[str, ...]) -> None:
    """Planning and `validate` refuse a word that nobody knows where it stands."""
    text = LENT.replace("of: {model}", line)
    suite = suite_of(tmp_path, text)
    with pytest.raises(DataFileError) as caught:
        groups_of(suite)
    where, problem, hint = said
    assert where in str(caught.value)
    assert problem in str(caught.value)
    assert hint in f"{caught.value} {caught.value.hint}"
    checked = CliRunner().invoke(cli, ["validate", str(suite.data)])
    assert checked.exit_code == 2, checked.output
    assert f"error: {caught.value}" in checked.output


@pytest.mark.parametrize(("line", "said"), NOT_HERE.items())
def test_what_is_not_here_is_skipped_and_costs_nobody_else(tmp_path: Path, line: str, said) -> None:
    """A package or a file may be missing on this machine: the model is skipped with its reason, others run.

    `validate`, which an author asks, refuses it.
    """
    suite = suite_of(tmp_path, LENT.replace("of: {model}", line) + PLAIN)
    refusals = {planned.case.id: planned.refusal for group in groups_of(suite) for planned in group.cases}
    other = [each for each in refusals if each.startswith("mine/plain:")]
    assert [refusals.pop(each) for each in other] == [None, None]
    assert refusals
    for refusal in refusals.values():
        assert refusal.status is Status.SKIPPED
        assert all(word in refusal.reason for word in said), refusal.reason
    checked = CliRunner().invoke(cli, ["validate", str(suite.data)])
    assert checked.exit_code == 2, checked.output
    assert said[1] in checked.output


def test_no_case_is_planned_twice(tmp_path: Path) -> None:
    """What a user or a package's code says twice is planned once; two models of one name are refused."""
    found = case_ids(
        suite_of(tmp_path, OWN),
        modes=("inference", "inference"),
        dtypes=("amp", "amp_bfloat16"),
        configurations=("eager", "eager"),
    )
    assert found == [
        "mine/compile.knobs-one:inference:amp_bfloat16:b2:eager@cpu",
        "mine/plain:inference:amp_bfloat16:b1:eager@cpu",
    ]
    (entry,) = suite_of(tmp_path, LENT.replace("of: {model}", "dtypes: [float32]")).models()
    twice = replace(entry, modes=entry.modes * 2, dtypes=entry.dtypes * 2, configurations=("eager", "eager"))
    assert case_ids(Coded([twice])) == ["mine/regional-lent:inference:float32:b3:eager@cpu"]
    check = replace(entry, framework=CHECK, batch={CHECK: 1}, dtypes=("float32", "float32"))
    assert case_ids(Coded([check])) == ["mine/regional-lent:check:float32:b1:eager@cpu"]
    with pytest.raises(UsageError, match=r"plans mine/regional-lent:\S+ twice"):
        groups_of(Coded([entry, entry]))


def test_a_suite_may_name_configurations_of_a_file(tmp_path: Path) -> None:
    """`--config-file` and `validate` with that file know what it declares; nobody else does."""
    file = tmp_path / "own.yaml"
    file.write_text(
        "configurations:\n  - name: mine-only\n    doc: of a vendor\n    backend: eager\n", encoding="utf-8"
    )
    suite = suite_of(tmp_path, LENT.replace("of: {model}", "configurations: [mine-only]"))
    selection = Selection(("mine",), ("cpu",), configuration_file=str(file))
    (group,) = all_groups(selection, {"cpu": DEVICE}, {"mine": suite})
    assert [each.case.configuration.name for each in group.cases] == ["mine-only"]
    assert CliRunner().invoke(cli, ["validate", str(suite.data), str(file)]).exit_code == 0
    assert [refusal_of(each) for each in groups_of(suite)] == [Status.SKIPPED]


def test_a_lent_model_brings_what_its_suite_says(tmp_path: Path) -> None:
    """Packages, recipe and parameters are the lender's; name, batch and tiers are one's own."""
    timm = registry.load(registry.SUITES, "timm")
    theirs = next(each for each in timm.models() if each.name == "mobilenetv3_large_100")
    suite = suite_of(tmp_path, LENT.replace("{model}", "timm/mobilenetv3_large_100"))
    (entry,) = suite.models()
    assert (entry.packages, entry.parameters) == (theirs.packages, theirs.parameters)
    assert (entry.name, entry.batch) == ("regional-lent", {"inference": 3})
    (group,) = groups_of(suite, configurations=("eager",))
    assert lender(group.recipe) is timm
    workload, recipe = as_lender_knows(group.workload, group.recipe)
    assert (workload.suite, workload.model, workload.batch) == ("timm", "mobilenetv3_large_100", 3)
    assert (workload.seed, recipe) == (group.workload.seed, theirs.recipe)
    assert lender({}) is None
    assert as_lender_knows(workload, recipe) == (workload, recipe)


def test_exceptions_for_a_lent_model_hold_and_expectations_do_not(tmp_path: Path) -> None:
    """How far its numbers may lie apart is the model's; how a case ends is said of a case by its name."""
    suite = suite_of(tmp_path, LENT.replace("{model}", "huggingface/GPT2ForSequenceClassification"))
    (group,) = groups_of(suite, configurations=("eager",))
    assert group.cases[0].tolerance.absolute == 4e-3
    assert "upstream's value" in group.cases[0].tolerance.source
    crashes = {"configurations": ("inductor",), "modes": ("training",), "tier": "full"}
    timm = groups_of(registry.load(registry.SUITES, "timm"), models=("repvgg_a2",), **crashes)
    assert [each.expectation.status for each in timm[0].cases] == [Status.CRASH]
    text = LENT.replace("{model}", "timm/repvgg_a2").replace("{inference: 3}", "{training: 2}")
    (group,) = groups_of(suite_of(tmp_path, text), **crashes)
    assert group.cases[0].expectation is None


def test_a_run_is_resumed_with_the_data_of_its_lenders_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the suite that lends a model has changed, half a run is of another model than the rest."""
    features = registry.load(registry.SUITES, "features")
    groups = groups_of(features, models=("inductor.knobs-mobilenetv3",))
    plan = plan_of(groups, RunSettings(), [features])
    assert set(dict(plan.suite_digests)) == {"features", "timm", f"features/{groups[0].workload.model}"}
    assert set(planned_parts(plan, interpreter(None))[0]) == {"features"}
    timm = registry.load(registry.SUITES, "timm")
    monkeypatch.setitem(vars(timm), "digest", "0" * 16)
    with pytest.raises(UsageError, match="data of suite 'timm' differs from the plan of"):
        planned_parts(plan, interpreter(None))
    own = plan_of(groups_of(features, models=("compile.latency-stack2",)), RunSettings(), [features])
    assert set(planned_parts(own, interpreter(None))[0]) == {"features"}


def test_a_lender_that_is_not_here_is_skipped_as_there(tmp_path: Path, monkeypatch) -> None:
    """Where nothing of the lending suite can be built, its guest is skipped with what to type."""
    torchbench = registry.load(registry.SUITES, "torchbench")
    gone = Unavailable("no checkout is named", "fetch one")
    monkeypatch.setattr(type(torchbench), "unavailable", gone)
    model = torchbench.models()[0].name
    (group,) = groups_of(suite_of(tmp_path, LENT.replace("{model}", f"torchbench/{model}")))
    assert [(each.refusal.status, each.refusal.cause) for each in group.cases] == [
        (Status.SKIPPED, Cause.MISSING_PACKAGE)
    ] * 2
    assert "fetch one" in group.cases[0].refusal.reason


def test_what_an_entry_asks_is_shown() -> None:
    """`suites show` says in what a model runs, in which dtypes, and whose it is."""
    lines = CliRunner().invoke(cli, ["suites", "show", "features"]).output.splitlines()
    (shown,) = [line for line in lines if line.startswith("inductor.knobs-mlp-low")]
    assert shown.endswith("; in eager, inductor, inductor-freezing; as bfloat16, float16; of toy/mlp")
    (plain,) = [
        line
        for line in CliRunner().invoke(cli, ["suites", "show", "toy"]).output.splitlines()
        if line.startswith("noop")
    ]
    assert ";" not in plain
