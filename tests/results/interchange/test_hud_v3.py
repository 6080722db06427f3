"""Benchmark-results JSON for PyTorch's HUD: every sample goes out and comes back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import exchange_store as exchange
import pytest
from exchange_store import KNOWN

from torchgauge.errors import DataFileError
from torchgauge.records import Status
from torchgauge.results.interchange.exported_run import read_run
from torchgauge.results.interchange.hud_v3 import read_hud_v3
from torchgauge.results.interchange.hud_v3_export import write_hud_v3
from torchgauge.results.interchange.imported_run import write_run
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> tuple[Store, str, Path]:
    folder = tmp_path_factory.mktemp("hud")
    store, run_id = exchange.write(folder / "store", exchange.everything())
    path = folder / "results.json"
    write_hud_v3(read_run(store, run_id), path)
    return store, run_id, path


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_round_trip_keeps_every_sample_and_every_ending(exported, tmp_path) -> None:
    """Statuses, causes, reasons, workload hashes and all samples of all metrics are as they were."""
    store, run_id, path = exported
    copy_id = write_run(tmp_path / "two", read_hud_v3([path], Context(), KNOWN), KNOWN, ["x"])
    before, after = exchange.rows(store, run_id), exchange.rows(Store.open(tmp_path / "two"), copy_id)
    assert set(before) == set(after)
    for key, row in after.items():
        first = before[key]
        assert row.case.key == first.case.key
        assert (row.status, row.phase, row.cause, row.reason) == (
            first.status, first.phase, first.cause, first.reason,
        )  # fmt: skip
        told = {each.metric: each for each in first.measurements if each.samples}
        assert {each.metric for each in row.measurements} == set(told)
        for each in row.measurements:
            assert each.samples == pytest.approx(told[each.metric].samples, rel=1e-12)
            assert each.unit == told[each.metric].unit
        assert (row.realised and row.realised.hash) == (first.realised and first.realised.hash)


def test_compression_is_over_the_eager_of_the_same_memory_format(tmp_path) -> None:
    """Channels-last eager holds twice what eager holds: its compiled model saves memory over it."""
    scales = {"eager": 1.0, "eager-channels-last": 2.0, "inductor-channels-last": 1.6, "inductor": 0.5}
    cases = [exchange.passed(exchange.case("vit", name), scale) for name, scale in scales.items()]
    write_hud_v3(read_run(*exchange.write(tmp_path / "store", cases)), tmp_path / "hud.json")
    ratios = [
        each["metric"]["benchmark_values"]
        for each in records(tmp_path / "hud.json")
        if each["metric"]["name"] == "compression_ratio"
    ]
    assert sorted(ratios) == [[pytest.approx(1.25)], [pytest.approx(2.0)]]


def upstream(**changes) -> dict:
    """A record in the form of the dynamo runner."""
    record = {
        "benchmark": {
            "name": "TorchInductor", "mode": "inference", "dtype": "amp",
            "extra_info": {"device": "fake", "quantization": None, "batch_size": 2, "filter": ["."]},
        },
        "model": {"name": "ghost_100", "backend": "inductor", "origins": ["timm_models"]},
        "metric": {"name": "speedup", "benchmark_values": [1.5]},
    }  # fmt: skip
    return {**record, **changes}


def metric(name: str, *values: float) -> dict:
    return upstream(metric={"name": name, "benchmark_values": list(values)})


WORD = upstream(metric={"name": "accuracy", "extra_info": {"benchmark_values": ["fail_accuracy"]}})


@pytest.mark.parametrize("form", ["lines", "list", "one"])
def test_upstreams_own_records_are_read(tmp_path, form) -> None:
    """One object, a list and lines of JSON; milliseconds become seconds, and other metrics become facts."""
    found = [metric("speedup", 1.5), metric("abs_latency", 12.5, 12.7), metric("calls_captured", 7), WORD]
    text = {
        "lines": "\n".join(map(json.dumps, found)),
        "list": json.dumps(found, indent=1),
        "one": json.dumps(WORD),
    }
    path = tmp_path / "results.json"
    path.write_text(text[form])
    (case,) = read_hud_v3([path], Context(), KNOWN)
    assert case.ending.status is Status.FAIL_ACCURACY
    assert case.case.workload.dtype == "amp_float16"
    assert (case.case.workload.suite, case.case.workload.batch) == ("timm", 2)
    if form != "one":
        assert {each.metric: each.samples for each in case.measurements} == {
            "speedup": (1.5,), "latency": (pytest.approx(0.0125), pytest.approx(0.0127)),
        }  # fmt: skip
        assert dict(case.facts)["dynamo_calls_captured"] == 7.0


def test_a_speedup_of_zero_is_a_failure(tmp_path) -> None:
    """As in the CSV files, with no latency of zero beside it."""
    path = tmp_path / "results.json"
    path.write_text("\n".join(map(json.dumps, [metric("speedup", 0.0), metric("abs_latency", 0.0)])))
    (case,) = read_hud_v3([path], Context(), KNOWN)
    assert (case.ending.status, case.measurements) == (Status.ERROR, ())


def test_what_a_record_says_of_its_machine_is_kept(tmp_path) -> None:
    """Time, commit, runner and versions become the environment's identity."""
    more = {
        "timestamp": 1_750_000_000, "schema_version": "v3", "head_sha": "abc", "repo": "pytorch/pytorch",
        "runners": [{"name": "fake", "type": "Fake 1"}], "dependencies": {"pytorch": {"sha": "def"}},
    }  # fmt: skip
    path = tmp_path / "results.json"
    path.write_text(json.dumps(upstream(**more)))
    (case,) = read_hud_v3([path], Context(), KNOWN)
    identity = dict(case.source.environment("fake").identity)
    assert (identity["commit"], identity["runner_type"], identity["torch.version"]) == (
        "abc",
        "Fake 1",
        "def",
    )
    assert case.started_at == 1_750_000_000


def without(name: str) -> dict:
    return {key: value for key, value in upstream().items() if key != name}


def with_info(**info) -> dict:
    return upstream(benchmark={**upstream()["benchmark"], "extra_info": {"device": "fake", **info}})


NO_SUITE = {"name": "a", "backend": "inductor", "origins": [""]}
HOSTILE = {"name": "a@b", "backend": "i", "origins": ["x"]}
BAD = {
    "truncated": (json.dumps(upstream())[:-9], "is not JSON"),
    "another version": (json.dumps(upstream(schema_version="v4")), "'v4' is not supported"),
    "no metric": (json.dumps(without("metric")), "missing required field `metric`"),
    "nan": (json.dumps(metric("speedup", math.nan)), "NaN is not valid JSON"),
    "no value": (json.dumps(metric("speedup")), "speedup has no value"),
    "twice": (json.dumps([upstream(), upstream()]), "has speedup twice"),
    "no suite": (json.dumps(upstream(model=NO_SUITE)), "has no suite"),
    "hostile name": (json.dumps(upstream(model=HOSTILE)), "cannot be the name"),
    "changed workload": (
        json.dumps(with_info(workload_hash="0" * 16)),
        "workload_hash is 0000000000000000, but",
    ),
    "too large": (
        json.dumps(upstream(timestamp=0)).replace(": 0", ": 1e999"),
        "1e999 is too large for a 64-bit float",
    ),
    "too deep": ("[" * 100_000, "nested too deeply"),
    "bad shape": (json.dumps(with_info(shape="[1]")), "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(tmp_path, name) -> None:
    """The message names the file, the line and what to try."""
    text, message = BAD[name]
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_hud_v3([path], Context(), KNOWN)
    assert caught.value.line is not None
    assert caught.value.hint
    assert caught.value.file == str(path)
