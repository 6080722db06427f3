"""What an entry says of its own execution, and whose model it is: planned so, and refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge import registry
from torchgauge.cli.main import cli
from torchgauge.devices.cpu import DEVICE
from torchgauge.errors import DataFileError, UnknownNameError
from torchgauge.harness.census.record import Wanted, _models
from torchgauge.harness.cold_sampling import cold_count
from torchgauge.harness.planning.plan import all_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.campaigns import plan_of
from torchgauge.records import Cause, RunSettings, Status
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.install_needs import needs_of
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
LENT = """\
suite: mine
models:
  - name: regional-lent
    tiers: [smoke]
    batch: {inference: 3}
    of: {model}
"""
WRONG = {
    "configurations: [eager, inductr]": ("mine.yaml:6", "no configuration is called 'inductr'", "inductor"),
    "dtypes: [float32, float33]": ("mine.yaml:6", "no dtype is called 'float33'", "float32"),
    "modes: [training]": ("mine.yaml:6", "no batch for 'training'", "add it to batch"),
    "of: timm/mobilenet": ("mine.yaml:6", "suite 'timm' has no model 'mobilenet'", "mobilenetv2_100"),
    "of: tim/resnet18": ("mine.yaml:6", "suite 'tim'", "timm"),
    "of: mine/other": ("mine.yaml:6", "is of this suite", "another"),
    "of: resnet18": ("mine.yaml:6", "", ""),
}


def suite_of(folder: Path, text: str) -> YamlSuite:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return YamlSuite(name="mine", doc="", data=path, builder="a:b")


def groups_of(suite: YamlSuite, **chosen: tuple[str, ...]):
    return all_groups(Selection(("mine",), ("cpu",), **chosen), {"cpu": DEVICE}, {"mine": suite})


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
    assert isinstance(checked.exception, DataFileError), checked.output
    assert str(checked.exception) == str(caught.value)


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
    with pytest.raises(DataFileError, match="mine-only"):
        groups_of(suite)


def test_a_suite_without_a_file_is_told_of_its_unknown_word(tmp_path: Path) -> None:
    """A suite that is no data file has no line to name."""

    class Listed:
        name, doc, unavailable = "mine", "", None

        def models(self):
            found = suite_of(tmp_path, LENT.replace("of: {model}", "configurations: [inductr]"))
            return found.models()

    with pytest.raises(UnknownNameError, match="inductr"):
        groups_of(Listed())


def test_a_lent_model_brings_what_its_suite_says(tmp_path: Path) -> None:
    """Packages, recipe and parameters are the lender's; name, batch and tiers are one's own."""
    timm = registry.load("torchgauge.suites", "timm")
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


def test_a_lender_that_is_not_here_is_skipped_as_there(tmp_path: Path, monkeypatch) -> None:
    """Where nothing of the lending suite can be built, its guest is skipped with what to type."""
    torchbench = registry.load("torchgauge.suites", "torchbench")
    gone = Unavailable("no checkout is named", "fetch one")
    monkeypatch.setattr(type(torchbench), "unavailable", gone)
    model = torchbench.models()[0].name
    (group,) = groups_of(suite_of(tmp_path, LENT.replace("{model}", f"torchbench/{model}")))
    assert [(each.refusal.status, each.refusal.cause) for each in group.cases] == [
        (Status.SKIPPED, Cause.MISSING_PACKAGE)
    ] * 2
    assert "fetch one" in group.cases[0].refusal.reason


def test_a_lent_model_needs_what_its_suite_installs(tmp_path: Path) -> None:
    """Requirements of a model are found below the one that lends it."""
    suite = suite_of(tmp_path, LENT.replace("{model}", "torchbench/BERT_pytorch"))
    assert {"tqdm", "numpy"} <= {need.name for need in needs_of("mine", suite.models())}


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


def test_a_census_asks_the_lender(tmp_path: Path) -> None:
    """What is recorded of a lent model is built as its suite builds it."""
    suite = suite_of(tmp_path, LENT.replace("{model}", "toy/mlp"))
    toy = registry.load("torchgauge.suites", "toy")
    items = [*_models("mine", suite, Wanted("cpu", suites=("mine",), modes=("inference",)))]
    assert items
    assert {item.builder for item in items} == {toy.builder}
    assert as_lender_knows(items[0].workload, items[0].recipe)[0].model == "mlp"
