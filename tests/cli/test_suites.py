"""``torchgauge suites list``: one suite that cannot answer is a line."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from torchgauge.errors import InfrastructureError

MODEL = SimpleNamespace(name="net", tiers=("smoke",))


def unreadable() -> None:
    """What the suite of operators says where its interpreter has no torch."""
    raise InfrastructureError("the operator database cannot be read", hint="torchgauge doctor")


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that cannot list its models, and one after it that can."""
    found = {
        "broken": SimpleNamespace(models=unreadable, unavailable=None, doc="Broken."),
        "whole": SimpleNamespace(models=lambda: (MODEL,), unavailable=None, doc="Whole."),
    }
    monkeypatch.setattr("torchgauge.registry.names", lambda _group: tuple(found))
    monkeypatch.setattr("torchgauge.harness.planning.plan.load_suite", found.__getitem__)


@pytest.mark.usefixtures("suites")
def test_a_suite_that_cannot_be_listed_does_not_hide_the_others(invoke) -> None:
    """It is named with the reason, and the exit code is 3."""
    shown = invoke("suites", "list")
    assert shown.exit_code == 3
    assert "broken         not listed: the operator database cannot be read; try: torchgauge doctor" in (
        shown.stderr
    )
    assert "1 model, 1 in tier smoke\n  Whole." in shown.stdout


@pytest.mark.usefixtures("suites")
def test_programs_are_told_too(invoke) -> None:
    """Null stands for a list that nobody has."""
    shown = invoke("suites", "list", "--json")
    assert shown.exit_code == 3
    assert json.loads(shown.stdout) == {"broken": None, "whole": ["net"]}
