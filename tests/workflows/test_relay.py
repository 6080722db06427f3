"""Reports in the form of PyTorch's relay, against a server that takes them; the upload directory of v3."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from github_server import TOKEN, Answer, GitHub, serving
from stored_runs import case, result

from torchgauge.cli.main import cli
from torchgauge.errors import UsageError
from torchgauge.records import Cause, Failure, Modifier, Status
from torchgauge.results.store import Store
from torchgauge.workflows.relay import RelayRefusedError, oidc_token, send

SHA = "c" * 40
DISPATCHED = {
    "event_type": "pull_request",
    "delivery_id": "d-1",
    "payload": {"pull_request": {"number": 9, "head": {"sha": SHA}}},
}
FAILED = {"status": Status.ERROR, "failure": Failure("E", "no such op", fingerprint="f" * 16)}


@pytest.fixture
def github(monkeypatch, tmp_path) -> Iterator[GitHub]:
    """A relay, an issuer of identity tokens, and the variables of a job that was dispatched."""
    (tmp_path / "event.json").write_text(json.dumps({"client_payload": DISPATCHED}))
    github = GitHub()
    with serving(github):
        names = {
            "no_proxy": "127.0.0.1",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{github.base}/oidc?run=1",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": TOKEN,
            "CRCR_CALLBACK_URL": f"{github.base}/callback",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "vendor/backend",
            "GITHUB_RUN_ID": "123",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_WORKFLOW": "bench",
            "GITHUB_JOB": "device",
            "GITHUB_SERVER_URL": "https://github.com",
        }
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        yield github


def store_of(tmp_path: Path, *rows) -> str:
    store = Store.open(tmp_path / "store", create=True)
    stored_runs.run(store, "run-1", rows or [result(case())])
    return str(store.path)


def report(*words: str):
    return CliRunner().invoke(cli, ["ci", "report", "upstream", *words])


def test_the_two_callbacks_of_a_job_have_the_relay_s_form(tmp_path, github) -> None:
    """The dispatched payload as it came, `workflow` beside it, proven by an identity token for the relay."""
    store = store_of(tmp_path, result(case()), result(case("conv"), None, **FAILED))
    assert report("--relay", "--status", "in_progress", "--job-name", "device-npu").exit_code == 0
    assert report("--relay", "--store", store, "--artifact-url", "https://x.example/a").exit_code == 0
    began, ended = github.relayed
    assert {name: ended[name] for name in DISPATCHED} == DISPATCHED
    assert began["workflow"].pop("started_at").endswith("Z")
    assert began["workflow"] == {
        "schema_version": "1",
        "status": "in_progress",
        "conclusion": None,
        "name": "bench",
        "url": "https://github.com/vendor/backend/actions/runs/123",
        "run_id": "123",
        "run_attempt": "2",
        "job_name": "device-npu",
        "check_run_id": "123-2",
        "completed_at": None,
    }
    told = ended["workflow"]
    assert (told["conclusion"], told["test_results"]) == ("failure", {"passed": 1, "failed": 1, "skipped": 0})
    assert (told["started_at"], told["artifact_url"]) == (None, "https://x.example/a")


def test_success_is_only_what_was_measured_and_is_as_expected(tmp_path, github) -> None:
    """A case that was not measured is no success; one that is not supported is."""
    fine = store_of(tmp_path / "a", result(case()), result(case("norm"), None, status=Status.UNSUPPORTED))
    lost = store_of(
        tmp_path / "b", result(case()), result(case("conv"), None, status=Status.INFRA, cause=Cause.NO_DEVICE)
    )
    for store in (fine, lost):
        assert report("--relay", "--store", store).exit_code == 0
    told = [each["workflow"] for each in github.relayed]
    assert [each["conclusion"] for each in told] == ["success", "failure"]
    assert [each["test_results"]["skipped"] for each in told] == [1, 1]


@pytest.mark.parametrize(
    "ended",
    [
        {"status": Status.SKIPPED, "cause": Cause.MISSING_PACKAGE, "reason": "no timm"},
        {"modifiers": (Modifier.DEGRADED,)},
        {"modifiers": (Modifier.UNCHECKED,)},
    ],
    ids=["skipped", "degraded", "unchecked"],
)
def test_a_run_that_measured_nothing_is_no_success(tmp_path, github, ended) -> None:
    """However its cases ended: nothing failed, and nothing was found to be right."""
    numbers = None if "status" in ended else 1e-3
    assert report("--relay", "--store", store_of(tmp_path, result(case(), numbers, **ended))).exit_code == 0
    (told,) = [each["workflow"] for each in github.relayed]
    counts = {"passed": 0, "failed": 0, "skipped": 1}
    assert (told["conclusion"], told["test_results"]) == ("failure", counts)


def test_a_nightly_names_its_upstream_commit_itself(tmp_path, github) -> None:
    """And reports only once it is completed."""
    words = ("--relay", "--upstream-sha", SHA, "--event-type", "nightly")
    assert report(*words, "--store", store_of(tmp_path)).exit_code == 0
    (told,) = github.relayed
    assert (told["event_type"], told["delivery_id"], told["payload"]["head_sha"]) == ("nightly", SHA, SHA)
    assert isinstance(report(*words, "--status", "in_progress").exception, UsageError)
    assert isinstance(report("--relay", "--upstream-sha", SHA).exception, UsageError)


def test_a_refused_callback_is_red_and_an_ill_relay_is_not(tmp_path, github) -> None:
    """4xx is our mistake; 5xx is said and does no harm."""
    store = store_of(tmp_path)
    identity = Answer(200, {"value": "oidc-for-x"})
    github.trouble = [identity, Answer(400, {"message": "no matching dispatch record"})]
    refused = report("--relay", "--store", store).exception
    assert isinstance(refused, RelayRefusedError)
    assert (refused.exit_code, "no matching dispatch record" in str(refused)) == (1, True)
    github.trouble = [identity, Answer(500, {"message": "ill"})]
    done = report("--relay", "--store", store)
    assert (done.exit_code, "did not accept the callback (HTTP 500)" in done.output) == (0, True)
    assert github.relayed == []


def test_a_callback_that_may_have_arrived_is_not_sent_again(github) -> None:
    """A second one would be refused; a busy or absent relay is tried again."""
    slept: list[float] = []
    github.trouble = [Answer(500)]
    assert "HTTP 500" in send(f"{github.base}/callback", "oidc-for-x", {}, slept.append)
    assert (slept, len(github.requests)) == ([], 1)
    github.trouble = [Answer(503), Answer(429)]
    assert send(f"{github.base}/callback", "oidc-for-x", {}, slept.append) == ""
    assert slept == [1.0, 2.0]
    with pytest.raises(UsageError, match="https"):
        send("http://relay.example/callback", "oidc-for-x", {})


def test_a_job_without_the_right_to_an_identity_is_told_which(github, monkeypatch) -> None:
    """The permission by its name."""
    assert oidc_token().startswith("oidc-for-pytorch-cross-repo-ci-relay")
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    with pytest.raises(UsageError, match="id-token: write"):
        oidc_token()


def test_an_event_that_the_relay_did_not_send_is_an_error(tmp_path, github) -> None:
    """There is nothing to answer."""
    (tmp_path / "event.json").write_text(json.dumps({"client_payload": None}))
    assert "client_payload" in str(report("--relay", "--status", "in_progress").exception)


def test_the_upload_directory_has_one_file_for_each_run(tmp_path, github) -> None:
    """Every line is a record of schema v3."""
    store = store_of(tmp_path)
    done = report("--hud-v3", str(tmp_path / "upload"), "--store", store)
    assert done.exit_code == 0
    (file,) = (tmp_path / "upload").iterdir()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert file.name == "run-1.json"
    assert {"benchmark", "model", "metric"} <= set(records[0])
    assert isinstance(report().exception, UsageError)


def test_a_callback_can_be_tried_where_no_forge_is(tmp_path, monkeypatch) -> None:
    """What is missing stands as an example, what the run says is real, and nothing is sent."""
    for name in ("RUN_ID", "REPOSITORY", "WORKFLOW", "JOB", "EVENT_PATH"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    done = report("--relay", "--dry-run", "--store", store_of(tmp_path))
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout)
    assert body["workflow"]["test_results"] == {"passed": 1, "failed": 0, "skipped": 0}
    assert body["workflow"]["url"] == "https://github.com/OWNER/NAME/actions/runs/1"
    assert "is an example" in done.stderr
    assert isinstance(report("--relay", "--store", store_of(tmp_path / "b")).exception, UsageError)


def test_all_shards_of_the_latest_campaign_speak_together(tmp_path, github) -> None:
    """Of each shard the newest attempt; runs of other campaigns do not count."""
    store = Store.open(tmp_path / "store", create=True)
    rows = {
        "20261120T031500Z-pool-001-01-1a2b3c4d": [result(case("old"), None, **FAILED)],
        "20261122T031500Z-pool-001-01-5a2b3c4d": [result(case("lost"), None, **FAILED)],
        "20261122T031500Z-pool-001-02-5a2b3c4d": [result(case())],
        "20261122T031500Z-pool-002-01-5a2b3c4d": [result(case("conv")), result(case("norm"))],
    }
    for name, found in rows.items():
        stored_runs.run(store, name, found)
    assert report("--relay", "--store", str(store.path)).exit_code == 0
    (told,) = [each["workflow"] for each in github.relayed]
    assert told["test_results"] == {"passed": 3, "failed": 0, "skipped": 0}
