"""A model with a name is measured as by ``torchgauge run``, each case in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import torchgauge as tg
from torchgauge.errors import UsageError
from torchgauge.live.result import summary_of
from torchgauge.records import Status
from torchgauge.results.store import Store

FILE = """import ctypes
import torch

def model():
    return torch.nn.Linear(8, 8), (torch.randn(2, 8),)

def crashes():
    return ctypes.string_at(0)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the path of a file with two models."""
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def measured(name: str, **more: Any) -> Any:
    return tg.measure(name, isolated=True, configs=["eager"], seconds=0.2, progress=False, **more)


def test_a_model_of_a_file_has_what_a_process_of_its_own_tells(file: str, tmp_path: Path) -> None:
    """Its row is the one of the run in the store, with the memory of the host."""
    found = measured(f"{file}::model", store=tmp_path / "store")
    assert found.passed
    assert found["eager"].case.workload.suite == "mine.py"
    memory = summary_of(found["eager"], "peak_memory")
    assert memory is not None
    assert memory.median is not None
    assert Store.open(tmp_path / "store").run_ids() == (found.plan.run_id,)
    assert tg.load(saved(found, tmp_path)).seconds() == found.seconds()


def saved(found: Any, folder: Path) -> Path:
    found.save(folder / "saved.json")
    return folder / "saved.json"


def test_a_crash_is_a_row(file: str) -> None:
    """This process lives on."""
    found = measured(f"{file}::crashes")
    assert found["eager"].status is Status.CRASH
    assert "eager: build: " in found.notes[0]


@pytest.mark.parametrize(
    ("change", "more", "text"),
    [
        (".gone", {}, "there is no such file"),
        ("", {}, "has 2 models, but measure\\(\\) measures one: model, crashes"),
        ("::model", {"device": "nowhere"}, "unknown device 'nowhere'"),
        ("::model", {"inputs": 3}, "defines its inputs, loss and name itself"),
        ("::model", {"mode": "neither"}, "unknown mode 'neither'"),
    ],
)
def test_what_cannot_be_measured_is_refused(file: str, change: str, more: dict[str, Any], text: str) -> None:
    """The reason is that of the command."""
    path = file.replace(".py", f"{change}.py") if change == ".gone" else file + change
    with pytest.raises(UsageError, match=text):
        measured(path, **more)


def test_an_object_cannot_be_isolated() -> None:
    """A worker could not build it."""
    with pytest.raises(UsageError, match="cannot be isolated: workers build models by name"):
        tg.measure(len, isolated=True)
