"""Triage: what is one cluster, how large, since when, what changed, and which command shows it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs
from stored_runs import BEGIN, DAY, case, environment, result

from torchgauge.errors import UnknownNameError
from torchgauge.records import Cause, Failure, Modifier, Phase, Realised, Result, Status
from torchgauge.results.store import Store
from torchgauge.results.triage.findings import FAILING, Change, Triage, triage
from torchgauge.results.triage.reading import Wanted
from torchgauge.results.triage.text import as_plain, markdown_of, terminal_of

ALL = Wanted(statuses=FAILING)


def missing(op: str = "aten::gelu", frame: str = "torch.nn.functional.gelu:1", print_: str = "a") -> Failure:
    """The exception of an operator that a device lacks."""
    message = f"Could not run '{op}' with arguments from the 'npusim' backend."
    return Failure("NotImplementedError", message, frame, op, print_)


def failed(model: str, failure: Failure | None = None, device: str = "fake", **changes: Any) -> Result:
    """A case that ended in an error."""
    configuration = changes.pop("configuration", "eager")
    fields = {"status": Status.ERROR, "phase": Phase.EAGER, "failure": failure, "duration_s": 1.0}
    return result(case(model, configuration, device), None, **{**fields, **changes})


def stored(folder: Path, *nights: list[Result], devices: tuple[str, ...] = ("fake",)) -> str:
    """A store with a run on each of ``nights``, a day apart, called n0, n1 and so on."""
    from dataclasses import replace

    store = Store.open(folder / "store", create=True)
    for number, rows in enumerate(nights):
        at = BEGIN + number * DAY
        dated = [replace(row, started_at=at) for row in rows]
        stored_runs.run(store, f"n{number}", dated, [environment(name) for name in devices], at=at)
    return str(store.path)


def only(found: Triage) -> Any:
    """The one cluster."""
    assert len(found.clusters) == 1, [each.title for each in found.clusters]
    return found.clusters[0]


def test_one_operator_is_one_cluster_whatever_the_model_the_device_and_the_path(tmp_path: Path) -> None:
    """Frames, overloads, types and fingerprints differ, and the operator that is missing does not."""
    compiled = Failure("InductorError", "Could not run 'aten::gelu.out'", "torch._x", "aten::gelu.out", "c")
    path = stored(
        tmp_path,
        [
            failed("mlp", missing()),
            failed("transformer", missing(frame="torch.nn.x:2", print_="b"), "other"),
            failed("transformer", compiled, "other", configuration="inductor"),
            result(case("convnet")),
        ],
        devices=("fake", "other"),
    )
    found = only(triage([path], ALL))
    assert (found.kind, found.title, found.missing_op) == ("operator", "aten::gelu is missing", "aten::gelu")
    assert (found.places, len(found.cases), len(found.models), found.devices) == (2, 3, 2, ("fake", "other"))


def test_kernels_without_a_dtype_and_sparse_tensors_are_other_causes(tmp_path: Path) -> None:
    """What lacks one dtype is not what is missing altogether, and a sparse tensor is no model's."""
    half = Failure("RuntimeError", "\"baddbmm\" not implemented for 'Half'", "f:1", "baddbmm", "h")
    sparse = Failure(
        "NotImplementedError", "Could not run 'aten::mm' from the 'SparseCPU' backend", "f", "aten::mm", "s"
    )
    path = stored(tmp_path, [failed("a", half), failed("b", sparse), failed("c", missing("aten::mm"))])
    titles = {each.title for each in triage([path], ALL).clusters}
    assert "baddbmm is missing for Half" in titles
    assert "aten::mm is missing" in titles
    assert len(titles) == 3


def test_crashes_timeouts_memory_and_wrong_numbers_have_keys_of_their_own(tmp_path: Path) -> None:
    """By signal and phase, by phase, by whose memory, and by family: never by the model alone."""
    crash = {"status": Status.CRASH, "cause": Cause.SIGNAL, "phase": Phase.COMPILE}
    slow = {"status": Status.TIMEOUT, "phase": Phase.COMPILE}
    full = {"status": Status.OOM, "cause": Cause.DEVICE, "phase": Phase.EAGER}
    wrong = {"status": Status.FAIL_ACCURACY, "cause": Cause.TOLERANCE, "phase": Phase.ACCURACY}
    abort, fault = "signal 6 (SIGABRT)", "signal 11 (SIGSEGV)"
    path = stored(
        tmp_path,
        [
            failed("a", Failure("crash", abort, fingerprint="1"), exit=abort, **crash),
            failed("b", Failure("crash", abort, fingerprint="2"), exit=abort, **crash),
            failed("c", Failure("crash", fault, fingerprint="3"), exit=fault, **crash),
            failed("d", reason="limit of 3 s", **slow),
            failed("e", reason="limit of 9 s", **slow),
            failed("f", Failure("OutOfMemoryError", "tried 3 GiB", "x:1", "", "4"), **full),
            failed("g", Failure("OutOfMemoryError", "tried 3 GiB for y", "y:1", "", "5"), **full),
            failed("resnet18", **wrong),
            failed("resnet50", **wrong),
            failed("vit_base", **wrong),
        ],
    )
    found = {each.title: len(each.models) for each in triage([path], ALL).clusters}
    assert found == {
        "SIGABRT in the phase compile": 2,
        "SIGSEGV in the phase compile": 1,
        "compile timed out": 2,
        "memory ran out on the device in the phase eager": 2,
        "wrong numbers (tolerance) of toy/resnet*, eager": 2,
        "wrong numbers (tolerance) of toy/vit*, eager": 1,
    }


def test_the_largest_cluster_comes_first_and_the_smallest_case_shows_it(tmp_path: Path) -> None:
    """Pairs of model and device count; the example is steady, then soon over, then small."""
    small = Realised("00", 10, 0, "")
    path = stored(
        tmp_path,
        [
            failed("alone", missing("aten::topk"), duration_s=0.1),
            failed("big", missing(), duration_s=2.0),
            failed("small", missing(), duration_s=2.0, realised=small),
            failed("quick", missing(), duration_s=0.5, modifiers=(Modifier.FLAKY,)),
            failed("slow", missing(), duration_s=9.0),
        ],
    )
    first, second = triage([path], ALL).clusters
    assert (first.missing_op, second.missing_op) == ("aten::gelu", "aten::topk")
    assert first.example.case_id == "toy/small:inference:float32:b1:eager@fake"
    assert first.example.parameters == 10


def test_a_model_that_is_not_what_its_name_says_is_a_note(tmp_path: Path) -> None:
    """Its failures are clustered as ever, and the reader is told that they are another model's."""
    rows = [failed("real", missing()), failed("posing", missing(), modifiers=(Modifier.OTHER_MODEL,))]
    found = triage([stored(tmp_path, rows)], ALL)
    assert found.notes == ("other_model: 1 case in which the built model is not the named one",)
    assert "other_model" in terminal_of(found)


def test_only_a_harmless_command_is_shown(tmp_path: Path) -> None:
    """A person pastes it into a shell: anything but `torchgauge repro` in plain words is made anew."""
    kept = "torchgauge repro toy/a:inference:float32:b1:eager@fake --threads 1"
    path = stored(
        tmp_path,
        [
            failed("a", missing("aten::a"), reproduce=kept),
            failed("b", missing("aten::b"), reproduce="torchgauge repro x; rm -rf ~"),
            failed("c", missing("aten::c"), reproduce="torchgauge repro $(reboot)"),
            failed("d", missing("aten::d"), reproduce="curl http://x"),
            failed("e", missing("aten::e"), reproduce="torchgauge repro 'x"),
        ],
    )
    commands = {each.missing_op: each.example.command for each in triage([path], ALL).clusters}
    assert commands["aten::a"] == kept
    for name in "bcde":
        assert shlex.split(commands[f"aten::{name}"]) == [
            "torchgauge",
            "repro",
            f"toy/{name}:inference:float32:b1:eager@fake",
        ]


def test_what_appeared_grew_shrank_and_went_since_the_last_run(tmp_path: Path) -> None:
    """The baseline is how things stood before the newest run; a case that did not run keeps its row."""
    path = stored(
        tmp_path,
        [
            failed("a", missing("aten::old")),
            failed("b", missing("aten::grows")),
            failed("c", missing("aten::gone")),
            failed("d", missing("aten::shrinks")),
            failed("e", missing("aten::shrinks")),
            result(case("f")),
            result(case("g")),
        ],
        [
            failed("f", missing("aten::grows")),
            result(case("c")),
            result(case("e")),
            failed("g", missing("aten::new")),
        ],
    )
    found = triage([path], ALL)
    assert {each.missing_op: each.change for each in found.clusters} == {
        "aten::old": Change.SAME,
        "aten::grows": Change.GROWN,
        "aten::shrinks": Change.SHRUNK,
        "aten::new": Change.NEW,
    }
    by_operator = {each.missing_op: each for each in (*found.clusters, *found.gone)}
    assert by_operator["aten::grows"].arrived == ("toy/f:inference:float32:b1:eager@fake",)
    assert [each.missing_op for each in found.gone] == ["aten::gone"]
    assert by_operator["aten::gone"].left_as == (("pass", 1),)
    assert (by_operator["aten::old"].first_seen.run_id, by_operator["aten::old"].last_seen.run_id) == (
        "n0",
        "n0",
    )
    assert by_operator["aten::grows"].last_seen.run_id == "n1"
    assert found.since is not None
    assert found.since.run_id == "n0"


def test_the_baseline_can_be_a_run_or_a_time_and_what_comes_back_is_not_new(tmp_path: Path) -> None:
    """Since a run is after it; since a date is before it."""
    bad, good = [failed("a", missing())], [result(case("a"))]
    path = stored(tmp_path, bad, good, good, bad)
    assert only(triage([path], ALL)).change is Change.RETURNED
    assert only(triage([path], ALL, "n0")).change is Change.SAME
    assert only(triage([path], ALL, BEGIN + 2.5 * DAY)).change is Change.RETURNED
    assert only(triage([path], ALL, BEGIN - DAY)).change is Change.NEW
    assert only(triage([path], ALL, "n3")).change is Change.SAME
    with pytest.raises(UnknownNameError, match="n1"):
        triage([path], ALL, "n11")


def skipped(model: str, cause: Cause, reason: str = "why") -> Result:
    """A case that was not measured."""
    return failed(model, status=Status.SKIPPED, cause=cause, reason=reason, phase=Phase.BUILD)


def test_a_case_that_passed_and_is_skipped_now_is_a_cluster(tmp_path: Path) -> None:
    """It stays one until it passes again; others are counted by cause; a declared skip is not a failure."""
    lost = skipped("lost", Cause.MISSING_PACKAGE, "package 'x' is not installed")
    never, decided = skipped("never", Cause.NO_NETWORK), skipped("decided", Cause.DECLARED)
    first = [result(case("lost")), result(case("decided")), never]
    path = stored(tmp_path, first, [lost, never, decided], [lost])
    found = triage([path], ALL, "n0", unexpected=True)
    cluster = only(found)
    assert (cluster.title, cluster.lost, cluster.unexpected) == ("package 'x' is not installed", 1, 1)
    assert (cluster.change, cluster.first_seen.run_id, cluster.last_seen.run_id) == (Change.NEW, "n1", "n2")
    assert only(triage([path], ALL)).change is Change.SAME
    for text in (terminal_of(found), markdown_of(found).replace("`", "")):
        assert "1 case passed before and is skipped or unsupported now" in text
        assert "skipped: 1 declared, 1 missing_package, 1 no_network" in text
    plain = as_plain(found)
    assert plain["skipped"] == {"missing_package": 1, "no_network": 1, "declared": 1}
    assert plain["clusters"][0]["lost"] == 1
    again = triage([stored(tmp_path / "again", first, [lost], [result(case("lost"))])], ALL)
    assert [(each.title, each.change) for each in again.gone] == [(cluster.title, Change.GONE)]


def test_a_case_that_passed_and_is_unsupported_now_is_a_cluster(tmp_path: Path) -> None:
    """One that was never measured is not."""
    lost = failed("lost", status=Status.UNSUPPORTED, reason="it needs a GPU", phase=Phase.BUILD)
    never = failed("never", status=Status.UNSUPPORTED, reason="it needs a GPU", phase=Phase.BUILD)
    path = stored(tmp_path, [result(case("lost")), never], [lost, never])
    assert (only(triage([path], ALL)).lost, only(triage([path], ALL, unexpected=True)).lost) == (1, 1)


def test_infra_and_not_run_neither_fail_nor_pass(tmp_path: Path) -> None:
    """They take no case out of its cluster, and put none into one."""
    lost = {"status": Status.INFRA, "cause": Cause.NO_DEVICE, "phase": Phase.START}
    path = stored(
        tmp_path,
        [failed("a", missing()), result(case("b"))],
        [failed("a", **lost), failed("b", **lost), failed("c", **lost)],
    )
    found = triage([path], ALL)
    assert only(found).change is Change.SAME
    assert only(found).cases == ("toy/a:inference:float32:b1:eager@fake",)
    assert any("1 case ended only as infra" in note for note in found.notes)


def test_devices_suites_and_statuses_choose(tmp_path: Path) -> None:
    """A device that no row has is a mistake with suggestions; unsupported is clustered when asked for."""
    rows = [
        failed("a", missing()),
        failed("b", missing(), "other"),
        failed("c", status=Status.UNSUPPORTED, reason="no 64-bit floats"),
    ]
    path = stored(tmp_path, rows, devices=("fake", "other"))
    assert only(triage([path], Wanted(("other",), (), FAILING))).devices == ("other",)
    assert only(triage([path], Wanted((), (), (Status.UNSUPPORTED,)))).title == "no 64-bit floats"
    with pytest.raises(UnknownNameError, match="other"):
        triage([path], Wanted(("othr",), (), FAILING))
    with pytest.raises(UnknownNameError, match="toy"):
        triage([path], Wanted((), ("tyo",), FAILING))


def test_what_data_files_expect_is_marked_and_can_be_left_out(tmp_path: Path) -> None:
    """Reason, link and cause stand in the cluster; a cluster that is expected whole may be hidden."""
    known = case("repvgg_a2", "inductor", "cpu", mode="training")
    from dataclasses import replace

    known = replace(known, workload=replace(known.workload, suite="timm"))
    crash = result(
        known,
        None,
        status=Status.CRASH,
        cause=Cause.SIGNAL,
        phase=Phase.WARMUP,
        expected=Status.CRASH,
        exit="signal 6 (SIGABRT)",
    )
    path = stored(tmp_path, [crash, failed("a", missing(), "cpu")], devices=("cpu",))
    shown = triage([path], ALL)
    assert "crash (no cause recorded) is expected of 1 case" in terminal_of(shown)
    found = {each.kind: each for each in shown.clusters}
    assert found["crash"].unexpected == 0
    assert found["crash"].known[0].link.endswith("/181689")
    assert found["operator"].known == ()
    assert only(triage([path], ALL, unexpected=True)).kind == "operator"


def test_several_stores_count_a_run_once_and_name_a_damaged_one(tmp_path: Path) -> None:
    """A copy of a run adds nothing; a table that cannot be read is a gap and not the end."""
    one = stored(tmp_path / "1", [failed("a", missing())])
    two = stored(
        tmp_path / "2", [failed("a", missing())], [failed("b", missing(), "other")], devices=("fake", "other")
    )
    found = triage([one, two], ALL)
    assert only(found).places == 2
    assert any("counts once" in note for note in found.notes)
    Store.open(two).table_path("results", "n1").write_bytes(b"PAR1 nothing")
    found = triage([one, two], ALL)
    assert only(found).places == 1
    assert any("n1" in gap for gap in found.gaps)
