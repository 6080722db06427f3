"""Results of other tools' language-model benchmarks become rows that say where they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from exchange_store import KNOWN, medians, rows

from torchgauge.errors import DataFileError, UsageError
from torchgauge.records import Modifier, Status
from torchgauge.records.metrics import number_counts
from torchgauge.results.interchange.formats import read_files
from torchgauge.results.interchange.imported_run import UNKNOWN_BATCH, write_run
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store

NOTHING = Context()
GIVEN = Context(dtype="bfloat16", device="cuda")
SHAPES = {"batch_size": 2, "sequence_length": 64}
LOG = """\
Using device=cuda
Loading model ...
Time to load model: 1.27 seconds
Compilation time: 31.50 seconds
Time for inference 1: 2.00 sec total, 100.00 tokens/sec
Bandwidth achieved: 1400.00 GB/s
Time for inference 2: 2.50 sec total, 80.00 tokens/sec
Bandwidth achieved: 1200.00 GB/s
==========
Batch Size: 4
Average tokens/sec: 90.00
Memory used: 13.88 GB
"""
POINT = {
    "hw": "h200",
    "tp": 8,
    "ep": 1,
    "dp_attention": "false",
    "conc": 16,
    "model": "acme/large",
    "framework": "vllm",
    "precision": "fp8",
    "isl": 1024,
    "osl": 128,
    "tput_per_gpu": 900.0,
    "output_tput_per_gpu": 100.0,
    "median_ttft": 0.25,
    "median_tpot": 0.02,
    "median_intvty": 50.0,
    "median_itl": 0.019,
    "p99_itl": 0.04,
    "median_e2el": 2.8,
}


def report(values: list[float], unit: str = "s", memory: Any = None, throughput: str = "tokens/s") -> Any:
    """A section of optimum-benchmark's report."""
    return {
        "latency": {"unit": unit, "values": values, "p50": values[0], "p90": values[0], "p99": values[-1]},
        "memory": memory,
        "throughput": {"unit": throughput, "value": 1.0},
    }


def optimum(**changed: Any) -> dict[str, Any]:
    """A whole ``benchmark.json``; ``changed`` are sections of its report."""
    memory = {"unit": "MB", "max_ram": 2000.0, "max_allocated": 1500.5}
    backend = {
        "_target_": "optimum_benchmark.backends.pytorch.backend.PyTorchBackend",
        "model": "acme/tiny",
        "device": "cuda",
        "torch_dtype": "bfloat16",
        "torch_compile": True,
        "quantization_scheme": "torchao",
    }
    sections = {
        "load_model": report([9.0]),
        "prefill": report([0.5, 0.4], memory=memory),
        "decode": report([6.3, 3.15], memory={**memory, "max_allocated": 1600.0}),
        "per_token": report([0.1, 0.2]),
        **changed,
    }
    scenario = {"input_shapes": SHAPES, "generate_kwargs": {"max_new_tokens": 64}}
    environment = {"gpu": ["Acme 1"], "transformers_version": "4.47.1"}
    config = {"backend": backend, "scenario": scenario, "environment": environment}
    return {"config": config, "report": sections}


def write(folder: Path, name: str, content: Any) -> Path:
    """A file of ``content``: text as it is, anything else as JSON."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def imported(folder: Path, path: Path, given: Context = NOTHING) -> Any:
    """The one row that ``path`` becomes in a store."""
    run_id = write_run(folder / "s", read_files([path], None, given, KNOWN), KNOWN, ["x"])
    (row,) = rows(Store.open(folder / "s"), run_id).values()
    return row


def test_optimum_benchmark_is_read_with_its_units(tmp_path: Path) -> None:
    """Seconds and megabytes; decode is divided by the tokens after the first, and the batch counts."""
    row = imported(tmp_path, write(tmp_path, "benchmark.json", optimum()))
    assert row.case_id.startswith("optimum-benchmark/acme/tiny:generate:bfloat16:b2:inductor-torchao@cuda")
    assert row.case.workload.sizes == {"prompt": 64, "output": 64}
    assert medians(row) == {
        "first_token_time": pytest.approx(0.45),
        "prefill_rate": pytest.approx((2 * 64 / 0.5 + 2 * 64 / 0.4) / 2),
        "output_token_time": pytest.approx((0.1 + 0.05) / 2),
        "decode_rate": pytest.approx((20.0 + 40.0) / 2),
        "latency": pytest.approx((6.8 + 3.55) / 2),
        "inter_token_p50": 0.1,
        "inter_token_p90": 0.1,
        "inter_token_p99": 0.2,
        "peak_memory": 1.6e9,
    }
    assert dict(row.facts)["optimum_max_ram_bytes"] == 2_000_000_000


def test_milliseconds_become_seconds(tmp_path: Path) -> None:
    """A unit that is known is converted, whatever it is."""
    sections = {"prefill": report([500.0], "ms"), "decode": report([6300.0], "ms"), "per_token": None}
    row = imported(tmp_path, write(tmp_path, "benchmark.json", optimum(**sections)))
    assert medians(row)["first_token_time"] == pytest.approx(0.5)
    assert medians(row)["output_token_time"] == pytest.approx(0.1)


def test_a_report_alone_says_less(tmp_path: Path) -> None:
    """No batch, no lengths and so no rate: nothing is guessed, and nothing missing is 0."""
    row = imported(tmp_path, write(tmp_path, "benchmark_report.json", optimum()["report"]), GIVEN)
    assert row.case.workload.batch == UNKNOWN_BATCH
    assert "output_token_time" not in medians(row)
    assert "decode_rate" not in medians(row)
    assert medians(row)["first_token_time"] == pytest.approx(0.45)


def test_a_log_of_gpt_fast_is_read_line_by_line(tmp_path: Path) -> None:
    """A sample for each generation, under the name of the file."""
    row = imported(tmp_path, write(tmp_path, "llama-7b.log", LOG), GIVEN)
    assert row.case_id.startswith("gpt-fast/llama-7b:generate:bfloat16:b4:eager@cuda")
    assert medians(row) == {
        "latency": pytest.approx(2.25),
        "throughput": pytest.approx(90.0),
        "decode_bandwidth": pytest.approx(1.3e12),
        "peak_memory": pytest.approx(13.88e9),
        "compile_cold": 31.5,
    }


def test_logs_of_its_relatives_are_read(tmp_path: Path) -> None:
    """One ends a line with a stop, others put prompt tokens before or no space before a unit."""
    text = (
        "Time for inference 1: 6 prompt tokens 2 tokens generated, 1.57 sec total, 1.28 tokens/sec.\n"
        "Memory used :13.54GB\n"
    )
    found = medians(imported(tmp_path, write(tmp_path, "relative.log", text), GIVEN))
    assert found == {"latency": 1.57, "throughput": 1.28, "peak_memory": pytest.approx(13.54e9)}


def test_points_of_inferencex_are_cases_of_their_own(tmp_path: Path) -> None:
    """A list of them; the rate of all devices together, times in seconds, the rest as facts."""
    path = write(tmp_path, "agg.json", [POINT, {**POINT, "conc": 32}])
    run_id = write_run(tmp_path / "s", read_files([path], None, Context(), KNOWN), KNOWN, ["x"])
    found = rows(Store.open(tmp_path / "s"), run_id)
    assert sorted(each.case.workload.batch for each in found.values()) == [16, 32]
    row = next(each for each in found.values() if each.case.workload.batch == 16)
    assert row.case_id.startswith("inferencex/acme/large:generate:fp8:b16:vllm-tp8@h200")
    assert medians(row) == {
        "first_token_time": 0.25,
        "output_token_time": 0.02,
        "inter_token_p50": 0.019,
        "inter_token_p99": 0.04,
        "latency": 2.8,
        "throughput": 800.0,
    }
    assert dict(row.facts)["inferencex_tput_per_gpu"] == 900.0


@pytest.mark.parametrize(
    ("name", "content"), [("benchmark.json", optimum()), ("a.log", LOG), ("agg.json", POINT)]
)
def test_what_is_imported_enters_no_mean(tmp_path: Path, name: str, content: Any) -> None:
    """Nobody knows whether it was right: it is marked so, with the file that it came from."""
    row = imported(tmp_path, write(tmp_path, name, content), GIVEN)
    assert (row.status, row.modifiers) == (Status.PASS, (Modifier.UNCHECKED,))
    assert name in str(dict(row.facts)["imported_from"])
    assert not number_counts("latency", row.status.value, row.modifiers)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("benchmark.json", optimum(prefill=report([0.5], "min")), ("report.prefill.latency", "'min'")),
        ("benchmark.json", optimum(decode=report([0.0])), ("report.decode.latency", "no positive number")),
        ("benchmark.json", {"report": {"load_model": report([1.0])}}, ("none of prefill", "report")),
        ("benchmark.json", '{"load_model": {', ("is no JSON", "cut off")),
        ("a.log", "Loading model ...\n", ("no line says", "came to its end")),
        ("a.log", LOG.replace("2.50 sec", "2.50 fortnights"), ("line 7", "fortnights")),
        ("a.log", LOG.replace("80.00 tokens/sec", ""), ("2: 2.50 sec", "98.5 tokens/sec")),
        ("a.log", LOG.replace("13.88", "nan"), ("line 12", "no positive number")),
        ("a.log", LOG.replace("13.88 GB", "13.88 furlongs"), ("line 12", "furlongs")),
        ("agg.json", {**POINT, "median_ttft": 0}, ("point 1: median_ttft", "no positive number")),
        ("agg.json", {**POINT, "conc": "many"}, ("point 1: conc", "no whole number")),
        ("agg.json", {"tput_per_gpu": 1.0, "mean_ttft_ms": 3.0}, ("does not say hw", "agg_*.json")),
    ],
)
def test_a_broken_file_says_what_and_where(
    tmp_path: Path, name: str, content: Any, words: tuple[str, ...]
) -> None:
    """Nothing is imported of it."""
    with pytest.raises(DataFileError) as raised:
        read_files([write(tmp_path, name, content)], None, GIVEN, KNOWN)
    said = raised.value.in_a_line
    assert all(word in said for word in (name, *words)), said


def test_what_nobody_says_is_asked_for(tmp_path: Path) -> None:
    """A log has neither dtype nor device."""
    with pytest.raises(DataFileError, match="does not say the dtype"):
        read_files([write(tmp_path, "a.log", LOG)], None, Context(device="cuda"), KNOWN)


def test_files_of_two_formats_are_not_guessed(tmp_path: Path) -> None:
    """The message names all formats."""
    paths = [write(tmp_path, "a.log", LOG), write(tmp_path, "agg.json", POINT)]
    with pytest.raises(UsageError) as raised:
        read_files(paths, None, GIVEN, KNOWN)
    assert "gpt-fast-log" in str(raised.value.hint)
