"""From what a person types to cases and back: patterns, shards and case ids."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from torchgauge import registry
from torchgauge.devices.fake import DEVICE
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.plan import group_of_case, load_suites, select_groups
from torchgauge.harness.planning.selection import Selection, parse_case_id, suites_and_models

BUILT_IN = ("huggingface", "timm", "toy")
EVERYTHING = Selection(
    suites=BUILT_IN,
    devices=(DEVICE.name, f"{DEVICE.name}.1"),
    modes=("inference", "training"),
    configurations=tuple(bundled()),
    dtypes=("float32", "bfloat16"),
)


def groups(**changes):
    """The groups of the whole smoke tier, or of what ``changes`` make of it."""
    selection = replace(EVERYTHING, **changes)
    return select_groups(selection, {DEVICE.name: DEVICE}, load_suites(selection.suites))


def models(*patterns: str, **changes) -> set[str]:
    """Full names of the models that ``patterns`` select."""
    found = groups(models=patterns, **changes)
    return {f"{group.workload.suite}/{group.workload.model}" for group in found}


@pytest.mark.parametrize(
    ("suite", "size"),
    [(suite, size) for suite in BUILT_IN for size in ("small", "full") if (suite, size) != ("toy", "full")],
)
def test_a_case_id_names_its_case(suite, size) -> None:
    """Reading a case id back and building its group gives the very same case."""
    for group in groups(suites=(suite,), size=size):
        for planned in group.cases:
            rebuilt = group_of_case(
                parse_case_id(planned.case.id), DEVICE, registry.load("torchgauge.suites", suite)
            )
            same = [each for each in rebuilt.cases if each.case.id == planned.case.id]
            assert [each.case for each in same] == [planned.case]
            assert (rebuilt.id, rebuilt.recipe) == (group.id, group.recipe)
            assert same[0].tolerance == planned.tolerance


def test_fields_in_brackets_change_the_case() -> None:
    """Shape, seed and batch of a case id override those of the data file."""
    name = parse_case_id("toy/transformer:training:bfloat16:b3:aot_eager@fake.2[seed=7,seq=9]")
    (eager, compiled) = group_of_case(name, DEVICE, registry.load("torchgauge.suites", "toy")).cases
    workload = compiled.case.workload
    assert (workload.batch, workload.seed, dict(workload.shape)["seq"]) == (3, 7, 9)
    assert (eager.case.configuration.name, compiled.case.device.index) == ("eager", 2)
    assert compiled.case.id == "toy/transformer:training:bfloat16:b3:aot_eager@fake.2[seq=9,seed=7]"


@pytest.mark.parametrize(
    "text",
    ["", "toy/mlp", "toy/mlp:inference:float32:b0x:eager@fake", "toy/mlp:inference:float32:b1:eager", "a@b",
     "toy/mlp:inference:float32:b1:eager@fake[seed=long]", "toy/mlp:inference:float32:b1:eager@fake[seq=]"],
)  # fmt: skip
def test_what_is_no_case_id_is_refused(text) -> None:
    """A malformed id is a usage error that shows the form."""
    with pytest.raises(UsageError, match=r"case id|not a number"):
        parse_case_id(text)


def test_a_word_where_a_size_belongs_is_refused() -> None:
    """Words are values of an axis; a model without that axis takes numbers."""
    name = parse_case_id("toy/mlp:inference:float32:b1:eager@fake[seq=long]")
    with pytest.raises(UsageError, match="seq=long of toy/mlp is not a number"):
        group_of_case(name, DEVICE, registry.load("torchgauge.suites", "toy"))


def test_an_unknown_part_of_a_case_id_is_named() -> None:
    """Model, mode and configuration of an id must exist."""
    toy = registry.load("torchgauge.suites", "toy")
    for text in (
        "toy/mlpp:inference:float32:b1:eager@fake",
        "toy/mlp:inferense:float32:b1:eager@fake",
        "toy/mlp:inference:float32:b1:eagr@fake",
        "toy/mlp:inference:float32:b1:eager@fake[size=huge]",
    ):
        with pytest.raises(UnknownNameError):
            group_of_case(parse_case_id(text), DEVICE, toy)


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 1000])
def test_shards_are_disjoint_and_together_the_plan(shards) -> None:
    """Every group is in exactly one shard, none is empty, and they differ by at most the longest group."""
    forecast = Forecast()
    whole = groups()
    parts = [groups(shard=f"{i + 1}/{shards}") for i in range(min(shards, len(whole)))]
    assert sorted(group.id for part in parts for group in part) == sorted(group.id for group in whole)
    assert all(parts)
    lengths = [sum(map(forecast.of_group, part)) for part in parts]
    assert max(lengths) - min(lengths) <= max(map(forecast.of_group, whole))


def test_patterns_select_models() -> None:
    """Names, names with their suite, globs and regular expressions select; several are joined."""
    assert models("mlp") == {"toy/mlp"}
    assert models("toy/mlp", "rnn") == {"toy/mlp", "toy/rnn"}
    assert models("toy/*net", suites=("toy",)) == {"toy/convnet"}
    assert models("timm/resnet1?") == {"timm/resnet18"}
    assert models("/^toy/(mlp|rnn)$/") == {"toy/mlp", "toy/rnn"}
    everything = models("*")
    assert {name for name in everything if re.search("bert", name)} == models("/bert/")


def test_a_pattern_reaches_beyond_the_tier() -> None:
    """Naming models looks at all of them, whatever the tier."""
    assert models("timm/*", suites=("timm",)) > models(suites=("timm",))


def test_a_suite_beside_a_model_of_another_is_its_tier() -> None:
    """Neither word is dropped."""
    suites, patterns = suites_and_models(("toy", "timm/resnet18"))
    tier = models(suites=("toy",))
    assert len(tier) > 1
    assert models(*patterns, suites=suites) == {*tier, "timm/resnet18"}


def test_a_group_is_one_workload_on_one_device() -> None:
    """All configurations of a workload on a device are in one group, and groups have unique ids."""
    found = groups()
    for group in found:
        assert {(each.case.workload, each.case.device) for each in group.cases} == {
            (group.workload, group.device)
        }
        assert [each.case.configuration.name for each in group.cases] == list(bundled())
    assert len({group.id for group in found}) == len(found)


def test_what_cannot_run_is_known_before_anything_starts() -> None:
    """A device without torch refuses torch models, and a model without torch refuses a compiler."""
    for group in groups(suites=("toy",)):
        for each in group.cases:
            torchless = group.workload.model in ("noop", "sum")
            configuration = each.case.configuration
            runs = torchless and not (configuration.compiled or configuration.memory_format)
            assert (each.refusal is not None) is not runs
