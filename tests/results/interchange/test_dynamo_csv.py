"""CSV files of PyTorch's dynamo runner: what is read, what is written, and what is refused."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import exchange_store as exchange
import pytest
from exchange_store import KNOWN

from torchgauge.errors import DataFileError, NothingSelectedError
from torchgauge.records import Cause, Phase, Status
from torchgauge.results.interchange.dynamo_csv import read_dynamo_csv
from torchgauge.results.interchange.dynamo_csv_export import write_dynamo_csv
from torchgauge.results.interchange.exported_run import read_run
from torchgauge.results.interchange.imported_run import UNKNOWN_BATCH, write_run
from torchgauge.results.interchange.upstream_names import Context, context_of_name
from torchgauge.results.interchange.upstream_statuses import KNOWN as WORDS
from torchgauge.results.store import Store

GIVEN = Context("timm", "inference", "float32", "", "inductor")
PERFORMANCE = (
    "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,eager_peak_mem,"
    "dynamo_peak_mem,calls_captured,unique_graphs,fallbacks_to_eager,graph_breaks,unique_graph_breaks,"
    "autograd_captures,autograd_compiles,cudagraph_skips"
)
ROW = "fake,ghost_100,2,1.852424,15.582580,14.113489,0.837926,5.989089,7.147520,321,1,0,0,0,0,0,1"
FAILED = "fake,mixer,0,0.0,0.0,0,0,0,0,0,0,0,0,0,0,0,0"
ACCURACY = (
    "dev,name,batch_size,accuracy,calls_captured,unique_graphs,fallbacks_to_eager,graph_breaks,"
    "unique_graph_breaks,autograd_captures,autograd_compiles,cudagraph_skips,compilation_latency"
)
EARLY = "fake,mixer,0,eager_fail_to_run,0,0,0,0,0,0,0,0,0"


def file(folder: Path, *lines: str, name: str = "results.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(*paths: Path, given: Context = GIVEN, **more):
    return {each.case.workload.model: each for each in read_dynamo_csv(paths, given, KNOWN, **more)}


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def samples(each) -> dict[str, float]:
    return {one.metric: one.samples[0] for one in each.measurements}


def test_a_performance_row_becomes_our_metrics_in_base_units(tmp_path) -> None:
    """Milliseconds and gigabytes become seconds and bytes, and counters without a metric become facts."""
    found = read(file(tmp_path, PERFORMANCE, ROW))["ghost_100"]
    assert found.ending.status is Status.PASS
    assert samples(found) == {
        "speedup": 1.852424,
        "latency": pytest.approx(0.01558258),
        "compile_cold": 14.113489,
        "peak_memory": pytest.approx(7.14752e9),
        "graph_count": 1.0,
        "graph_breaks": 0.0,
    }
    facts = dict(found.facts)
    assert (facts["dynamo_calls_captured"], facts["dynamo_eager_peak_mem"]) == (321, 5.989089)
    work = found.case.workload
    assert (work.suite, work.batch, work.mode, found.case.configuration.name) == (
        "timm",
        2,
        "inference",
        "inductor",
    )


def test_a_failure_has_no_number(tmp_path) -> None:
    """Zeros of a row that failed are nobody's latency and nobody's memory."""
    found = read(file(tmp_path, PERFORMANCE, FAILED))["mixer"]
    assert (found.ending.status, found.ending.phase, found.measurements) == (Status.ERROR, Phase.MEASURE, ())
    assert "speed-up of zero" in found.ending.reason
    assert found.case.workload.batch == UNKNOWN_BATCH


def test_zero_memory_was_not_measured(tmp_path) -> None:
    """Upstream starts from zero and leaves it there on devices whose memory it does not know."""
    row = ROW.replace("0.837926,5.989089,7.147520", "0.000000,0,0")
    found = read(file(tmp_path, PERFORMANCE, row))["ghost_100"]
    assert "peak_memory" not in samples(found)
    assert "dynamo_eager_peak_mem" not in dict(found.facts)


def test_memory_of_the_host_is_in_hundredths_of_gigabytes(tmp_path) -> None:
    """Upstream multiplies by a percentage there; 59.9 "gigabytes" of a small model are 599 megabytes."""
    row = ROW.replace("fake,", "cpu,").replace("5.989089", "59.890893").replace("7.147520", "71.475200")
    path = file(tmp_path, PERFORMANCE, row)
    assert samples(read(path)["ghost_100"])["peak_memory"] == pytest.approx(714.752e6)
    run_id = write_run(tmp_path / "store", list(read(path).values()), KNOWN, ["x"])
    written = write_dynamo_csv(read_run(Store.open(tmp_path / "store"), run_id), tmp_path / "csv")
    assert float(table(written.files[1])[0]["dynamo_peak_mem"]) == pytest.approx(71.4752)


@pytest.mark.parametrize(
    ("word", "status", "cause"),
    [
        ("pass", Status.PASS, None),
        ("fail_accuracy", Status.FAIL_ACCURACY, Cause.TOLERANCE),
        ("eager_two_runs_differ", Status.FAIL_ACCURACY, Cause.NONDETERMINISTIC_EAGER),
        ("OOM", Status.OOM, Cause.DEVICE),
        ("fail_to_run_at_batch_3", Status.ERROR, None),
        ("fail_batch_invariance_at_2", Status.FAIL_ACCURACY, Cause.TOLERANCE),
    ],
)
def test_every_word_of_an_accuracy_file_has_a_status(tmp_path, word, status, cause) -> None:
    """The word stays in a fact, and in the reason of whatever did not simply pass."""
    found = read(file(tmp_path, ACCURACY, EARLY.replace("eager_fail_to_run", word)))["mixer"]
    assert (found.ending.status, found.ending.cause) == (status, cause)
    assert dict(found.facts)["dynamo_status"] == word
    assert (found.ending.reason == "") == (word == "pass")


def test_performance_and_accuracy_of_a_case_make_one_case(tmp_path) -> None:
    """The verdict on accuracy wins, a placeholder of a batch takes the case's, and numbers are kept."""
    performance = file(tmp_path, PERFORMANCE, ROW, FAILED, name="p.csv")
    right = ACCURACY, "fake,ghost_100,2,pass,321,1,0,0,0,0,0,1,56.2", "fake,mixer,8,timeout,0,0,0,0,0,0,0,0,0"
    found = read(performance, file(tmp_path, *right, name="a.csv"))
    assert len(found) == 2
    assert samples(found["ghost_100"])["compile_cold"] == 14.113489
    mixer = found["mixer"]
    assert (mixer.ending.status, mixer.case.workload.batch) == (Status.TIMEOUT, 8)
    wrong = ACCURACY, "fake,ghost_100,2,fail_accuracy,0,0,0,0,0,0,0,0,0"
    ghost = read(performance, file(tmp_path, *wrong, name="b.csv"))["ghost_100"]
    assert (ghost.ending.status, samples(ghost)["speedup"]) == (Status.FAIL_ACCURACY, 1.852424)


def test_a_speedup_of_zero_is_a_failure_whatever_the_accuracy(tmp_path) -> None:
    """A model that is right and cannot be timed did not pass."""
    performance = file(tmp_path, PERFORMANCE, FAILED.replace("mixer,0", "mixer,8"), name="p.csv")
    accuracy = file(tmp_path, ACCURACY, "fake,mixer,8,pass,1,1,0,0,0,0,0,0,9", name="a.csv")
    found = read(performance, accuracy)["mixer"]
    assert (found.ending.status, found.ending.phase) == (Status.ERROR, Phase.MEASURE)


def test_older_and_tagged_columns_are_read(tmp_path) -> None:
    """``speedup_inductor`` names its backend, and rows that differ in their tag are different cases."""
    lines = "dev,name,batch_size,tag,speedup_inductor,abs_latency", "fake,a,2,x,1.5,3", "fake,a,2,y,1.6,3"
    given = Context("timm", "inference", "float32")
    found = read_dynamo_csv([file(tmp_path, *lines)], given, KNOWN)
    assert {each.case.configuration.name: each.measurements[0].metric for each in found} == {
        "inductor-x": "latency",
        "inductor-y": "latency",
    }


def test_an_expected_file_is_a_run_of_statuses(tmp_path) -> None:
    """It names no device and no batch, and a cell without a number of graph breaks is absent."""
    lines = "name,accuracy,graph_breaks", "a,pass,3", "b,fail_to_run,", "c,pass_due_to_skip,0"
    path = file(tmp_path, *lines, name="inductor_timm_inference.csv")
    found = read(path, given=Context(dtype="float32", device="fake", configuration="inductor"))
    assert samples(found["a"]) == {"graph_breaks": 3.0}
    assert (found["b"].ending.status, found["b"].measurements) == (Status.ERROR, ())
    assert found["a"].case.workload.suite == "timm"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "inductor_no_cudagraphs_timm_models_amp_training_cuda_performance.csv",
            Context("timm", "training", "amp", "cuda", "inductor"),
        ),
        (
            "inductor_with_cudagraphs_freezing_torchbench_bfloat16_inference_cpu_x86_accuracy.csv",
            Context("torchbench", "inference", "bfloat16", "cpu_x86", "inductor_with_cudagraphs_freezing"),
        ),
        ("results.csv", Context()),
    ],
)
def test_file_names_of_upstream_are_understood(name, expected) -> None:
    """Suite, mode, dtype, device and configuration come from the name where it has them."""
    assert context_of_name(name) == expected


GOOD = (PERFORMANCE, ROW)
BAD = {
    "missing column": ((PERFORMANCE.replace(",abs_latency", ""), ROW), 1, "abs_latency", "is missing"),
    "extra column": ((f"{PERFORMANCE},colour", f"{ROW},red"), 1, "colour", "must not have the column"),
    "duplicate row": ((*GOOD, ROW), 3, "name", "first on line 2"),
    "inf": ((PERFORMANCE, ROW.replace("1.852424", "inf")), 2, "speedup", "'inf' is not a finite number"),
    "empty": ((PERFORMANCE, ROW.replace("1.852424", "")), 2, "speedup", "the cell is empty"),
    "negative": ((PERFORMANCE, ROW.replace("15.582580", "-3")), 2, "abs_latency", "is negative"),
    "half a failure": ((PERFORMANCE, ROW.replace("15.582580", "0.0")), 2, "abs_latency", "without a latency"),
    "cut off": ((PERFORMANCE, ROW, "fake,b,2,1.8"), 3, "", "has 4 cells and the header 17"),
    "semicolons": ((PERFORMANCE.replace(",", ";"), ROW.replace(",", ";")), 1, "", "separated by semicolons"),
    "open quote": ((*GOOD, '"fake,b'), None, "", "is not a CSV"),
    "another table": (("dev,name,batch_size,max,mean,std", "fake,a,1,1,1,1"), 1, "", "neither a column"),
    "unknown word": ((ACCURACY, EARLY.replace("eager_fail_to_run", "pas")), 2, "accuracy", "you mean pass"),
    "hostile name": ((PERFORMANCE, ROW.replace("ghost_100", "a:b@c")), 2, "name", "cannot be the name"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(tmp_path, name) -> None:
    """The message names file, line, column and something to try."""
    lines, line, column, message = BAD[name]
    path = file(tmp_path, *lines)
    with pytest.raises(DataFileError, match=re.escape(message)) as caught:
        read(path)
    error = caught.value
    assert (error.file, error.field) == (str(path), column)
    assert line is None or error.line == line
    assert error.hint


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (f"{PERFORMANCE}\n{ROW}\n".encode("utf-16"), "is not UTF-8"),
        (f"{PERFORMANCE}\n".encode() + b"fake,caf\xe9,2\n", r"csv:2: byte \d+ is not UTF-8"),
    ],
)
def test_bytes_that_are_no_csv_are_refused(tmp_path, data, message) -> None:
    """An empty file, another encoding and zero bytes each end with one message."""
    path = tmp_path / "results.csv"
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=message):
        read(path)


def test_a_folder_and_a_missing_file_are_refused(tmp_path) -> None:
    """Neither is a traceback."""
    with pytest.raises(DataFileError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(DataFileError, match="cannot be read"):
        read(tmp_path / "nowhere.csv")


def test_what_the_file_does_not_say_must_be_said(tmp_path) -> None:
    """Without a suite there is no workload; the message names the option."""
    with pytest.raises(DataFileError, match="contains the suite") as caught:
        read(file(tmp_path, *GOOD), given=Context())
    assert "--suite" in caught.value.hint


def test_columns_can_be_passed_over(tmp_path) -> None:
    """Upstream may add columns faster than we learn them."""
    path = file(tmp_path, f"{PERFORMANCE},colour", f"{ROW},red")
    assert list(read(path, ignore=["colour"])) == ["ghost_100"]


def test_a_case_in_two_files_is_refused(tmp_path) -> None:
    """Nothing says which of the two numbers is meant."""
    first, second = (file(tmp_path, *GOOD, name=name) for name in ("1.csv", "2.csv"))
    with pytest.raises(DataFileError, match=r"is also in 1\.csv, line 2"):
        read(first, second)


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path) -> None:
    """Spreadsheets write one."""
    path = tmp_path / "results.csv"
    path.write_text(f"{PERFORMANCE}\n{ROW}\n", encoding="utf-8-sig")
    assert list(read(path)) == ["ghost_100"]


def test_a_round_trip_keeps_numbers_and_statuses(tmp_path) -> None:
    """Store to CSV to store: every case that has a row has its medians and its status again."""
    results = exchange.everything()
    store, run_id = exchange.write(tmp_path / "one", results)
    written = write_dynamo_csv(read_run(store, run_id), tmp_path / "csv")
    assert sorted(path.name for path in written.files) == [
        f"inductor_no_cudagraphs_{suite}_float32_inference_fake_{kind}.csv"
        for suite in ("huggingface", "timm_models")
        for kind in ("accuracy", "performance")
    ]
    cases = read_dynamo_csv(written.files, Context(), KNOWN)
    copy_id = write_run(tmp_path / "two", cases, KNOWN, ["torchgauge", "import"])
    before, after = exchange.rows(store, run_id), exchange.rows(Store.open(tmp_path / "two"), copy_id)
    compiled = {key for key in before if key[5] != "eager"}
    assert set(after) == {key for key in compiled if key[1] not in ("skipped", "not_run")}
    for key, row in after.items():
        model = key[1]
        expected = Status.ERROR if model == "crash" else before[key].status
        assert row.status is expected, model
        if model in exchange.ENDINGS:
            assert row.cause is before[key].cause, model
        numbers = exchange.medians(before[key])
        assert exchange.medians(row) == {
            name: pytest.approx(value, rel=1e-9) for name, value in numbers.items()
        }
    left = {name.split("/")[1].split(":")[0] for name, _ in written.left_out}
    assert left == {"resnet18", "vit", "skipped", "not_run"}


def test_a_second_round_trip_writes_the_same_files(tmp_path) -> None:
    """What was imported is exported as it came, its counters and words included."""
    name = "inductor_no_cudagraphs_timm_models_float32_inference_fake_{}.csv"
    performance = file(
        tmp_path, PERFORMANCE, ROW, FAILED.replace("mixer,0", "mixer,8"), name=name.format("performance")
    )
    lines = [
        f"fake,m{number},8,{word},0,0,0,0,0,0,0,0,0" for number, word in enumerate(WORDS) if word != "pass"
    ]
    ghost = "fake,ghost_100,2,pass,321,1,0,0,0,0,0,1,14.113489"
    accuracy = file(tmp_path, ACCURACY, ghost, *lines, name=name.format("accuracy"))
    run_id = write_run(
        tmp_path / "s", read_dynamo_csv([performance, accuracy], Context(), KNOWN), KNOWN, ["x"]
    )
    written = write_dynamo_csv(read_run(Store.open(tmp_path / "s"), run_id), tmp_path / "again")
    again = {path.name.rpartition("_")[2]: table(path) for path in written.files}
    first = next(csv.DictReader([PERFORMANCE, ROW]))
    second = next(row for row in again["performance.csv"] if row["name"] == "ghost_100")
    for column, cell in first.items():
        assert column in ("dev", "name") or float(second[column]) == pytest.approx(float(cell)), column
        assert column not in ("dev", "name") or second[column] == cell
    words = {row["name"]: row["accuracy"] for row in again["accuracy.csv"]}
    assert words.pop("mixer") == "fail_to_run"
    assert words == {"ghost_100": "pass", **{line.split(",")[1]: line.split(",")[3] for line in lines}}


def test_what_was_not_measured_is_an_empty_cell(tmp_path) -> None:
    """Upstream fills up with zeros, which a reader takes for a measurement; we do not."""
    found = exchange.passed(exchange.case("a"))
    measurements = tuple(each for each in found.measurements if each.metric in ("latency", "speedup"))
    bare = exchange.result(found.case, Status.PASS, Phase.DONE, measurements)
    store, run_id = exchange.write(
        tmp_path / "s", [bare, exchange.result(exchange.case("b"), Status.ERROR, Phase.COMPILE)]
    )
    written = write_dynamo_csv(read_run(store, run_id), tmp_path / "csv")
    rows = table(written.files[1])
    assert [row["name"] for row in rows] == ["a", "b"]
    assert rows[0]["dynamo_peak_mem"] == rows[0]["graph_breaks"] == rows[0]["calls_captured"] == ""
    assert (rows[1]["speedup"], rows[1]["abs_latency"], rows[1]["batch_size"]) == ("0.0", "0.0", "4")


def test_sizes_of_one_model_have_one_row(tmp_path) -> None:
    """The format has no word for a shape: the second one is left out and named, not written twice."""
    results = [exchange.passed(exchange.case("a", shape=(("seq", length),))) for length in (64, 128)]
    store, run_id = exchange.write(tmp_path / "s", results)
    written = write_dynamo_csv(read_run(store, run_id), tmp_path / "csv")
    assert [len(path.read_text().splitlines()) for path in written.files] == [2, 2]
    assert len(written.left_out) == 2


def test_a_run_of_eager_cases_has_nothing_to_export(tmp_path) -> None:
    """No file is written, and the reason is said."""
    store, run_id = exchange.write(tmp_path / "s", [exchange.passed(exchange.case("a", "eager"))])
    with pytest.raises(NothingSelectedError, match="no case of the run"):
        write_dynamo_csv(read_run(store, run_id), tmp_path / "csv")
    assert not (tmp_path / "csv").exists()
