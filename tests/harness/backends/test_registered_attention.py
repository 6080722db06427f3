"""Flash attention that somebody registered with torch: found by asking, tried, and put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import DataFileError, NotOfferedError
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.planning.configurations import load_configurations
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Configuration, Workload

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Handle:
    """What torch calls to take an implementation out again."""

    removed = 0

    def remove(self) -> None:
        """Count it."""
        Handle.removed += 1


@pytest.fixture
def registry(monkeypatch) -> Iterator[dict[str, Any]]:
    """Torch's own registry of flash attention, empty for one test."""
    entries: dict[str, Any] = {}
    monkeypatch.setattr("torch.nn.attention._registry._FLASH_ATTENTION_IMPLS", entries)
    monkeypatch.setattr(Handle, "removed", 0)
    with torch.no_grad():
        yield entries


def broken() -> None:
    """An implementation whose package is not there."""
    raise ModuleNotFoundError("No module named 'acme_flash'")


class Host:
    """The part of a device session that a backend needs."""

    def synchronize(self) -> None:
        """The host has nothing to wait for."""


def prepared(implementation: str) -> Prepared:
    """One attention call with that implementation."""
    from torchgauge.suites.features.networks import build

    shape = (("head_width", 16), ("heads", 2), ("mask", "none"), ("seq", 32))
    built = build(Workload("features", "attention.sdpa-x", "inference", shape=shape), {})
    configuration = Configuration("c", "sdpa", (("implementation", implementation), ("kernel", "flash")))
    subject = Subject(built.module, built.module, built.args, {}, None, Host(), 0)
    session = BackendSession(Host(), lambda call: lambda: call(*built.args))
    return prepare(backend_named("sdpa"), subject, configuration, session)


def test_the_first_that_serves_is_taken(registry: dict[str, Any]) -> None:
    """One that cannot be activated is told with its words; the next one runs, and is taken out afterwards."""
    registry.update(acme=broken, mine=Handle, zeta=Handle)
    made = prepared("any")
    assert made.evidence == {
        "flash_implementation": "mine",
        "flash_implementations": "acme, mine, zeta",
        "flash_implementations_unusable": "acme: ModuleNotFoundError: No module named 'acme_flash'",
    }
    assert Handle.removed == 1
    with made.context():
        assert torch.nn.attention.current_flash_attention_impl() == "mine"
    assert torch.nn.attention.current_flash_attention_impl() is None
    assert Handle.removed == 2


@pytest.mark.parametrize("implementation", ["any", "acme"])
def test_where_none_serves_each_says_why(registry: dict[str, Any], implementation: str) -> None:
    """The reason names every one that was tried."""
    registry["acme"] = broken
    with pytest.raises(NotOfferedError) as refused:
        prepared(implementation)
    assert refused.value.message == "acme: ModuleNotFoundError: No module named 'acme_flash'"


def test_a_torch_without_any_says_so(registry: dict[str, Any]) -> None:
    """An empty registry is a reason; a name that it does not hold is told by torch."""
    assert not registry
    with pytest.raises(NotOfferedError, match="torch has no registered implementation"):
        prepared("any")
    with pytest.raises(ValueError, match="Unknown flash attention impl 'acme'"):
        prepared("acme")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("implementation: any", "implementation: 'any' requires `kernel: flash`"),
        ("implementation: any, kernel: math", "implementation: 'any' requires `kernel: flash`"),
        ("kernel: fast", "kernel: 'fast' is not a backend: use one of math, flash"),
    ],
)
def test_options_that_nobody_knows_are_refused_in_the_file(tmp_path: Path, options: str, said: str) -> None:
    """Nothing is planned of them: they are our own words, and no device could serve them."""
    file = tmp_path / "own.yaml"
    text = "configurations:\n  - name: own\n    doc: own\n    backend: sdpa\n    options: {%s}\n"
    file.write_text(text % options, encoding="utf-8")
    with pytest.raises(DataFileError) as refused:
        load_configurations(file)
    assert f"backend sdpa: {said}" in str(refused.value)
    file.write_text(text % "implementation: any, kernel: flash", encoding="utf-8")
    assert load_configurations(file)["own"].configuration.backend == "sdpa"
