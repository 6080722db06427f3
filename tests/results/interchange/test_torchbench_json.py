"""TorchBench's userbenchmark metrics as a run."""

from __future__ import annotations

import json

import pytest
from exchange_store import KNOWN, medians, rows

from torchgauge.errors import DataFileError
from torchgauge.records import Status
from torchgauge.results.interchange.imported_run import UNKNOWN_BATCH, write_run
from torchgauge.results.interchange.torchbench_json import read_torchbench_json
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store

FLOAT = Context(dtype="float32")


def key(metric: str, model: str = "alexnet", bs: str = "8", args: str = "[]") -> str:
    return f"model={model}, test=eval, device=fake, bs={bs}, extra_args={args}, metric={metric}"


def read(folder, metrics, given: Context = FLOAT, text: str = ""):
    path = folder / "metrics-20260101000000.json"
    content = {"name": "test_bench", "environ": {"pytorch_version": "2.9.0"}, "metrics": metrics}
    path.write_text(text or json.dumps(content))
    return read_torchbench_json([path], given, KNOWN)


def test_metrics_become_ours_in_base_units(tmp_path) -> None:
    """Milliseconds and gigabytes become seconds and bytes; the device's memory is taken before the host's."""
    metrics = {
        key("latencies"): 12.5,
        key("cpu_peak_mem"): 2.0,
        key("gpu_peak_mem"): 1.5,
        key("model_flops"): 3.0,
    }
    run_id = write_run(tmp_path / "s", read(tmp_path, metrics), KNOWN, ["x"])
    (row,) = rows(Store.open(tmp_path / "s"), run_id).values()
    assert medians(row) == {"latency": pytest.approx(0.0125), "peak_memory": 1.5e9}
    facts = dict(row.facts)
    assert (facts["torchbench_cpu_peak_mem"], facts["torchbench_model_flops"]) == (2.0, 3.0)
    assert (row.case_id, row.status) == (
        "torchbench/alexnet:inference:float32:b8:eager@fake[size=full]",
        Status.PASS,
    )


def test_the_older_form_of_keys_is_read(tmp_path) -> None:
    """Every latency of a list is a sample; device and batch are not in the key."""
    metrics = {"a-b-eval_latency": 3.0, "a-b-eval_iter_latencies": [3.0, 4.0], "a-b-eval_cmem": 50.0}
    (case,) = read(tmp_path, metrics, Context(dtype="float32", device="fake"))
    assert (case.case.workload.model, case.case.workload.batch) == ("a-b", UNKNOWN_BATCH)
    assert {each.metric: each.samples for each in case.measurements} == {
        "latency": (0.003, 0.004), "peak_memory": (5e8,),
    }  # fmt: skip


def test_arguments_choose_configuration_and_dtype(tmp_path) -> None:
    """A compiler and a precision have fields of ours; other arguments make a configuration of their own."""
    args = "['--precision', 'bf16', '--torchdynamo', 'inductor']"
    (case,) = read(tmp_path, {key("latencies", bs="None", args=args): 1.0}, Context())
    assert (case.case.configuration.name, case.case.workload.dtype) == ("inductor", "bfloat16")
    (other,) = read(tmp_path, {key("latencies", args="['--channels-last']"): 1.0})
    assert other.case.configuration.name.startswith("eager-")
    assert dict(other.facts)["torchbench_extra_args"] == "--channels-last"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"latencies": "not_implemented", "cpu_peak_mem": "not_implemented"}, Status.UNSUPPORTED),
        ({"latencies": "CUDA error: out of cheese", "cpu_peak_mem": "failed"}, Status.ERROR),
        ({"latencies": 3.0, "gpu_peak_mem": "failed"}, Status.PASS),
        ({"accuracy": "eager_two_runs_differ"}, Status.FAIL_ACCURACY),
        ({"memleak": "True"}, Status.ERROR),
    ],
)
def test_words_become_statuses(tmp_path, words, status) -> None:
    """A value that is text says why there is no number; nothing becomes zero."""
    (case,) = read(tmp_path, {key(name): word for name, word in words.items()})
    assert case.ending.status is status
    numbers = [name for name, word in words.items() if isinstance(word, float)]
    assert len(case.measurements) == len(numbers)


@pytest.mark.parametrize(
    ("metrics", "text", "message"),
    [
        ({}, "", "has no metric"),
        ({"nonsense": 1.0}, "", "is not the key of a metric"),
        ({key("latencies", bs="f()"): 1.0}, "", "is not a Python literal"),
        ({key("latencies"): -1.0}, "", "is negative"),
        ({key("latencies"): 10**400}, "", "too large for a 64-bit float"),
        ({key("latencies"): {"a": 1}}, "", "is not a number, a list of numbers or a string"),
        ({key("latencies", model="a:b"): 1.0}, "", "cannot be the name"),
        ({}, '{"metrics": {"a": 1', "is not JSON"),
        ({}, '{"metrics": {"a": NaN}}', "NaN is not valid JSON"),
    ],
)
def test_bad_input_is_refused(tmp_path, metrics, text, message) -> None:
    """One message each, with something to try."""
    with pytest.raises(DataFileError, match=message) as caught:
        read(tmp_path, metrics, text=text)
    assert caught.value.hint


def test_a_dtype_must_be_said(tmp_path) -> None:
    """TorchBench's file does not say in which precision a model ran."""
    with pytest.raises(DataFileError, match="does not contain the dtype") as caught:
        read(tmp_path, {key("latencies"): 1.0}, Context())
    assert "--dtype" in caught.value.hint
