"""A model forges what its worker reports: that costs its own case a crash, and no other case anything."""

from __future__ import annotations

import pytest

REASONS = {
    "bad_json": "Expecting property name",
    "deep_json": "recursion",
    "a_list": "None is not one of phase",
    "unknown_phase": "'lunch' is not one of",
    "unknown_event": "lunch",
    "missing_field": "missing field 'case'",
    "extra_field": "unknown field 'outcome'",
    "many_events": "more than 20,000 events",
    "no_unicode": "utf-8",
    "not_a_number": "JSON",
    "endless_line": "an event of more than 16 MiB",
    "wrong_type": "expected str",
    "foreign_case": "a case of another group",
    "huge_time": "a sample is not finite",
    "huge_block": "no table can hold",
    "huge_fact": "no table can hold",
    "not_run": "cannot have status not_run",
}


def test_a_planted_file_is_nobodys_row(sandbox) -> None:
    """A pass that an earlier model wrote counts neither for a model that crashes nor for an honest one."""
    done = sandbox.measure("forgers", "--device", "fake", "--config", "eager")
    rows = {row.case.workload.model: row for row in sandbox.assert_accounted()}
    assert done.returncode == 1, done.stderr
    assert {name: row.status.value for name, row in rows.items()} == {
        "plants": "pass",
        "crashes": "crash",
        "honest": "pass",
    }
    assert min(rows["honest"].measurements[0].samples) > 1e-3


@pytest.mark.parametrize("devices", ["fake", "fake,fake.1"])
def test_a_line_that_is_not_an_event_ends_its_worker_alone(sandbox, devices: str) -> None:
    """The case crashes with the reason, on every device, and every other case has its own row."""
    models = ",".join([*REASONS, "linked", "asks", "honest"])
    words = ("--config", "eager", "--device", devices, "--prefetch", "2")
    done = sandbox.measure("forgers", "--tier", "full", "--models", models, *words)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    rows = sandbox.assert_accounted()
    assert len(rows) == (len(REASONS) + 3) * len(devices.split(","))
    for row in rows:
        model = row.case.workload.model
        if model not in REASONS:
            assert (model, row.status.value) == (model, "pass")
            continue
        assert (model, row.status.value, row.cause.value) == (model, "crash", "exit")
        assert REASONS[model] in row.reason, row.reason


@pytest.mark.parametrize("model", ["host_reply", "host_ends"])
def test_a_forged_reply_of_a_host_ends_no_run(sandbox, model: str) -> None:
    """The case that wrote into the pipes of its host is infra, and the next one passes in a new host.

    Also where it wrote the ends of later workers, with the token of a command that its process can see.
    """
    models = ("--tier", "full", "--models", f"{model},honest")
    done = sandbox.measure("forgers", *models, "--config", "eager", "--device", "fake")
    assert "Traceback" not in done.stderr
    rows = {row.case.workload.model: row for row in sandbox.assert_accounted()}
    assert rows["honest"].status.value == "pass"
    assert (rows[model].status.value, rows[model].cause.value) == ("infra", "lost_worker")
