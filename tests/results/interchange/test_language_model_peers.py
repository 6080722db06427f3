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
UNCOMPILED = Context(dtype="bfloat16", device="cuda", configuration="eager")
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
Prompt Length: 6
Generated tokens: 200
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

POINT_TEXT = json.dumps(POINT)


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


def configured(**changed: int) -> dict[str, Any]:
    """A whole ``benchmark.json`` whose configuration has the ``changed`` sizes."""
    content = optimum()
    scenario = content["config"]["scenario"]
    shapes = {name: changed[name] for name in SHAPES if name in changed}
    words = {name: changed[name] for name in ("max_new_tokens",) if name in changed}
    scenario["input_shapes"] = {**SHAPES, **shapes}
    scenario["generate_kwargs"] = {**scenario["generate_kwargs"], **words}
    launched = {name: changed[name] for name in changed if name not in (*shapes, *words)}
    content["config"]["launcher"] = {"name": "torchrun", **launched}
    return content


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
    """A sample for each generation, under the name of the file; a rate is printed of one sequence of four."""
    row = imported(tmp_path, write(tmp_path, "llama-7b.log", LOG), GIVEN)
    assert row.case_id.startswith("gpt-fast/llama-7b:generate:bfloat16:b4:inductor@cuda")
    assert row.case.workload.sizes == {"prompt": 6, "output": 200}
    assert medians(row) == {
        "latency": pytest.approx(2.25),
        "throughput": pytest.approx(4 * 90.0),
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
    found = medians(imported(tmp_path, write(tmp_path, "relative.log", text), UNCOMPILED))
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
        ("benchmark.json", optimum(decode=report([0.0])), ("report.decode.latency", "not a positive number")),
        ("benchmark.json", {"report": {"load_model": report([1.0])}}, ("none of prefill", "report")),
        ("benchmark.json", '{"load_model": {', ("is not JSON", "cut off")),
        ("a.log", "Loading model ...\n", ("no line says", "came to its end")),
        ("a.log", LOG.replace("2.50 sec", "2.50 fortnights"), ("line 7", "fortnights")),
        ("a.log", LOG.replace("80.00 tokens/sec", ""), ("2: 2.50 sec", "98.5 tokens/sec")),
        ("a.log", LOG.replace("13.88", "nan"), ("line 14", "not a positive number")),
        ("a.log", LOG.replace("13.88 GB", "13.88 furlongs"), ("line 14", "furlongs")),
        ("agg.json", {**POINT, "median_ttft": 0}, ("point 1: median_ttft", "not a positive number")),
        ("agg.json", {**POINT, "conc": "many"}, ("point 1: conc", "not a whole number")),
        ("agg.json", [{**POINT, "tp": 10**400}], ("point 1: tp", "from 1 to 2147483647")),
        ("agg.json", [{**POINT, "conc": 10**30}], ("point 1: conc", "from 1 to 2147483647")),
        ("agg.json", [{**POINT, "conc": True}], ("point 1: conc", "from 1 to 2147483647")),
        ("agg.json", [{**POINT, "isl": -5}], ("point 1: isl", "from 1 to 2147483647")),
        ("agg.json", [{**POINT, "median_ttft": 10**400}], ("point 1: median_ttft", "can be kept")),
        ("agg.json", [{**POINT, "output_tput_per_gpu": 1e308}], ("output_tput_per_gpu", "can be kept")),
        ("agg.json", POINT_TEXT.replace("16", "1" * 5001), (":1", "larger than any number")),
        ("agg.json", POINT_TEXT.replace("900.0", "1e999"), (":1", "1e999 is larger than any number")),
        ("benchmark.json", "[" * 100_000, (":1", "nested too deeply")),
        (
            "benchmark.json",
            configured(batch_size=-2),
            ("input_shapes.batch_size", "-2 is not a whole number"),
        ),
        ("benchmark.json", configured(batch_size=True), ("input_shapes.batch_size", "True is not a whole")),
        ("benchmark.json", configured(sequence_length=10**400), ("sequence_length", "not a whole number")),
        ("benchmark.json", configured(max_new_tokens=-8), ("generate_kwargs.max_new_tokens", "-8 is no")),
        ("benchmark.json", configured(nproc_per_node=0), ("launcher.nproc_per_node", "0 is not a whole")),
        ("benchmark.json", {**optimum(), "config": ["x"]}, ("`config`", "is not an object")),
        ("benchmark.json", {**optimum(), "config": "x"}, ("`config`", "is not an object")),
        ("benchmark.json", optimum(prefill=report([5e-324])), ("report", "prefill_rate", "too large")),
        ("benchmark.json", optimum(prefill=report([5e-324], "ms")), ("prefill.latency", "not a positive")),
        ("a.log", LOG.replace("Batch Size: 4", "Batch Size: 0"), ("line 10", "0 is not a whole number")),
        ("a.log", LOG.replace("Batch Size: 4", "Batch Size: -4"), ("line 10", "-4 is not a whole number")),
        ("a.log", LOG.replace("Size: 4", "Size: " + "1" * 5000), ("line 10", "...", "not a whole number")),
        ("a.log", LOG.replace("13.88 GB", ""), ("line 14", "not a number with a unit")),
        ("a.log", LOG.replace("13.88 GB", "GB"), ("line 14", "not a number with a unit")),
        ("a.log", LOG.replace("13.88 GB", "1e305 GiB"), ("line 14", "not a positive number that can be")),
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


def test_what_was_launched_in_processes_is_another_configuration(tmp_path: Path) -> None:
    """Four processes of torchrun, on two machines, are not the one process of the same file without them."""
    path = write(tmp_path, "benchmark.json", configured(nproc_per_node=4, max_nodes=2))
    assert imported(tmp_path, path).case.configuration.name == "inductor-torchao-x8"
    path = write(tmp_path, "benchmark.json", configured(nproc_per_node=1, max_nodes=1))
    assert imported(tmp_path, path).case.configuration.name == "inductor-torchao"


@pytest.mark.parametrize(
    ("said", "configuration"),
    [
        ({"disagg": True}, "vllm-tp8-disagg"),
        ({"is_multinode": "true"}, "vllm-tp8-multinode"),
        ({"is_multinode": True, "tp": None}, "vllm-multinode"),
        ({"num_prefill_gpu": 4, "num_decode_gpu": 8}, "vllm-tp8-prefill4-decode8"),
    ],
)
def test_a_rate_of_one_device_of_several_pools_stays_one(
    tmp_path: Path, said: dict[str, Any], configuration: str
) -> None:
    """``tp`` is not how many devices there were: the rate is a fact, and throughput says why it is absent."""
    row = imported(tmp_path, write(tmp_path, "agg.json", [{**POINT, **said}]))
    assert row.case.configuration.name == configuration
    assert "throughput" not in medians(row)
    (missing,) = (each for each in row.summaries if each.metric == "throughput")
    assert "output_tput_per_gpu is of one device" in missing.absent
    assert dict(row.facts)["inferencex_output_tput_per_gpu"] == 100.0


def test_one_pool_on_one_machine_is_multiplied(tmp_path: Path) -> None:
    """What says that it is neither is the ordinary case."""
    path = write(tmp_path, "agg.json", [{**POINT, "disagg": False, "is_multinode": "false"}])
    assert medians(imported(tmp_path, path))["throughput"] == 800.0


def test_a_counter_of_another_device_is_no_memory(tmp_path: Path) -> None:
    """gpt-fast prints CUDA's counter wherever it ran: 0.00 is neither a mistake nor a number."""
    row = imported(tmp_path, write(tmp_path, "a.log", LOG.replace("13.88", "0.00")), GIVEN)
    assert "peak_memory" not in medians(row)
    (missing,) = (each for each in row.summaries if each.metric == "peak_memory")
    assert "the log's counter is CUDA's" in missing.absent


def test_a_log_that_was_not_compiled_does_not_say_so(tmp_path: Path) -> None:
    """Without a line of compilation nobody knows: the configuration is asked for, and taken."""
    path = write(tmp_path, "a.log", LOG.replace("Compilation time: 31.50 seconds\n", ""))
    with pytest.raises(DataFileError, match="does not say the configuration") as raised:
        read_files([path], None, GIVEN, KNOWN)
    assert "--config" in str(raised.value.hint)
    assert imported(tmp_path, path, UNCOMPILED).case.configuration.name == "eager"


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
