"""The query language of the matrices in a browser: what holds, and mistakes told with their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

VOCABULARY = {
    "devices": ["cpu", "npu", "npu.1", 'odd "name"'],
    "configurations": ["eager", "inductor"],
    "metrics": {"latency": "s", "speedup": "ratio", "peak_memory": "B"},
    "values": {"batch": ["4", "8", "16"], "mode": ["inference", "training"], "model": ["resnet18", "vit"]},
}


def _cell(device: str, configuration: str, status: str, **changes: Any) -> dict[str, Any]:
    cell = {"device": device, "configuration": configuration, "status": status}
    return {**cell, "marks": [], "numbers": {}, "history": status, **changes}


ROW = {
    "suite": "timm",
    "model": "resnet18",
    "mode": "training",
    "dtype": "bfloat16",
    "batch": "8",
    "text": "timm/resnet18 training · bfloat16 · b8",
    "cells": [
        _cell("cpu", "eager", "p", numbers={"latency": 0.012}, history="ppppp"),
        _cell("cpu", "inductor", "p", numbers={"speedup": 0.8}, marks=["degraded", "flaky"]),
        _cell("npu", "eager", "e", history="p.ipne"),
        _cell("npu", "inductor", ".", history="......"),
    ],
}

HOLDS = (
    "", "resnet", "RESNET18", "res*18", "timm*bfloat16",
    "timm/resnet", '"bfloat16 · b8"', "suite:timm", "model:resnet*", "model:*18",
    "mode:training dtype:bfloat16 batch:8", "npu:error", "npu:err", "status:error", "error",
    "npu/eager:error",
    "*/inductor:pass", "np*:error", "cpu:flaky", "flaky degraded", "-crash", "not(crash)", "or(crash error)",
    "and(cpu:pass npu:error)",
    "speedup<1", "cpu:speedup<0.9", "speedup<=80%", "latency>10ms", "latency<0.1s",
    "latency>=12ms", "count(pass)=2", "count(pass)>=2", "count:2(pass)", "count(device:cpu pass)>1",
    "count(fail)=1",
    "cell(device:cpu pass degraded)", "cell(config:inductor none)", "every(cpu:pass)", "-every(npu:pass)",
    "seq(pass error)", "npu:seq(pass error)", "seq(pass fail)", "seq(npu:pass npu:error)", "none", "npu:none",
    "npu:fail", "cpu:not(error)", 'suite:timm, -"resnet50"', "-cpu:fail npu:-pass",
    "crash OR error", "error or crash", "crash|error", "crash | oom || error", "crash OR error resnet",
    "cpu:crash OR (error resnet)", "OR(crash error)", "error AND resnet", "error && resnet",
    "error and resnet",
    "(crash OR error) resnet", "NOT crash", "!crash", "not crash", "-(crash oom)", "seq(pass error|crash)",
    "npu:oom,error", "status:oom,error", "config:inductor,eager", "or(npu:oom,error)",
    "mode:training,inference",
    "config:inductor", "config:eager error", "config:eager npu:error", "device:npu error", "npu error",
    "Npu/eager:error",
    "-config:inductor error", "-config:eager none", "or(config:eager device:cpu) error",
    "count(pass)=1 config:inductor",
    "cpu:oom|flaky", "npu:oom|error", "mode:inference|training", "status:oom|error", "npu:oom|cpu:pass",
    "npu/eager error", "-npu/eager pass", "or(npu:oom|error)", "npu/eager",
    "inductor speedup<1", "latency > 10 ms", "latency>10 ms error", "latency < 0.1",
)  # fmt: skip

FAILS = (
    "resnet50", "suite:tim", "model:vit", "npu:pass", "cpu:error", "npu/inductor:error", "-npu:error",
    "crash",
    "speedup>1", "npu:speedup<1", "latency>1s", "count(pass)>2", "count:1(pass)", "cell(device:npu pass)",
    "every(npu:pass)", "seq(error pass)", "cpu:seq(pass error)", "seq(pass pass error error)",
    "unexpected",
    "cpu:none", "peak_memory<1GiB", "not(resnet)", "and(error crash)", "npu:not(error)", "npu.1:error",
    "crash OR oom", "crash|oom", "crash OR error vit", "error AND crash", "(crash oom) OR vit", "!error",
    "NOT error",
    "cpu:oom,error", "npu:oom,crash", "status:oom,crash", "config:inductor error", "device:cpu error",
    "cpu:oom|error", "batch:4|16", "cpu/eager error", "npu/inductor",
    "cpu error", "-config:eager error", "latency > 1 s", '"npu"', '"or"', "-config:*", "new",
)  # fmt: skip

MISTAKES = (
    ("npu:", 4, "requires a status"),
    ("xyz:error", 0, "neither a field nor a device"),
    ("cpu/fast:error", 0, 'unknown configuration "fast"'),
    ("cpu:resnet", 4, "neither a status nor a mark"),
    ("resnet )", 7, "no opening bracket"),
    ("or(crash", 8, "closing bracket is missing"),
    ('"resnet', 0, "closing quotation mark"),
    ("maybe(error)", 0, 'unknown function "maybe"'),
    ("or()", 0, "between its brackets"),
    ("status:constructor", 7, "unknown status"),
    ("constructor>1", 0, 'unknown metric "constructor"'),
    ("speed<1", 0, "unknown metric"),
    ("latency>fast", 8, "compared with a number"),
    ("latency>1GiB", 8, "not a unit of latency"),
    ("seq(resnet)", 4, "seq() takes statuses"),
    ("count(error)>many", 0, "whole number"),
    ("suite:", 6, "requires a value"),
    (":error", 0, "is not allowed here"),
    ("crash OR", 6, "OR requires a term after it"),
    ("error | | crash", 6, "OR requires a term after it"),
    ("OR crash", 0, "OR requires a term before it"),
    ("or(crash |)", 9, "OR requires a term after it"),
    ("crash OR(error oom)", 6, "between two terms a space goes before the bracket"),
    ("oom,crash", 3, "a comma lists values after a colon"),
    ("npu:oom,cpu:pass", 8, "put a space between two terms"),
    ("npu:oom,resnet", 8, "neither a status nor a mark"),
    ("config:", 7, "requires a value, such as config:eager"),
    ("config:induktor", 7, 'unknown configuration "induktor"; available: eager, inductor'),
    ("error config:eager,fast", 19, 'unknown configuration "fast"'),
    ("device:gpu", 7, 'unknown device "gpu"'),
    ("mode:train", 5, "mode:*train* finds training"),
    ("model:resnet50", 6, 'unknown model "resnet50"; available: resnet18, vit'),
    ("model:resnet", 6, "model:*resnet* finds resnet18"),
    ("mode=training", 4, "a field takes a colon, such as mode:inference"),
    ("error ()", 6, "brackets are empty"),
    (",", 0, "requires terms around it"),
    (" , ,", 0, "requires terms around it"),
    ('error ""', 6, "quotation marks are empty"),
    ("--", 1, "requires a term directly after it"),
    ("error !! pass", 7, "requires a term directly after it"),
    ("error NOT", 6, "requires a term directly after it"),
    ("cpu:oom|resnet", 8, "neither a status nor a mark"),
    ("batch:8|9", 8, 'unknown batch "9"'),
    ("-" * 3000, 2000, "2000 characters"),
    ("not(" * 60 + "error" + ")" * 60, None, "nested too deep"),
)

_EVALUATE = """
async ([source, vocabulary, row, queries]) => {
  const { parse, rowHolds } = await import(source);
  return queries.map((text) => {
    try {
      return rowHolds(parse(text, vocabulary), row);
    } catch (error) {
      return [error.name, error.at, error.message];
    }
  });
}
"""


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page of the site, in which the module can be imported."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(f"{address}about.html")
    yield opened
    context.close()


def _answers(page: Any, queries: tuple[str, ...]) -> dict[str, Any]:
    found = page.evaluate(_EVALUATE, ["./static/query.js", VOCABULARY, ROW, list(queries)])
    return dict(zip(queries, found, strict=True))


def test_what_holds_of_a_row_is_found(page: Any) -> None:
    """Words, fields, cells, numbers, marks, counts and sequences."""
    assert [query for query, found in _answers(page, HOLDS).items() if found is not True] == []


def test_what_does_not_hold_is_not_found(page: Any) -> None:
    """A query that says too much leaves the row out, without a complaint."""
    assert [query for query, found in _answers(page, FAILS).items() if found is not False] == []


def test_a_mistake_is_told_in_words_with_its_place(page: Any) -> None:
    """Every message says what is wrong, and where it is counted from 0."""
    answers = _answers(page, tuple(query for query, _, _ in MISTAKES))
    for query, at, words in MISTAKES:
        name, place, message = answers[query]
        assert name == "QueryError", query
        assert words in message, (query, message)
        assert at is None or place == at, (query, place)


def test_the_cells_that_were_found_are_those_that_fulfil_all_of_it(page: Any) -> None:
    """What a reader asks for in cells is counted in cells; a query on rows alone counts none."""
    script = """async ([vocabulary, row, queries]) => {
      const { cellsFound, parse } = await import('./static/query.js');
      return queries.map((text) => cellsFound(parse(text, vocabulary), row).length);
    }"""
    wanted = {
        "error": 1, "pass": 2, "pass degraded": 1, "device:cpu": 2, "resnet": 0, "resnet pass": 2,
        "count(pass)>1": 0,
        "-error": 0, "pass -flaky": 1, "npu:none": 1, "crash|error|degraded": 2, "every(pass)": 0,
    }  # fmt: skip
    assert page.evaluate(script, [VOCABULARY, ROW, list(wanted)]) == list(wanted.values())


def test_a_pattern_costs_no_more_than_its_length(page: Any) -> None:
    """Many asterisks against a long name end at once: there is no backtracking."""
    script = "async () => { const { glob } = await import('./static/query.js');"
    assert page.evaluate(script + " return glob('*a'.repeat(400) + 'b')('a'.repeat(5000)); }") is False
    assert page.evaluate(script + " return glob('a*b*')('a--b--'); }") is True
    assert page.evaluate(script + " return glob('ab*ab')('ab'); }") is False


def test_a_query_says_what_it_needs(page: Any) -> None:
    """Numbers and histories are loaded only for queries that speak of them."""
    script = """async ([vocabulary, text]) => {
      const { needs, parse } = await import('./static/query.js');
      return needs(parse(text, vocabulary));
    }"""
    assert page.evaluate(script, [VOCABULARY, "resnet npu:error"]) == {"metrics": [], "history": False}
    found = page.evaluate(script, [VOCABULARY, "or(speedup<1 not(seq(pass error)))"])
    assert found == {"metrics": ["speedup"], "history": True}
