"""The stubs of GitHub's actions refuse what the real ones refuse; else a green run would prove little."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from act_runner import STUBS, WORKFLOWS, pinned_actions, stub_of

UPLOAD = {"NO_FILES": "warn", "RETENTION": "0", "OVERWRITE": "false", "HIDDEN": "false"}
DOWNLOAD = {"NAME": "", "IDS": "", "PATTERN": "", "MERGE": "false", "TOKEN": "", "RUN": "1"}
Stub = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Return a function that runs the script of a stub in a workspace of its own."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    def run(script: str, **names: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "ACT_ARTIFACTS": str(tmp_path / "artifacts"),
            "GITHUB_RUN_ID": "1",
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(tmp_path),
            **names,
        }
        return subprocess.run(
            [sys.executable, str(STUBS / script)],
            cwd=workspace,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def upload(stub: Stub, name: str, path: str, **names: str) -> subprocess.CompletedProcess[str]:
    return stub("upload-artifact/upload.py", **{**UPLOAD, "NAME": name, "FILES": path, **names})


def download(stub: Stub, where: str, **names: str) -> subprocess.CompletedProcess[str]:
    return stub("download-artifact/download.py", **{**DOWNLOAD, "WHERE": where, **names})


def test_every_action_that_is_used_has_a_stub_with_the_inputs_that_are_used():
    """A new action, or a new input of one, needs its rules written down here first."""
    used = {action + folder for action, folder, _ in pinned_actions(WORKFLOWS)}
    assert used
    for action in used:
        assert (stub_of(action) / "action.yml").is_file(), action
    for path in (*WORKFLOWS.rglob("*.yml"), *WORKFLOWS.rglob("*.yaml")):
        for step in _steps(yaml.safe_load(path.read_text(encoding="utf-8"))):
            name = str(step.get("uses", "")).partition("@")[0]
            if name in used:
                known = yaml.safe_load((stub_of(name) / "action.yml").read_text())
                assert set(step.get("with", {})) <= set(known.get("inputs", {})), (path.name, name)


def _steps(data):
    jobs = data.get("jobs", {}).values()
    yield from (step for job in jobs for step in job.get("steps", []))
    yield from data.get("runs", {}).get("steps", [])


def test_a_second_artifact_of_the_same_name_is_a_conflict(stub, tmp_path):
    """Names are unique in a run; only ``overwrite`` replaces one."""
    (tmp_path / "workspace" / "a.txt").write_text("one")
    assert upload(stub, "set", "a.txt").returncode == 0
    again = upload(stub, "set", "a.txt")
    assert again.returncode == 1
    assert "409" in again.stdout
    assert upload(stub, "set", "a.txt", OVERWRITE="true").returncode == 0
    assert upload(stub, "set", "a.txt", GITHUB_RUN_ID="2").returncode == 0


@pytest.mark.parametrize("name", ["a/b", "a:b", "a\nb", "", 'a"b', "a*"])
def test_a_name_that_the_service_does_not_take_is_refused(stub, tmp_path, name):
    """What stands in a case's name must not end in an artifact's."""
    (tmp_path / "workspace" / "a.txt").write_text("one")
    assert upload(stub, name, "a.txt").returncode == 1


def test_a_number_is_that_of_one_upload_and_of_no_other(stub, tmp_path):
    """What was replaced has another number; the number of what is gone, or no number, finds nothing."""
    file, told = tmp_path / "workspace" / "a.txt", tmp_path / "outputs"
    for text in ("true", "forged"):
        file.write_text(text)
        assert upload(stub, "collected", "a.txt", OVERWRITE="true", GITHUB_OUTPUT=str(told)).returncode == 0
    first, second = (line.removeprefix("artifact-id=") for line in told.read_text().split())
    assert first != second
    assert "None of the provided artifact IDs" in download(stub, "one", IDS=first).stdout
    assert "None of the provided artifact IDs" in download(stub, "one", IDS="0").stdout
    assert download(stub, "two", IDS=f" {second},").returncode == 0
    assert (tmp_path / "workspace" / "two" / "a.txt").read_text() == "forged"
    assert "Must be a number" in download(stub, "three", IDS="collected").stdout
    assert "used together" in download(stub, "three", IDS=second, NAME="collected").stdout


def test_artifacts_of_another_run_need_a_token(stub, tmp_path):
    """The token of the job is what lets it read another run."""
    (tmp_path / "workspace" / "a.txt").write_text("one")
    upload(stub, "set", "a.txt", GITHUB_RUN_ID="7")
    assert download(stub, "out", NAME="set", RUN="7").returncode == 1
    assert download(stub, "out", NAME="set", RUN="7", TOKEN="t").returncode == 0


def test_a_fork_commit_is_not_checked_out_where_secrets_are(stub, tmp_path):
    """As the real action since its version 7."""
    event = tmp_path / "event.json"
    event.write_text('{"workflow_run": {"head_sha": "' + "a" * 40 + '"}}')
    names = {"REPOSITORY": "", "WHERE": ".", "PERSIST": "false", "UNSAFE": "false", "REF": "a" * 40}
    names |= {
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_EVENT_PATH": str(event),
        "ACT_ORIGINS": str(tmp_path),
    }
    refused = stub("checkout/checkout.py", GITHUB_EVENT_NAME="workflow_run", **names)
    assert "refused" in refused.stdout
    other = stub("checkout/checkout.py", GITHUB_EVENT_NAME="pull_request", **names)
    assert "refused" not in other.stdout
