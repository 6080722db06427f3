"""Sweeps: axes become workloads, and every mistake is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.devices.fake import DEVICE
from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.harness.planning.plan import all_groups, named_workload
from torchgauge.harness.planning.selection import Selection, parse_case_id
from torchgauge.suites.catalog import YamlSuite, load_suite_file

SWEEP = """\
suite: mine
models:
  - name: attention
    tiers: [smoke]
    batch: {inference: 2, training: 1}
    shape: {heads: 8}
    axes:
      seq: [128, 512]
      mask: [none, causal]
    exclude:
      - {seq: 512, mask: none}
"""


def suite_of(folder: Path, text: str = SWEEP) -> YamlSuite:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return YamlSuite(name="mine", doc="", data=path, builder="a:b")


def case_ids(suite: YamlSuite, **chosen: tuple[str, ...]) -> list[str]:
    selection = Selection(("mine",), ("fake",), configurations=("eager",), **chosen)
    groups = all_groups(selection, {"fake": DEVICE}, {"mine": suite})
    return [planned.case.id for group in groups for planned in group.cases]


def test_each_point_of_the_product_is_a_workload(tmp_path: Path) -> None:
    """Axes are multiplied in the order of the file, less what is excluded."""
    assert case_ids(suite_of(tmp_path)) == [
        "mine/attention:inference:float32:b2:eager@fake[heads=8,mask=none,seq=128]",
        "mine/attention:inference:float32:b2:eager@fake[heads=8,mask=causal,seq=128]",
        "mine/attention:inference:float32:b2:eager@fake[heads=8,mask=causal,seq=512]",
    ]


def test_a_sweep_meets_modes_and_dtypes(tmp_path: Path) -> None:
    """Modes and dtypes are those of the selection, for every point."""
    found = case_ids(suite_of(tmp_path), modes=("inference", "training"), dtypes=("float32", "bfloat16"))
    assert len(found) == len(set(found)) == 3 * 2 * 2


def test_a_point_is_named_by_its_case_id(tmp_path: Path) -> None:
    """The id that a plan prints gives the same workload again; another size of an axis may be asked for."""
    suite = suite_of(tmp_path)
    for case_id in case_ids(suite):
        workload, _ = named_workload(parse_case_id(case_id), suite)
        assert f"mask={dict(workload.shape)['mask']},seq={dict(workload.shape)['seq']}" in case_id
    other = "mine/attention:inference:float32:b2:eager@fake[mask=causal,seq=999]"
    assert named_workload(parse_case_id(other), suite)[0].sizes == {"heads": 8, "seq": 999}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [("", "axis mask is not set"), ("[mask=none]", "axis seq is not set"),
     ("[mask=slidding,seq=128]", "mask of mine/att"),
     ("[mask=none,seq=long]", "seq=long of mine/attention is not a number")],
)  # fmt: skip
def test_a_point_that_is_none_is_refused(tmp_path: Path, fields: str, problem: str) -> None:
    """An axis that is left out and a word that is on no axis are usage errors."""
    name = parse_case_id(f"mine/attention:inference:float32:b2:eager@fake{fields}")
    with pytest.raises((UsageError, UnknownNameError), match=problem):
        named_workload(name, suite_of(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "field", "problem"),
    [
        ("seq: [128, 512]", "seq: []", "models[0].axes.seq", "without a value"),
        ("seq: [128, 512]", "seq: [128, 128]", "models[0].axes.seq[1]", "twice"),
        ("seq: [128, 512]", "heads: [1]", "models[0].axes.heads", "both an axis and a key of the shape"),
        ("seq: [128, 512]", "seq: [128, 0]", "models[0].axes.seq[1]", ">= 1"),
        ("[none, causal]", "[none, 'a,b=c']", "models[0].axes.mask[1]", "not a word"),
        ("{seq: 512, mask: none}", "{sec: 512}", "models[0].exclude[0].sec", "not an axis"),
        ("{seq: 512, mask: none}", "{}", "models[0].exclude[0]", "excludes everything"),
        (
            "      - {seq: 512, mask: none}",
            "      - {seq: 128}\n      - {seq: 512}",
            "models[0].exclude",
            "excludes all points",
        ),
    ],
)
def test_a_mistake_in_a_sweep_is_named(tmp_path: Path, old: str, new: str, field: str, problem: str) -> None:
    """File, line and field of what is wrong with axes and exclusions."""
    assert old in SWEEP
    with pytest.raises(DataFileError) as caught:
        load_suite_file(suite_of(tmp_path, SWEEP.replace(old, new)).data)
    assert field in str(caught.value)
    assert problem in str(caught.value)


def test_a_sweep_that_is_far_too_long_is_refused_at_once(tmp_path: Path) -> None:
    """It is counted before its values are held against each other: that took hours for a million."""
    text = SWEEP.replace("[128, 512]", str(list(range(1, 300_001))))
    with pytest.raises(DataFileError, match="600,000 points"):
        load_suite_file(suite_of(tmp_path, text).data)
