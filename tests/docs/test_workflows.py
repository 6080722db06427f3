"""The workflows are thin and ask for little."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_grants_nothing_at_the_top_and_limits_every_job(path):
    """Permissions are empty at the top; each job names its own and a timeout."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert 0 < job["timeout-minutes"] <= 360


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    """A tag can be moved; a full commit hash cannot."""
    for line in re.findall(r"uses:\s*(\S+)", path.read_text(encoding="utf-8")):
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_is_one_command(path):
    """What a workflow does can be typed on a laptop."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert len(step.get("run", "").strip().splitlines()) <= 1
