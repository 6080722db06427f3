"""Products in float8 are counted in what ran: a conversion that exchanges nothing says so."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from torchgauge.records import Modifier, Status

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao"),
]


def test_products_in_float8_ran_and_learn_as_bfloat16_does(sandbox: Any) -> None:
    """Three products of each layer: forward, for its input and for its weight."""
    file = sandbox.store_path.with_name("odd.yaml")
    file.write_text(
        "configurations:\n  - {name: unheard-of, doc: x, backend: float8, options: {config: columnwise}}\n",
        encoding="utf-8",
    )
    names = "eager,float8-tensorwise,float8-rowwise-with-gw-hp,unheard-of"
    words = ("--models", "float8-bytes2", "--device", "cpu", "--config", names, "--config-file", str(file))
    done = sandbox.measure("lowbit", *words)
    rows = {each.case.configuration.name: each for each in sandbox.rows()}
    assert rows.keys() == set(names.split(",")), done.stderr[-4000:]
    for name, products in (("float8-tensorwise", 39), ("float8-rowwise-with-gw-hp", 26)):
        row, facts = rows[name], dict(rows[name].facts)
        assert (row.status, row.reason) == (Status.PASS, "")
        assert Modifier.DEGRADED not in row.modifiers, facts
        assert (facts["linears"], facts["float8_linears"]) == (13, 13)
        assert facts["float8_products"] == products
        found = {each.metric: each.samples for each in row.measurements if each.samples}
        assert 0.0 < found["curve_distance"][0] < 0.05
    assert rows["unheard-of"].status is Status.UNSUPPORTED
    assert "offers no recipe 'columnwise'; the nearest is 'tensorwise'" in rows["unheard-of"].reason


def test_a_conversion_that_exchanges_nothing_is_degraded(sandbox: Any) -> None:
    """The only layer is ten wide, which no product in float8 takes: its numbers are eager's."""
    words = ("--models", "embedding", "--mode", "training", "--config", "eager,float8-tensorwise")
    sandbox.measure("toy", *words, "--device", "cpu")
    row = next(each for each in sandbox.rows() if each.case.configuration.name != "eager")
    assert row.status is Status.PASS, row.reason
    assert Modifier.DEGRADED in row.modifiers
    assert "none of 1 linear layers was replaced" in str(dict(row.facts)["degraded"])


def test_inference_has_no_products_for_training(sandbox: Any) -> None:
    """The plan says so."""
    words = ("--models", "mlp", "--mode", "inference", "--config", "float8-rowwise", "--device", "cpu")
    sandbox.measure("toy", *words)
    (row,) = sandbox.rows()
    assert row.status is Status.UNSUPPORTED
    assert "float8 requires training" in row.reason
