"""What a model finds out of whoever runs it reaches no row, no log, no table, no page and no download."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from torchgauge import registry
from torchgauge.devices.declared_variables import declared_variables
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.errors import InfrastructureError
from torchgauge.harness.pool.host_process import HostOptions, worker_environment
from torchgauge.results.comparing.comparison_store import ComparisonFolder

MASK = "***"
SECRETS = {
    "HF_TOKEN": "hf_planted" + "aB3dE5gH" * 4,
    "AWS_SECRET_ACCESS_KEY": 'pl4nted/cloud+key "with" odd=signs',
    "DB_PASSWORD": "correct horse\nbattery staple",
    "PIP_INDEX_URL": "https://me:planted-index-password@index.invalid/simple",
    "LICENCE": "planted-and-passed-on",
}
HIDDEN = {
    **{name: SECRETS[name] for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD")},
    "PIP_INDEX_URL": "planted-index-password",
}
"""What must be seen nowhere; the licence is no secret by its name, and a person passes it on."""
PLACES = ("--store", "store")
PASSWORD = "s3cretPassw0rd"
SHORT = "pw-Q7zx"


def everything(folder: Path) -> dict[str, bytes]:
    """The bytes of every file, tables unpacked."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data += repr(pq.ParquetFile(path).read().to_pylist()).encode()
            found[str(path.relative_to(folder))] = data
    return found


@pytest.fixture(scope="module")
def told(make_sandbox) -> Iterator[tuple[object, dict[str, bytes]]]:
    """A store with both models, its site and its exports, and all that was printed on the way."""
    sandbox = make_sandbox()
    names = ",".join(SECRETS)
    sandbox.environment |= SECRETS | {
        "TORCHGAUGE_FAULTS_LOOK_FOR": names,
        "TORCHGAUGE_PASS_ON": "LICENCE",
    }
    said = sandbox.measure(
        "slow", "--device", "fake", "--config", "eager", "--models", "leaky,leaky_quietly", "--tier", "full"
    )
    assert said.returncode == 1, said.stderr
    folder = sandbox.store_path.parent
    (run_id,) = sandbox.store.run_ids()
    printed = [said.stdout, said.stderr]
    for words in (
        ("dashboard", "build", "store", "--out", "site"),
        ("report", run_id, "--store", "store", "--format", "markdown"),
        ("results", "triage", "--store", "store", "--json"),
        ("results", "show", run_id, "--store", "store"),
        ("results", "export", run_id, "--format", "hud-v3", "--out", "hud.json", "--store", "store"),
    ):
        done = sandbox.run(*words)
        assert done.returncode in (0, 1), (words, done.stderr)
        printed += [done.stdout, done.stderr]
    (folder / "printed.txt").write_text("\n".join(printed))
    yield sandbox, everything(folder)
    sandbox.end()
    assert sandbox.survivors() == []


@pytest.mark.parametrize("name", HIDDEN)
def test_a_planted_secret_is_nowhere(told, name: str) -> None:
    """In no row, log, table, page or download, by any line of its value."""
    _, files = told
    assert len(files) > 20
    forms = [line.encode() for line in HIDDEN[name].splitlines()]
    assert [(file, form) for file, data in files.items() for form in forms if form in data] == []


def test_the_models_had_it_and_told_it(told) -> None:
    """Otherwise nothing was tried: it came from an ancestor's environment, and is masked in row and log."""
    sandbox, files = told
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    failed, passed = rows["leaky"], rows["leaky_quietly"]
    assert failed.status.value == "error"
    assert passed.status.value == "pass"
    assert f"I found:\n{MASK}" in failed.failure.message
    for row in rows.values():
        assert MASK in files[f"store/runs/{row.run_id}/{row.log}"].decode()
        assert MASK in row.teardown


def test_what_nobody_promises_to_catch_is_in_the_log(told) -> None:
    """A model that wants to tell a secret can: only an environment without any helps against that."""
    sandbox, files = told
    log = files[f"store/runs/{sandbox.rows()[0].run_id}/{sandbox.rows()[0].log}"].decode()
    assert f"reversed {SECRETS['HF_TOKEN'][::-1]}" in log


def test_the_worker_was_given_what_is_on_the_list(told) -> None:
    """No secret, and the one variable that a person named beside it."""
    sandbox, files = told
    log = files[f"store/runs/{sandbox.rows()[0].run_id}/{sandbox.rows()[0].log}"].decode()
    (line,) = [line for line in log.splitlines() if line.startswith("names I was given:")]
    names = line.partition(":")[2].split()
    assert "LICENCE" in names
    assert not {*HIDDEN} & {*names}
    assert {"PATH", "HOME", "TMPDIR", "OMP_NUM_THREADS"} <= {*names}


def _broken() -> None:
    raise InfrastructureError("this package is broken")


def test_a_device_is_given_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host, and the probe that looks for it, which asks for all devices at once."""
    device = DeviceDescriptor("acme", "Acme", "acme:S", "acme", passed_variables=("ACME_MODE", "ACME_LIB_*"))
    monkeypatch.setattr(registry, "names", lambda _: ("acme", "broken"))
    monkeypatch.setattr(registry, "load", lambda _, name: device if name == "acme" else _broken())
    declared_variables.cache_clear()
    assert declared_variables() == ("ACME_MODE", "ACME_LIB_*")
    declared_variables.cache_clear()
    for name in ("ACME_MODE", "ACME_LIB_PATH", "ACME_LIB_TOKEN", "ACME_OTHER"):
        monkeypatch.setenv(name, "x")
    given = worker_environment(HostOptions(sys.executable, (), (), True, passes=device.passed_variables))
    assert {name for name in given if name.startswith("ACME")} == {"ACME_MODE", "ACME_LIB_PATH"}


def test_nothing_of_a_worker_is_written_before_it_is_looked_at(told) -> None:
    """What waited for that is gone with the run."""
    sandbox, _ = told
    assert not (sandbox.folder().path / "work").exists()
    assert sandbox.scratch() == []


def leaks(sandbox, *secrets: str) -> list[tuple[str, bytes]]:
    """Files of the sandbox in which one of ``secrets`` stands."""
    files = everything(sandbox.store_path.parent)
    assert len(files) > 2
    forms = [secret.encode() for secret in secrets]
    return [(file, form) for file, data in files.items() for form in forms if form in data]


def test_a_secret_variable_of_a_side_is_measured_and_not_kept(make_sandbox) -> None:
    """Its name is, in plan, tables, report, page and log, and that the sides had different values."""
    sandbox = make_sandbox()
    sides = (
        "--base-env",
        f"MY_TOKEN={PASSWORD}",
        "--head-env",
        f"MY_TOKEN={PASSWORD}2",
        "--head-env",
        "FAST=1",
    )
    words = ("slow", "--device", "fake", "--models", "leaky", "--config", "eager", "--max-launches", "1")
    sandbox.environment["TORCHGAUGE_FAULTS_LOOK_FOR"] = "MY_TOKEN"
    done = sandbox.run("ab", *words, *sides, "--no-control", "--store", "store")
    assert done.returncode in (0, 1, 3), done.stderr
    (folder,) = sandbox.store_path.glob("comparisons/*")
    plan = ComparisonFolder(folder).plan()
    assert plan.base.variables == (("MY_TOKEN", "*** (of the base)"),)
    assert plan.head.variables == (("FAST", "1"), ("MY_TOKEN", "*** (of the head)"))
    assert (plan.base.label, plan.head.label) == ("base MY_TOKEN=***", "head FAST=1 MY_TOKEN=***")
    assert "MY_TOKEN=***" in plan.command
    assert "I found:\\n***" in (folder / "journal.jsonl").read_text()
    printed = [done.stdout, done.stderr]
    for words in (
        ("dashboard", "build", "store", "--out", "site"),
        ("report", plan.run_id, "--store", "store", "--format", "markdown"),
        ("ab", "--resume", str(folder)),
    ):
        done = sandbox.run(*words)
        printed += [done.stdout, done.stderr]
    assert "MY_TOKEN is a secret and was not stored" in done.stderr
    (sandbox.store_path.parent / "printed.txt").write_text("\n".join(printed))
    assert leaks(sandbox, PASSWORD) == []


def test_a_password_of_what_is_installed_is_not_submitted(make_sandbox) -> None:
    """However short: neither in the set that is commented on, nor in what the step prints."""
    sandbox = make_sandbox()
    base = f"torch @ https://me:{SHORT}@127.0.0.1:9/torch-1-py3-none-any.whl"
    head = f"torch @ https://{PASSWORD}@127.0.0.1:9/torch-2-py3-none-any.whl"
    sandbox.environment |= {
        "PIP_RETRIES": "0",
        "GITHUB_STEP_SUMMARY": str(sandbox.store_path.parent / "said.md"),
    }
    words = ("slow", "--pool", "cpu", "--device", "fake", "--models", "slow_1")
    done = sandbox.run(
        "ci", "gate", *words, "--base", base, "--head", head, "--store", "store", "--out", "set",
        "--work", str(sandbox.temporary),
    )  # fmt: skip
    manifest = json.loads((sandbox.store_path.parent / "set" / "manifest.json").read_text())
    assert manifest["base"] == "torch @ https://***@127.0.0.1:9/torch-1-py3-none-any.whl"
    assert "could not be installed" in manifest["trouble"]
    (sandbox.store_path.parent / "printed.txt").write_text(done.stdout + done.stderr)
    for path in sandbox.temporary.iterdir():  # what pip said to itself is no part of what is submitted
        path.rename(sandbox.store_path.parent.parent / path.name)
    assert leaks(sandbox, SHORT, PASSWORD) == []
