"""A bringup of the simulated device says under "What is dangerous" what was planted in it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from simulated_run import Command, command

pytestmark = pytest.mark.torch
PLANTED = "synchronize_does_not_wait,kernel_us=2000,changes_input=aten::exp"
QUICK = (
    "--checks",
    "device.clocks,device.synchronize",
    "--ops",
    "exp",
    "--parts",
    "check,ops",
    "--threads",
    "1",
)
SELECTED = (
    *("--checks", "device.*,tensor.copy", "--ops", "exp,add", "--suites", "toy", "--models", "mlp"),
    *("--parts", "identity,check,ops,models", "--threads", "1"),
)


@pytest.fixture(scope="module")
def brought_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Command]:
    """One bringup of a device that is not waited for, and of which an operator changes its input."""
    folder = tmp_path_factory.mktemp("bringup")
    return folder / "out", bring_up(folder, QUICK)


def bring_up(folder: Path, selected: tuple[str, ...]) -> Command:
    """A bringup of the simulated device with what is planted in it."""
    given = ("bringup", "--device", "npusim", "--out", str(folder / "out"), *selected, "--json")
    return command(folder, PLANTED, *given)


def said(done: Command) -> dict[str, Any]:
    """The report in JSON values."""
    found: dict[str, Any] = json.JSONDecoder().raw_decode(done.text[done.text.index("{") :])[0]
    return found


def test_what_was_planted_is_dangerous_and_what_works_is_said(brought_up) -> None:
    """The lying clock and the operator that changes its input are named, each with its command."""
    _, done = brought_up
    assert done.exit_code == 1, done.text
    check_planted(said(done))


@pytest.mark.full
def test_with_models_too_what_was_planted_is_dangerous(tmp_path) -> None:
    """The same where its identity is known and a model ran."""
    done = bring_up(tmp_path, SELECTED)
    assert done.exit_code == 1, done.text
    report = said(done)
    check_planted(report)
    assert {each["state"] for each in report["state"]["parts"]} == {"done", "not asked"}


def check_planted(report: dict[str, Any]) -> None:
    """Assert that both are named as what they are."""
    answers = {each["question"]["key"]: each for each in report["answers"]}
    dangers = next(each for each in report["lists"] if each["title"] == "What is dangerous")["findings"]
    texts = {f"{each['subject']}: {each['detail']}" for each in dangers}
    assert answers["clocks"]["word"] == "no"
    assert any("synchronize does not wait" in text for text in texts), texts
    assert answers["operators"]["word"] == "no"
    assert any("fail_accuracy: exp" in text for text in texts), texts
    assert all(each["command"].startswith("torchgauge ") for each in dangers)
    assert answers["import"]["word"] == answers["compile"]["word"] == "unknown"


def test_the_page_begins_with_the_answers_and_fetches_nothing(brought_up) -> None:
    """The HTML stands alone, and its first table is that of the ten questions, as in Markdown."""
    out, _ = brought_up
    page, text = (out / "report.html").read_text(), (out / "report.md").read_text()
    assert not re.search(r"<(?:script|link|img|iframe)|https?://", page)
    for each in (page, text):
        assert each.index("Is the device found") < each.index("What is dangerous") < each.index("What works")
    assert "synchronize does not wait" in page
