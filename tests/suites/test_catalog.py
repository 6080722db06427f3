"""Suites from data files: entries, workloads, and mistakes with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.catalog import YamlSuite, load_suite_file, workload_for
from torchgauge.suites.huggingface.suite import HuggingFaceRecipe
from torchgauge.suites.suite import ModelEntry

GOOD = """\
suite: mine
models:
  - name: one
    tiers: [smoke, standard]
    batch: {inference: 4, training: 2}
    shape: {seq: 16, heads: 2}
    sizes: [small, full]
    accuracy_class: network
    packages: [torch]
    upstream: {batch: {inference: 64}, shape: {seq: 512}}
    live: true
    parameters: 1234
  - name: two
    tiers: [standard]
    batch: {inference: 1}
    framework: python
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_suite_reads_its_file_only_when_asked(tmp_path: Path) -> None:
    """Building a suite does no I/O; its digest follows the text of the file, not its line ends."""
    suite = YamlSuite(name="mine", doc="", data=tmp_path / "mine.yaml", builder="a:b")
    written(tmp_path, GOOD)
    assert [entry.name for entry in suite.models()] == ["one", "two"]
    other = tmp_path / "other.yaml"
    other.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert YamlSuite(name="mine", doc="", data=other, builder="a:b").digest == suite.digest
    other.write_text(GOOD.replace("inference: 1", "inference: 2"), encoding="utf-8")
    assert YamlSuite(name="mine", doc="", data=other, builder="a:b").digest != suite.digest


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "problem"),
    [
        ("    tiers: [standard]", "    tier: [standard]", 14, "models[1].tier", "did you mean tiers"),
        ("    framework: python", "    nonsense: 1", 16, "models[1].nonsense", "unknown field 'nonsense'"),
        ("{inference: 1}", "{inference: one}", 15, "models[1].batch.inference", "expected `int`, got `str`"),
        ("framework: python", "framework: jax", 16, "models[1].framework", "invalid enum value 'jax'"),
        ("    batch: {inference: 1}\n", "", 13, "models[1]", "the field 'batch' is missing"),
        ("name: two", "name: one", 13, "models[1].name", "'one' is declared on line 3 too"),
        ("suite: mine", "suite: yours", 1, "suite", "the file is for suite 'yours', not for 'mine'"),
    ],
)
def test_a_mistake_names_file_line_and_field(
    tmp_path: Path, *, old: str, new: str, line: int, field: str, problem: str
) -> None:
    """The message says which file, which line, which field and what is wrong with it."""
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(DataFileError) as caught:
        load_suite_file(path, suite="mine")
    assert caught.value.message.startswith(f"{path}:{line} at `{field}`: ")
    assert problem in caught.value.message


def test_recipes_are_as_strict_as_the_file(tmp_path: Path) -> None:
    """A suite's own recipe type checks the recipe, with the line of the mistake."""
    recipe = "    recipe: {model_class: A, config_class: B, inputs: masked_lm, smal: {layers: 2}}\n"
    path = written(tmp_path, GOOD.replace("    packages: [torch]\n", recipe))
    with pytest.raises(
        DataFileError, match=r"mine.yaml:9 at `models\[0\]\.recipe\.smal`.*did you mean small"
    ):
        load_suite_file(path, recipe_type=HuggingFaceRecipe)
    path = written(tmp_path, GOOD)
    with pytest.raises(DataFileError, match=r"mine.yaml:3 at .*the field 'recipe' is missing"):
        load_suite_file(path, recipe_type=HuggingFaceRecipe)


def test_size_decides_batch_and_shape(tmp_path: Path) -> None:
    """``full`` takes upstream's numbers where the file has them, ``small`` only where they are asked for."""
    one, _ = load_suite_file(written(tmp_path, GOOD))
    small = workload_for("mine", one, "inference")
    assert (small.batch, small.shape, small.size) == (4, (("heads", 2), ("seq", 16)), "small")
    full = workload_for("mine", one, "inference", size="full")
    assert (full.batch, full.shape) == (64, (("heads", 2), ("seq", 512)))
    assert workload_for("mine", one, "training", size="full").batch == 2
    mixed = workload_for("mine", one, "inference", batch_profile="pytorch")
    assert (mixed.batch, mixed.shape, mixed.size) == (64, (("heads", 2), ("seq", 16)), "small")
    assert workload_for("mine", one, "inference", size="full", batch_profile="small").batch == 4
    with pytest.raises(UnknownNameError, match="unknown batch profile 'large'"):
        workload_for("mine", one, "inference", batch_profile="large")
    assert workload_for("mine", one, "training", size="full", batch=8, dtype="bfloat16").batch == 8


def test_a_workload_that_a_model_does_not_offer_is_an_error(tmp_path: Path) -> None:
    """A mode, a size or a batch outside the entry says what there is."""
    _, two = load_suite_file(written(tmp_path, GOOD))
    with pytest.raises(UnknownNameError, match="unknown mode of mine/two 'training'"):
        workload_for("mine", two, "training")
    with pytest.raises(UnknownNameError, match="unknown size of mine/two 'full'"):
        workload_for("mine", two, "inference", size="full")
    with pytest.raises(UsageError, match="batch 0 of mine/two is less than 1"):
        workload_for("mine", two, "inference", batch=0)


def test_a_mode_that_no_file_lists_is_offered_by_what_it_needs() -> None:
    """A loss is where training is, a forward pass where inference is; what needs no torch is only called."""
    both, one = ModelEntry("m", (), {"inference": 8, "training": 4}), ModelEntry("m", (), {"inference": 8})
    plain = ModelEntry("m", (), {"inference": 8}, framework="python")
    assert [offered_as(each, "training") for each in (both, one, plain)] == ["training", None, None]
    listed = ModelEntry("m", (), {"backward": 2})
    assert [offered_as(each, "backward") for each in (listed, both)] == ["backward", None]
