"""``--durations``, ``--shard`` and ``--budget`` as a person types them: what is said, and what is kept."""

from __future__ import annotations

import json

import pytest

from torchgauge.errors import UsageError
from torchgauge.results.store import Store

TOY = ("toy", "--models", "noop,sum", "--device", "fake", "--config", "eager")
NOOP, SUM = (f"toy/{name}:inference:float32:b1:eager@fake" for name in ("noop", "sum"))


@pytest.fixture
def durations(tmp_path):
    """A file that says that ``sum`` takes long."""
    path = tmp_path / "durations.json"
    path.write_text(json.dumps({"form": "torchgauge-durations", "seconds": {NOOP: 1.0, SUM: 90.0}}))
    return str(path)


@pytest.fixture
def planned(invoke, tmp_path):
    """The lines of ``torchgauge plan`` with more words."""

    def plan(*words: str) -> list[str]:
        done = invoke("plan", *TOY, "--store", str(tmp_path / "none"), *words)
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    return plan


def test_the_plan_says_its_order(planned, durations):
    """The longest comes first, and it is said of how many groups the duration is known."""
    lines = planned("--durations", durations)
    assert lines[:2] == [SUM, NOOP]
    assert f"order: the longest first, recorded durations of 2 of 2 groups (from {durations})" in lines
    assert "order: the longest first, recorded durations of 0 of 2 groups" in planned()


def test_shards_name_the_sharding_that_they_share(planned, durations):
    """Two shards of the same durations have one cut; without the file there is another."""
    one, two = (planned("--durations", durations, "--shard", f"{i}/2") for i in (1, 2))
    assert (one[0], two[0]) == (SUM, NOOP)
    (cut,) = {line.split()[4] for lines in (one, two) for line in lines if " of sharding " in line}
    assert len(cut.strip(":")) == 16


def test_a_budget_says_what_it_leaves(planned, durations):
    """The cheap case fits into a minute; the long one is named with the time that it would need."""
    lines = planned("--durations", durations, "--budget", "1m")
    assert lines[:2] == [NOOP, SUM]
    assert any("1 of 2 groups are expected to fit" in line for line in lines)
    assert "not expected to fit: 1 case in 1 group, about 1 min 30 s; next: toy/sum inference @fake" in lines
    assert "longer than the whole budget: toy/sum inference @fake" in lines


def test_a_budget_for_nothing_says_that_one_runs_in_any_case(planned, durations):
    """A millisecond is enough for no group; the run gets on, and the plan does not call that fitting."""
    lines = planned("--durations", durations, "--budget", "0.001")
    (line,) = (each for each in lines if each.startswith("budget"))
    assert "none of 2 groups is expected to fit; one always runs" in line


def test_durations_are_saved_for_every_shard(planned, durations, tmp_path):
    """What one store says is written once, and read as the same."""
    saved = tmp_path / "saved.json"
    planned("--durations", durations, "--save-durations", str(saved))
    assert json.loads(saved.read_text())["seconds"] == {NOOP: 1.0, SUM: 90.0}
    assert planned("--durations", str(saved))[:2] == [SUM, NOOP]


def test_durations_that_are_not_there_are_refused(invoke, tmp_path):
    """A usage error that says how to write such a file."""
    done = invoke("plan", *TOY, "--durations", str(tmp_path / "gone.json"))
    assert isinstance(done.exception, UsageError)
    assert "--save-durations" in done.exception.hint


def test_a_shard_of_another_sharding_is_noticed(invoke, durations, tmp_path):
    """A second shard in the same store that was not given the same durations says which run differs."""
    store = ("--store", str(tmp_path / "store"))
    quick = ("--no-calibration", "--no-memory-probe", "--measure-seconds", "0.05")
    first = invoke("run", *TOY, *quick, *store, "--shard", "1/2", "--durations", durations)
    assert first.exit_code == 0, first.output
    (run_id,) = Store.open(tmp_path / "store").run_ids()
    same = invoke("run", *TOY, *quick, *store, "--shard", "2/2", "--durations", durations)
    assert "sharded differently" not in same.output
    turned = tmp_path / "turned.json"
    turned.write_text(json.dumps({"form": "torchgauge-durations", "seconds": {NOOP: 90.0, SUM: 1.0}}))
    other = invoke("run", *TOY, *quick, *store, "--shard", "2/2", "--durations", str(turned))
    assert f"sharded differently from {run_id}" in other.output
