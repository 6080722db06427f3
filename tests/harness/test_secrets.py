"""What a model finds out of whoever runs it reaches no row, no log, no table, no page and no download."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from torchgauge import registry
from torchgauge.devices.declared_variables import declared_variables
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.errors import InfrastructureError
from torchgauge.harness.pool.host_process import HostOptions, worker_environment

pytestmark = pytest.mark.long

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


def spellings(value: str) -> list[bytes]:
    """How a secret would look to whoever searches for it."""
    data = value.encode()
    middle = base64.b64encode(b"x" + data).decode()[4:-4]  # the letters at both ends depend on neighbours
    return [
        text.encode()
        for text in (
            value,
            json.dumps(value)[1:-1],
            repr(value)[1:-1],
            quote(value, safe=""),
            data.hex(),
            middle,
        )
    ]


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
        ("dashboard", "build", "store", "--out", "site", "--plotly", "none"),
        ("report", run_id, "--store", "store", "--format", "markdown"),
        ("triage", "--store", "store", "--json"),
        ("results", "show", run_id, "--store", "store"),
        ("export", run_id, "--format", "hud-v3", "--out", "hud.json", "--store", "store"),
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
    """Neither in its own letters nor as it looks in JSON, addresses, hexadecimal or base64."""
    _, files = told
    assert len(files) > 20
    forms = spellings(HIDDEN[name])
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
