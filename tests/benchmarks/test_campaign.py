"""The parts of the campaign benchmark that need no peer: schedule, reading, intervals, tables, resumption."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import campaign
import campaign_peer
import campaign_phases
import campaign_schedule
import campaign_table
import numpy as np
import pytest
import yaml
from campaign_table import ModelRecord

FLAT = [1.0] * 30
WIDE = [float(value) for value in range(1, 31)]


def settings(**changed: object) -> campaign_schedule.Settings:
    given = {"models": ("a", "b", "c", "d"), "variants": ("default",), "chunk": 2, "threads": 1}
    return campaign_schedule.Settings(torchbench="t", peer_python=sys.executable, **{**given, **changed})


def record(side: str, model: str, seconds: float, samples: list[float]) -> ModelRecord:
    return ModelRecord(side, model, seconds, {"eager": samples, "inductor": samples})


# --- the peer's files --------------------------------------------------------------------------


def test_the_last_row_of_a_peers_table_is_read(tmp_path: Path) -> None:
    """A table may hold an earlier failure and cells that were padded."""
    table = tmp_path / "t.csv"
    table.write_text("dev,name,batch_size,speedup\ncpu,m,0,0.0\ncpu,m,2,1.61,0\n")
    assert campaign_peer.read_row(table) == {"dev": "cpu", "name": "m", "batch_size": "2", "speedup": "1.61"}


def test_a_table_with_a_header_alone_has_no_row(tmp_path: Path) -> None:
    """Nothing was measured, and that is a problem, not a zero."""
    table = tmp_path / "t.csv"
    table.write_text("dev,name\n")
    with pytest.raises(ValueError, match="it wrote no row"):
        campaign_peer.read_row(table)


def test_a_peers_failure_is_no_result() -> None:
    """The peer writes zeros and statuses where it failed."""
    assert campaign_peer.compile_seconds({"accuracy": "pass", "compilation_latency": "2.5"}) == 2.5
    with pytest.raises(ValueError, match="accuracy is 'fail_accuracy'"):
        campaign_peer.compile_seconds({"accuracy": "fail_accuracy", "compilation_latency": "2.5"})
    campaign_peer.check_speed({"speedup": "1.5"})
    with pytest.raises(ValueError, match="performance has no speed-up"):
        campaign_peer.check_speed({"speedup": "0.0"})


def test_raw_timings_are_split_by_configuration(tmp_path: Path) -> None:
    """The first column of the peer's array is eager, the second the compiled side."""
    np.save(tmp_path / "m-performance-raw_timings-m-cpu.npy", np.array([[0.2, 0.1], [0.4, 0.3]]))
    assert campaign_peer.read_timings(tmp_path, "m") == {"eager": [0.2, 0.4], "inductor": [0.1, 0.3]}
    with pytest.raises(ValueError, match="no timings of other"):
        campaign_peer.read_timings(tmp_path, "other")


def test_the_working_copy_gets_the_settings_that_the_checkout_lacks(tmp_path: Path) -> None:
    """The checkout stays as it is, and an old working copy is replaced."""
    source = tmp_path / "checkout" / campaign_peer.VENDORED
    source.mkdir(parents=True)
    (source / "timm_models.py").write_text("pass")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "stale").touch()
    campaign_peer.prepare(tmp_path / "checkout", copy)
    assert not (copy / "stale").exists()
    assert (copy / "timm_models.py").read_text() == "pass"
    assert yaml.safe_load((copy / "timm_models.yaml").read_text())["skip"]["device"]["cpu"] == []
    assert not (source / "timm_models.yaml").exists()


def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    """A wrong path ends with what is wrong with it."""
    with pytest.raises(FileNotFoundError, match="is not a checkout of pytorch/benchmark"):
        campaign_peer.prepare(tmp_path, tmp_path / "copy")


# --- intervals and tables ----------------------------------------------------------------------


def test_the_width_is_that_of_the_order_statistic_interval() -> None:
    """Of 30 samples the 10th and the 21st enclose the median: (21 - 10) / 15.5."""
    assert campaign_table.relative_width(WIDE) == pytest.approx(11 / 15.5)
    assert campaign_table.relative_width([1.0]) is None


def test_an_interval_of_too_few_samples_never_wins() -> None:
    """Five equal samples look exact and are no interval of 95 %."""
    assert campaign_table.relative_width(FLAT[:5]) is None
    peer, ours = {"a": record("peer", "a", 1, WIDE)}, {"a": record("default", "a", 1, FLAT[:5])}
    assert campaign_table.precision(peer, ours) == campaign_table.Precision(0, 2, None)
    assert campaign_table.relative_width(FLAT[:6]) == 0.0


def test_precision_counts_every_model_and_configuration() -> None:
    """As wide counts as at least as narrow; a model of one side alone does not count."""
    peer = {"a": record("peer", "a", 1, WIDE), "b": record("peer", "b", 1, FLAT)}
    ours = {"a": record("default", "a", 1, FLAT), "b": record("default", "b", 1, WIDE)}
    found = campaign_table.precision(peer, {**ours, "c": ours["a"]})
    assert (found.narrower, found.pairs) == (2, 4)
    assert campaign_table.precision(peer, {"b": peer["b"]}).ratio == 1.0
    assert campaign_table.precision(peer, {"a": peer["b"]}).ratio == 0.0


def test_the_ratio_is_of_the_models_that_both_sides_have() -> None:
    """A campaign that was cut short compares like with like."""
    peer = {"a": record("peer", "a", 10, WIDE), "b": record("peer", "b", 40, WIDE)}
    ours = {"a": record("default", "a", 5, WIDE), "b": record("default", "b", 30, WIDE)}
    whole = campaign_table.totals(peer, ours)
    assert (whole["ratio"], whole["smallest"], whole["largest"]) == (0.7, 0.5, 0.75)
    assert whole["geomean"] == pytest.approx((0.5 * 0.75) ** 0.5)
    assert campaign_table.totals(peer, {"a": ours["a"]})["ratio"] == 0.5


@pytest.mark.parametrize(("seconds", "word"), [(7.0, "met"), (7.2, "missed")])
def test_the_table_says_whether_the_limit_was_met(seconds: float, word: str) -> None:
    """The limit itself is met."""
    text = campaign_table.render([record("peer", "a", 10, WIDE), record("default", "a", seconds, FLAT)])
    assert f"| 0.7: {word} |" in text
    assert "| 2 of 2 |" in text


def test_every_table_has_as_many_cells_in_each_row() -> None:
    """A model without a record of one side, and one with a problem, keep the table whole."""
    bad = ModelRecord("default", "a", 5.0, problem="eager is crash", parts={"measure": 5.0})
    records = [record("peer", "a", 10, WIDE), record("peer", "b", 10, WIDE), bad]
    text = campaign_table.render(records)
    for block in text.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in rows}) <= 1
    assert "- default, a: eager is crash" in text
    assert "| measure | 5.0 | 100% |" in text


# --- schedule and resumption -------------------------------------------------------------------


def test_the_sides_take_turns_in_an_order_that_is_reversed() -> None:
    """A machine that slows down slows both sides."""
    keys = [unit.key for unit in campaign_schedule.schedule(settings())]
    assert keys == ["peer: a", "peer: b", "default: a, b", "default: c, d", "peer: c", "peer: d"]


class Rehearsal(campaign.CampaignBenchmark):
    """A campaign whose units start no process."""

    ran: list[str]
    stop_at = ""

    def peer(self, unit: campaign_schedule.Unit) -> list[ModelRecord]:
        if unit.key == self.stop_at:
            (self.side("peer") / "half").touch()
            raise KeyboardInterrupt
        self.ran.append(unit.key)
        (self.side("peer") / f"whole-{unit.models[0]}").touch()
        return [ModelRecord(unit.side, model, 1.0) for model in unit.models]

    ours = peer


def test_a_campaign_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """What has a record is not repeated; what an interrupted unit left in the cache is gone."""
    first = Rehearsal(settings(), tmp_path)
    first.ran, first.stop_at = [], "peer: b"
    with pytest.raises(KeyboardInterrupt):
        first.run()
    for file in first.side("peer").glob("whole-*"):
        os.utime(file, (0, 0))
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"unit": "peer: b", "rec')
    second = Rehearsal(settings(), tmp_path)
    second.ran = []
    records = second.run()
    assert first.ran == ["peer: a"]
    assert second.ran == ["peer: b", "default: a, b", "default: c, d", "peer: c", "peer: d"]
    assert [(r.side, r.model) for r in records if r.side == "peer"] == [("peer", m) for m in "abcd"]
    assert {file.name for file in second.side("peer").glob("*") if file.is_file()} == {
        f"whole-{model}" for model in "abcd"
    }
    third = Rehearsal(settings(), tmp_path)
    third.ran = []
    assert third.run() == records
    assert third.ran == []
    assert len(third.loads()) == 6


def test_other_settings_are_not_mixed_into_a_work_folder(tmp_path: Path) -> None:
    """Numbers of one and of two threads do not belong in one table."""
    (tmp_path / "settings.json").write_text(json.dumps({"threads": 7}))
    benchmark = campaign.CampaignBenchmark(settings(), tmp_path)
    with pytest.raises(SystemExit, match="was begun with other settings"):
        benchmark.check()


def test_cpu_time_is_that_of_ended_processes_shared_by_wall_time() -> None:
    """A child that computes is counted; one that sleeps is not."""
    before = campaign.cpu_seconds()
    subprocess.run([sys.executable, "-c", "import time; time.sleep(2)"], check=True)
    slept = campaign.cpu_seconds()
    code = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert slept - before < 2
    assert campaign.cpu_seconds() - slept >= 0.5
    records = [record("default", "a", 1.0, FLAT), record("default", "b", 3.0, FLAT)]
    assert [r.cpu_s for r in campaign.share_cpu(records, 2.0)] == [0.5, 1.5]
    shared = {r.model: r for r in campaign.share_cpu(records, 2.0)}
    peer = {r.model: r for r in campaign.share_cpu(records, 8.0)}
    assert campaign_table.totals(peer, shared)["cpu_ratio"] == 0.25


def test_an_unknown_model_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that the suite does not have ends before anything runs."""
    with pytest.raises(SystemExit) as stop:
        campaign_schedule.settings_of(["--torchbench", ".", "--models", "mobilenetv2_100,nothing"])
    assert stop.value.code == 2
    assert "unknown: nothing" in capsys.readouterr().err


def test_the_twelve_models_are_of_the_suite_and_run_at_batch_two() -> None:
    """The peer is told torchgauge's batch; below two its own accuracy check is another one."""
    assert len(set(campaign_schedule.MODELS)) == 12
    assert {campaign_schedule.batches()[model] for model in campaign_schedule.MODELS} == {2}


# --- where the time went -----------------------------------------------------------------------


def put_worker(kept: Path, number: int, kind: str, model: str, phases: list[tuple[float, str]]) -> None:
    case = {"workload": {"model": model}, "configuration": {"name": "inductor"}}
    job = {"kind": kind, "group": {"cases": [{"case": case}]} if model else None}
    (kept / f"{number}.job").write_text(json.dumps(job))
    events = [{"ev": "phase", "t": t, "phase": phase, "case": None} for t, phase in phases]
    lines = [*events[:1], {"ev": "outcome", "t": 0.0}, *events[1:]]
    (kept / f"{number}.events").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_every_second_of_a_run_is_in_one_part(tmp_path: Path) -> None:
    """A fresh process compiles warm; what lies between processes is a part too."""
    put_worker(tmp_path, 1, "calibrate", "", [(103.0, "start"), (104.0, "measure"), (105.0, "done")])
    phases = [(105.5, "start"), (106.0, "build"), (107.0, "compile"), (117.0, "accuracy")]
    phases += [(120.0, "measure"), (126.0, "done")]
    put_worker(tmp_path, 2, "measure", "m", phases)
    phases = [(126.5, "start"), (127.0, "compile"), (128.0, "measure"), (129.0, "done")]
    put_worker(tmp_path, 10, "fresh", "m", phases)
    found = campaign_phases.breakdown(tmp_path, 100.0, 130.0)
    assert found == {
        "": {"start-up": 3.0, "calibration": 2.0, "end": 1.0},
        "m": {
            "between processes": 1.0,
            "build": 1.5,
            "compile cold": 10.0,
            "accuracy": 3.0,
            "compile warm": 1.0,
            "measure": 6.0,
            "fresh process, inductor": 1.5,
        },
    }
    unit = campaign_schedule.Unit("default", ("m", "n"))
    records = campaign.records_of(unit, 30.0, found, {"m": {"samples": {}, "compile_s": 10.0, "problem": ""}})
    assert sum(r.seconds for r in records) == pytest.approx(30.0)
    assert [r.seconds for r in records] == pytest.approx([27.0, 3.0])
    assert [r.problem for r in records] == ["", "no row"]


def test_a_real_run_is_taken_apart_and_read(tmp_path: Path) -> None:
    """The files of a worker are gone after the run, and what they said is known."""
    store, kept = tmp_path / "store", tmp_path / "kept"
    command = [sys.executable, "-m", "torchgauge.cli.main", "run", "toy", "--models", "toy/noop"]
    command += ["--device", "fake", "--config", "eager", "--measure-seconds", "0.5"]
    command += ["--store", str(store), "--json"]
    with campaign_phases.Tap(store, kept, tick_s=0.01):
        began = time.time()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        ended = time.time()
    run_id = json.loads(done.stdout)["run_id"]
    assert not (store / "runs" / run_id / "work").exists()
    parts = campaign_phases.breakdown(kept, began, ended)
    assert {"build", "warmup", "measure"} <= parts["noop"].keys()
    assert sum(sum(own.values()) for own in parts.values()) == pytest.approx(ended - began)
    found = campaign.read_store(store, run_id)["noop"]
    assert found["problem"] == ""
    assert len(found["samples"]["eager"]) >= 10
    assert found["compile_s"] is None
