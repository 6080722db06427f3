"""Sets that lie about their own samples: refused with a word, or kept as we compute them from the samples."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import (
    Files,
    Line,
    Night,
    bytes_of,
    files_of,
    relined,
    replanned,
    rerowed,
    sealed,
    terms,
    with_run_id,
)
from stored_runs import TOLERANCE, case
from submitted_sets import STEADY, Edit, Row, failed, kept, measured, refused, said

from torchgauge.harness.planning.plan import BY_THE_CHECK
from torchgauge.records import (
    METRICS,
    Better,
    Environment,
    Expectation,
    Failure,
    Measurement,
    Metric,
    PlannedCase,
    Status,
    from_plain,
    to_plain,
)
from torchgauge.results.dataset import read_table
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import terms_of
from torchgauge.workflows.ingest.intake import import_sets
from torchgauge.workflows.ingest.refusal import Reason

WIDE = [1e-3 * (1 + 0.9 * (i * 7 % 10)) for i in range(20)]
DRIFT = [1e-3 * (1 + 0.0001 * i) for i in range(40)]


def summary(**changes: object) -> Edit:
    return lambda row: row["summaries"][0].update(changes)


def measurement(**changes: object) -> Edit:
    return lambda row: row["measurements"][0].update(changes)


def accuracy(**changes: object) -> Edit:
    return lambda row: row["accuracy"].update(changes)


def sample(place: int, value: float) -> Edit:
    return lambda row: row["measurements"][0]["samples"].__setitem__(place, value)


def too_many(row: Row) -> None:
    measured(row, latency=[1e-3] * 2001)


def contention_without_blocks(row: Row) -> None:
    measured(row, latency=STEADY, contention=[0.5] * 20)
    row["measurements"][1]["blocks"] = []


def bomb_of_cpus(row: Row) -> None:
    measured(row, latency=STEADY, contention=[0.5] * 20)
    row["facts"] = [["cpus", "0-999999999"], ["others_cores", 0.0], ["threads", 4]]


def attempts(statuses: list[str], **changes: object) -> Edit:
    """The row is the last of attempts that ended in ``statuses``."""

    def edit(row: Row) -> None:
        told = {"phase": "done", "cause": None, "reason": "", "device": "npusim", "log": ""}
        row["attempts"] = [
            {
                "number": number,
                "status": status,
                **told,
                "started_at": 0.0,
                "duration_s": 1.0,
                "again": "asked",
            }
            for number, status in enumerate(statuses, start=1)
        ]
        row["attempts"][-1]["again"] = None
        row["attempt"] = len(statuses)
        row.update(changes)

    return edit


def reversed_attempts(row: Row) -> None:
    attempts(["pass", "pass"])(row)
    row["attempts"].reverse()


LIES: dict[str, tuple[Reason, Edit]] = {
    # medians and counts
    "a faster median": (Reason.RECOMPUTED, summary(median=0.000999)),
    "a median that is no sample's": (Reason.RECOMPUTED, summary(median=0.0010001)),
    "a median of nothing": (Reason.RECOMPUTED, summary(median=None, low=None, high=None)),
    "a sample that moves the median": (Reason.RECOMPUTED, sample(4, 0.00101)),
    "faster samples under the old summary": (Reason.RECOMPUTED, measurement(samples=[1e-9] * 10)),
    "more samples than there are": (Reason.ROW, summary(n=11)),
    "a million samples": (Reason.ROW, summary(n=1_000_000)),
    "no samples counted": (Reason.ROW, summary(n=0)),
    "a direction turned round": (Reason.RECOMPUTED, summary(better="higher")),
    "a clock of another name": (Reason.RECOMPUTED, summary(provenance="device events")),
    "another reason to stop": (Reason.RECOMPUTED, summary(stopped="precision")),
    "numbers and a reason for none": (Reason.RECOMPUTED, summary(absent="no clock")),
    "a summary in another unit": (Reason.SCHEMA, summary(unit="1/s")),
    "a measurement in another unit": (Reason.SCHEMA, measurement(unit="ms")),
    "a summary of another metric": (Reason.ROW, summary(metric="latency_cpu")),
    "a summary twice": (Reason.ROW, lambda row: row["summaries"].append(row["summaries"][0])),
    "no summaries": (Reason.ROW, said(summaries=[])),
    "a measurement twice": (Reason.ROW, lambda row: row["measurements"].append(row["measurements"][0])),
    "samples and their absence": (Reason.ROW, measurement(absent="lost")),
    "neither samples nor a reason": (Reason.ROW, measurement(samples=[], blocks=[])),
    "a negative sample": (Reason.NUMBER, sample(0, -1e-3)),
    "a sample of a week and more": (Reason.NUMBER, sample(9, 1e6)),
    "more samples than a run takes": (Reason.TOO_LARGE, too_many),
    "blocks of fewer samples": (Reason.ROW, measurement(blocks=[1, 2])),
    "contention of no blocks": (Reason.ROW, contention_without_blocks),
    "CPUs that fill the memory": (Reason.ROW, bomb_of_cpus),
    # a pass that nothing shows
    "a pass without measurements": (Reason.UNFOUNDED, said(measurements=[], summaries=[])),
    "a pass without a latency": (Reason.UNFOUNDED, lambda row: measured(row, peak_memory=[1e6])),
    "a pass without accuracy": (Reason.UNFOUNDED, said(accuracy=None)),
    "a pass compared with nothing": (Reason.UNFOUNDED, accuracy(reference="")),
    "a pass compared with none": (Reason.UNFOUNDED, accuracy(reference="none")),
    "a pass compared with something": (Reason.UNFOUNDED, accuracy(reference="float64 somewhere")),
    "a pass compared with what did not work": (Reason.UNFOUNDED, accuracy(reference="eager alone: ")),
    "a pass of nothing that was built": (Reason.UNFOUNDED, said(realised=None)),
    "a pass that never got so far": (Reason.UNFOUNDED, said(phase="compile")),
    "a pass nowhere": (Reason.UNFOUNDED, said(environment_id="")),
    "unchecked without a reason": (Reason.UNFOUNDED, said(accuracy=None, modifiers=["unchecked"])),
    "a reason to be unchecked, hidden": (Reason.UNFOUNDED, said(facts=[["unchecked", "not asked"]])),
    "degraded without a reason": (Reason.UNFOUNDED, said(modifiers=["degraded"])),
    "a reason to be degraded, hidden": (Reason.UNFOUNDED, said(facts=[["degraded", "ran eager"]])),
    # accuracy
    "a smaller RMSE ratio": (Reason.RECOMPUTED, accuracy(rmse_ratio=0.5)),
    "an RMSE ratio left out": (Reason.RECOMPUTED, accuracy(rmse_ratio=None)),
    "an RMSE ratio of nothing": (Reason.RECOMPUTED, accuracy(rmse=None)),
    "a negative RMSE": (Reason.NUMBER, accuracy(rmse=-2e-7, rmse_ratio=-2.0)),
    "a negative error": (Reason.NUMBER, accuracy(max_abs_error=-1.0)),
    "a cosine of two": (Reason.NUMBER, accuracy(cosine=2.0)),
    # statuses and what explains them
    "wrong numbers without a cause": (Reason.UNFOUNDED, failed("fail_accuracy")),
    "no memory without a cause": (Reason.UNFOUNDED, failed("oom")),
    "a crash without a cause": (Reason.UNFOUNDED, failed("crash")),
    "a broken machine without a cause": (Reason.UNFOUNDED, failed("infra")),
    "never run without a cause": (Reason.UNFOUNDED, failed("not_run")),
    "skipped without a cause": (Reason.UNFOUNDED, failed("skipped")),
    "the cause of another status": (Reason.ROW, failed("crash", cause="budget")),
    # modifiers
    "superseded by its own word": (Reason.ROW, said(modifiers=["superseded"])),
    "stale by its own word": (Reason.ROW, said(modifiers=["stale"])),
    "flaky by its own word": (Reason.UNFOUNDED, said(modifiers=["flaky"])),
    "flaky and still a pass": (Reason.UNFOUNDED, attempts(["error", "pass"], modifiers=["flaky"])),
    "flaky, and hidden": (Reason.UNFOUNDED, attempts(["error", "pass"])),
    "an attempt number of nothing": (Reason.ROW, attempts(["pass", "pass"], attempt=3)),
    "a row that is none of its attempts": (Reason.ROW, attempts(["pass", "error"])),
    "attempts out of order": (Reason.ROW, reversed_attempts),
    "more attempts than anybody asks for": (Reason.TOO_LARGE, attempts(["pass"] * 101)),
    "a modifier twice": (Reason.ROW, said(modifiers=["expected", "expected"])),
    "a fact twice": (Reason.ROW, said(facts=[["threads", 1], ["threads", 2]])),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """What no torchgauge would have written of these samples has its word, and leaves nothing behind."""
    word, edit = LIES[name]
    assert refused(night, rerowed(good, edit), tmp_path)[0] is word


def hidden_scatter(row: Row) -> None:
    measured(row, latency=WIDE)


def hidden_drift(row: Row) -> None:
    measured(row, latency=DRIFT)


def hidden_neighbours(row: Row) -> None:
    measured(row, latency=STEADY, contention=[0.5] * 20)


def hidden_hypervisor(row: Row) -> None:
    measured(row, latency=STEADY)
    row["facts"] = [["stolen_share", 0.4]]


def stopped_clock(row: Row) -> None:
    measured(row, latency=[0.0] * 20)


def false_doubt(row: Row) -> None:
    measured(row, latency=STEADY)
    row["modifiers"], row["facts"] = ["unsteady"], [["unsteady", "trust me"]]


OURS: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "a narrower interval": (summary(low=0.0009999, high=0.0010001), ()),
    "a wider interval": (summary(low=0.0001, high=0.1), ()),
    "an interval of one point": (summary(low=0.001, high=0.001), ()),
    "no interval": (summary(low=None, high=None, method="too-few"), ()),
    "more confidence": (summary(confidence=0.999), ()),
    "less confidence": (summary(confidence=0.5), ()),
    "another method": (summary(method="bootstrap-percentile"), ()),
    "expected, where nothing is": (failed("error", expected="error", modifiers=["expected"]), ()),
    "a skip that nobody declared": (
        failed("skipped", cause="declared", expected="skipped", modifiers=["expected"]), ()
    ),
    "a pass that is expected to fail": (said(expected="fail_accuracy"), ()),
    "another model, by its own word": (said(modifiers=["other_model"], facts=[["other_model", "x"]]), ()),
    "scatter, hidden": (hidden_scatter, ("unsteady",)),
    "drift, hidden": (hidden_drift, ("unsteady",)),
    "busy neighbours, hidden": (hidden_neighbours, ("unsteady",)),
    "a hypervisor, hidden": (hidden_hypervisor, ("unsteady",)),
    "a clock that stood still": (stopped_clock, ("unsteady",)),
    "doubt where there is none": (false_doubt, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_a_lie_about_what_follows_gains_nothing(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """The store has the summaries and modifiers that the project's own functions make of the samples."""
    edit, modifiers = OURS[name]
    files = rerowed(good, edit)
    row = kept(night, files, tmp_path)
    samples = [Measurement(**{**each, "samples": tuple(each["samples"])}) for each in row["measurements"]]
    assert row["summaries"] == [to_plain(summarise(each, METRICS[each.metric])) for each in samples]
    assert (tuple(row["modifiers"]), row["expected"]) == (modifiers, None)
    assert [name for name, _ in row["facts"] if name in ("unsteady", "other_model")] == list(modifiers)
    store = Store.open(tmp_path / "store")
    told = json.loads((store.path / "runs" / night.run_id() / "provenance.json").read_text())
    assert told["recomputed"] == 1
    columns = ("case_id", "low", "high", "confidence")
    table = read_table(store, "summaries", [night.run_id()], columns).to_pylist()
    mine = [{k: each[k] for k in ("low", "high", "confidence")} for each in row["summaries"]]
    assert [{k: v for k, v in each.items() if k != "case_id"} for each in table][: len(mine)] == mine


@pytest.mark.parametrize(
    ("operator", "modifier"), [("aten::addmm", "other_cause"), ("aten::gelu", "expected")]
)
def test_the_cause_that_the_campaign_expects_is_the_one_that_counts(
    operator: str, modifier: str, night: Night, tmp_path: Path
) -> None:
    """A set's own expectation is ignored: the failure is compared with the campaign's expectation."""
    known = Expectation(Status.ERROR, "known to lack an operator", cause="aten::gelu is missing")
    pool = night.campaign.pools[0]
    shard = replace(pool.shards[0], expected=((night.cases[0].id, known),))
    mine = Night(tmp_path / "mine", pools=(replace(pool, shards=(shard, *pool.shards[1:])),))
    failure = to_plain(Failure("NotImplementedError", f"Could not run '{operator}'", "f:1", operator, "p"))
    edit = failed("error", failure=failure, expected="error", modifiers=["expected"])
    row = kept(mine, rerowed(files_of(mine.pack()), edit), tmp_path)
    assert (row["expected"], row["modifiers"]) == ("error", [modifier])
    facts = dict(row["facts"])
    assert facts.get("other_cause") == (
        "aten::addmm is missing (expected: aten::gelu is missing)" if modifier == "other_cause" else None
    )


def with_metric(name: str, unit: str = "1/s", **changes: object) -> Edit:
    """A metric of a package beside those of the row, as a run where the package is installed writes it."""

    def edit(row: Row) -> None:
        of = Metric("tokens_per_s", "1/s", Better.HIGHER, "tokens")
        found = Measurement("tokens_per_s", "1/s", tuple(STEADY), tuple(range(20)), "clock")
        own = {"metric": name, "unit": unit}
        row["measurements"].append({**to_plain(found), **own})
        row["summaries"].append({**to_plain(summarise(found, of)), **own, **changes})

    return edit


def test_a_metric_of_a_package_that_the_intake_lacks_is_kept_as_its_owners_word(
    night: Night, good: Files, tmp_path: Path
) -> None:
    """Nothing measured is lost: its median is ours, nobody knows its direction, and the row says so."""
    row = kept(night, rerowed(good, with_metric("tokens_per_s")), tmp_path)
    found = row["summaries"][-1]
    assert (found["metric"], found["better"], found["n"]) == ("tokens_per_s", "neither", 20)
    (said,) = [value for name, value in row["facts"] if name == "undeclared"]
    assert said.endswith("tokens_per_s: no package declares it under torchgauge.metrics")


def test_a_metric_that_only_the_intake_knows_gets_its_direction(
    night: Night, good: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that measured it noted that nobody declared it there."""
    declared = Metric("tokens_per_s", "1/s", Better.HIGHER, "tokens")
    known = {**METRICS, declared.name: declared}
    for module in ("row_check", "recomputed", "journal_check"):
        monkeypatch.setattr(f"torchgauge.workflows.ingest.{module}.metrics", lambda: known)
    edit = with_metric("tokens_per_s", better="neither")

    def noted(row: Row) -> None:
        edit(row)
        row["facts"] = sorted([*row["facts"], ["undeclared", "tokens_per_s"]])

    row = kept(night, rerowed(good, noted), tmp_path)
    assert row["summaries"][-1]["better"] == "higher"
    assert "undeclared" not in dict(row["facts"])


FOREIGN: dict[str, tuple[Reason, Edit]] = {
    "a name that is no word": (Reason.SCHEMA, with_metric("Tokens <b>")),
    "a name that is a path": (Reason.SCHEMA, with_metric("../tokens")),
    "no unit": (Reason.SCHEMA, with_metric("tokens_per_s", "")),
    "a unit that is a sentence": (Reason.SCHEMA, with_metric("tokens_per_s", "as you like")),
    "a week and more": (Reason.NUMBER, lambda row: (with_metric("wait", "s")(row),
                        row["measurements"][-1].update(samples=[1e6] * 20))),
    "a median of its own": (Reason.RECOMPUTED, with_metric("tokens_per_s", median=1.0046e-3)),
    "more than a store can draw": (
        Reason.TOO_LARGE, lambda row: [with_metric(f"m{i}")(row) for i in range(33)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_metric_that_no_table_can_hold_is_refused(
    name: str, night: Night, good: Files, tmp_path: Path
) -> None:
    """Its name becomes a key, its unit is shown, and its median is that of its samples."""
    word, edit = FOREIGN[name]
    assert refused(night, rerowed(good, edit), tmp_path)[0] is word


def test_a_flaky_row_that_shows_its_attempts_is_kept(night: Night, good: Files, tmp_path: Path) -> None:
    """It stands as the attempt that did not pass, and the table has them all."""

    def flaky(row: Row) -> None:
        failed("error")(row)
        attempts(["pass", "error"], modifiers=["flaky"])(row)

    row = kept(night, rerowed(good, flaky), tmp_path)
    assert [each["status"] for each in row["attempts"]] == ["pass", "error"]
    stored = read_table(Store.open(tmp_path / "store"), "results", [night.run_id()]).to_pylist()
    (told,) = [each for each in stored if each["modifiers"] == ["flaky"]]
    assert (told["status"], told["attempt"]) == ("error", 2)
    assert [each["status"] for each in json.loads(told["attempts"])] == ["pass", "error"]


def test_an_honest_set_is_kept_to_the_byte(night: Night, good: Files, tmp_path: Path) -> None:
    """Where rows say what follows from their samples, the journal of the store is the one that came."""
    kept(night, good, tmp_path)
    run = tmp_path / "store" / "runs" / night.run_id()
    assert (run / "journal.jsonl").read_bytes() == good["journal.jsonl"]
    assert json.loads((run / "provenance.json").read_text())["recomputed"] == 0


def test_a_set_that_was_put_right_is_the_same_the_second_time(
    night: Night, good: Files, tmp_path: Path
) -> None:
    """What the store has is compared with what we make of the set, so repeating an import adds nothing."""
    files = rerowed(good, summary(low=0.0009999))
    kept(night, files, tmp_path)
    store = Store.open(tmp_path / "store")
    before = bytes_of(store.path)
    taken, found = import_sets(store, [tmp_path / "set"], night.expected, clock=night.clock)
    assert (found, taken[0].new) == ([], False)
    assert bytes_of(store.path) == before


def tolerance(**changes: float) -> Edit:
    return lambda plan: plan["groups"][0]["cases"][0]["tolerance"].update(changes)


PLANS: dict[str, tuple[Reason, Edit]] = {
    "a wider tolerance": (Reason.TOLERANCE, tolerance(absolute=10.0, relative=10.0)),
    "a wider relative tolerance": (Reason.TOLERANCE, tolerance(relative=0.01)),
    "a larger multiplier": (Reason.TOLERANCE, tolerance(rmse_multiplier=1000.0)),
    "a narrower tolerance": (Reason.TOLERANCE, tolerance(absolute=1e-9)),
    "the tolerance of a check, which needs no accuracy": (
        Reason.TOLERANCE, tolerance(absolute=0.0, relative=0.0, rmse_multiplier=1.0)
    ),
    "another number of parameters": (
        Reason.TOLERANCE, lambda plan: plan["groups"][0]["cases"][0].update(parameters=72)
    ),
    "a group of nothing": (
        Reason.SCHEMA, lambda plan: plan["groups"].append({**plan["groups"][0], "cases": []})
    ),
    "recipes without end": (
        Reason.TOO_LARGE,
        lambda plan: [g.update(recipe={"a": ["b" * 1000] * 600}) for g in plan["groups"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_of_ones_own_is_refused(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """Tolerances and models are the campaign's, whatever plan comes along."""
    word, edit = PLANS[name]
    assert refused(night, replanned(good, edit), tmp_path)[0] is word


def test_a_shard_without_terms_leaves_nobody_free(tmp_path: Path) -> None:
    """A plan that says nothing of tolerances would let each job bring its own: no set of it is taken."""
    night = Night(tmp_path / "night")
    night.campaign = with_terms(night, "")
    files = replanned(files_of(night.pack(1)), tolerance(absolute=10.0, relative=10.0))
    assert refused(night, resealed(night, files), tmp_path)[0] is Reason.TOLERANCE


def in_environment(edit: Callable[[Row], object], *, named: bool = False) -> Callable[[Files], Files]:
    """The environment as ``edit`` leaves it; its rows keep the id of before, or are ``named`` after it."""

    def change(lines: list[Line]) -> list[Line]:
        at = next(i for i, (kind, _) in enumerate(lines) if kind == b"environment")
        record = json.loads(lines[at][1])
        before = from_plain(Environment, record).id
        edit(record)
        after = from_plain(Environment, record).id if named else before
        lines[at] = (b"environment", json.dumps(record).encode())
        return [(kind, body.replace(before.encode(), after.encode())) for kind, body in lines]

    return lambda files: relined(files, change)


def moved_behind(files: Files) -> Files:
    def change(lines: list[Line]) -> list[Line]:
        first = next(line for line in lines if line[0] == b"environment")
        return [line for line in lines[:-1] if line is not first] + [first, lines[-1]]

    return relined(files, change)


def repeated(times: int) -> Callable[[Files], Files]:
    def change(lines: list[Line]) -> list[Line]:
        first = next(line for line in lines if line[0] == b"environment")
        return [lines[0], *[first] * times, *lines[1:]]

    return lambda files: relined(files, change)


ENVIRONMENTS: dict[str, tuple[Reason, Callable[[Files], Files]]] = {
    "a better machine under the same id": (
        Reason.ENVIRONMENT, in_environment(lambda e: e["identity"][0].__setitem__(1, "Better CPU"))
    ),
    "a fact more under the same id": (
        Reason.ENVIRONMENT, in_environment(lambda e: e["identity"].append(["z", 1]))
    ),
    "a fact less under the same id": (Reason.ENVIRONMENT, in_environment(lambda e: e["identity"].pop())),
    "no facts at all": (Reason.ENVIRONMENT, in_environment(lambda e: e.update(identity=[]))),
    "facts in another order": (Reason.ENVIRONMENT, in_environment(lambda e: e["identity"].reverse())),
    "facts in another order, under their own id": (
        Reason.ENVIRONMENT, in_environment(lambda e: e["identity"].reverse(), named=True)
    ),
    "a fact twice, under its own id": (
        Reason.ENVIRONMENT,
        in_environment(lambda e: e["identity"].insert(0, e["identity"][0]), named=True),
    ),
    "a fact twice": (
        Reason.ENVIRONMENT, in_environment(lambda e: e["identity"].insert(0, e["identity"][0]))
    ),
    "facts that come after the rows": (Reason.ENVIRONMENT, moved_behind),
    "an id of nothing": (Reason.ENVIRONMENT, lambda f: rerowed(f, said(environment_id="0" * 16))),
    "an environment of another device": (
        Reason.DEVICE, in_environment(lambda e: e.update(device="cuda"))
    ),
    "environments without end": (Reason.TOO_LARGE, repeated(65)),
    "facts without end": (
        Reason.TOO_LARGE, in_environment(lambda e: e.update(conditions=[["a" * 90, 0]] * 3000))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_that_does_not_follow_is_refused(
    name: str, night: Night, good: Files, tmp_path: Path
) -> None:
    """A row's environment is the hash of facts that stood before it, and one machine has one id."""
    word, change = ENVIRONMENTS[name]
    assert refused(night, change(dict(good)), tmp_path)[0] is word


def test_a_model_of_another_size_cannot_pose_as_the_declared_one(tmp_path: Path) -> None:
    """The campaign says how many parameters the suite declares, and the row what was built."""
    night = Night(tmp_path / "night")
    files = replanned(
        files_of(night.pack(1)),
        lambda plan: [c.update(parameters=71) for g in plan["groups"] for c in g["cases"]],
    )
    wanted = terms_of({each.id: PlannedCase(each, TOLERANCE, parameters=71) for each in night.cases[:2]})
    night.campaign = with_terms(night, wanted)
    row = kept(night, resealed(night, files), tmp_path)
    assert row["modifiers"] == ["other_model"]
    assert row["facts"] == [["other_model", "72 parameters were built, and its suite declares 71"]]


def test_a_compiled_case_that_captured_nothing_is_degraded(tmp_path: Path) -> None:
    """A pass of a compiler that ran nothing is refused unless the row says that it is none."""
    night = Night(tmp_path / "night")
    night.cases = [case(each.workload.model, "inductor") for each in night.cases]
    pool = night.campaign.pools[0]
    parts = [night.cases[:2], night.cases[2:]]
    shards = tuple(
        replace(shard, cases=tuple(each.id for each in part), terms=terms(part))
        for shard, part in zip(pool.shards, parts, strict=True)
    )
    night.campaign = replace(night.campaign, pools=(replace(pool, shards=shards),))
    files = rerowed(files_of(night.pack(1)), lambda row: measured(row, latency=STEADY, graph_count=[0.0]))
    assert refused(night, files, tmp_path)[0] is Reason.UNFOUNDED
    told = said(modifiers=["degraded"], facts=[["degraded", "dynamo captured no graph"]])
    assert kept(night, rerowed(files, told), tmp_path / "told")["modifiers"] == ["degraded"]


def test_a_check_passes_by_its_own_word(tmp_path: Path) -> None:
    """Checks have no latency and no reference; that they are checks is the campaign's word."""
    night = Night(tmp_path / "night")
    own = {
        "absolute": BY_THE_CHECK.absolute,
        "relative": 0.0,
        "rmse_multiplier": BY_THE_CHECK.rmse_multiplier,
    }
    files = replanned(
        files_of(night.pack(1)),
        lambda plan: [c["tolerance"].update(own) for g in plan["groups"] for c in g["cases"]],
    )
    files = rerowed(files, said(measurements=[], summaries=[], accuracy=None, realised=None))
    night.campaign = with_terms(
        night, terms_of({each.id: PlannedCase(each, BY_THE_CHECK) for each in night.cases[:2]})
    )
    assert kept(night, resealed(night, files), tmp_path)["status"] == "pass"
    assert terms(night.cases[:2]) != night.campaign.pools[0].shards[0].terms


def with_terms(night: Night, wanted: str) -> Any:
    """The campaign of ``night`` that holds its first shard to ``wanted``."""
    pool = night.campaign.pools[0]
    first, *others = pool.shards
    return replace(night.campaign, pools=(replace(pool, shards=(replace(first, terms=wanted), *others)),))


def resealed(night: Night, files: Files) -> Files:
    """``files`` as a set of the campaign that ``night`` has now."""
    return sealed(with_run_id(files, night.run_id()), campaign_digest=night.campaign.digest)


@pytest.mark.parametrize(
    "reference",
    ["second run", "float64 on the host", "eager and float64 on the host",
     "eager and bfloat16 eager on the host: a float64 copy does not fit",
     "eager alone: no float64 run (RuntimeError: not implemented)"],
)  # fmt: skip
def test_what_a_worker_compares_with_is_known(
    reference: str, night: Night, good: Files, tmp_path: Path
) -> None:
    """The words of ``harness/worker`` for its references are those that the door knows."""
    kept(night, rerowed(good, accuracy(reference=reference)), tmp_path)
