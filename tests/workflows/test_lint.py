"""Three linters find nothing in our workflows nor in those that ``ci init`` writes, and do find faults."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from torchgauge.workflows.config import parse_config, read_config
from torchgauge.workflows.init import workflow_files, write_workflows

PROJECT = Path(__file__).parents[2]
CONFIG = """\
version: 1
campaign: {suites: [toy]}
gate: {policy: policy.yml}
pools:
  - {name: cpu, device: cpu, runs-on: ubuntu-24.04, trust: anyone}
  - {name: sim, device: npusim, runs-on: [self-hosted, tg-sim], install: pip install torch==2.13.0}
"""
BAD = """\
name: bad
on:
  pull_request_target:
permissions: write-all
jobs:
  job:
    runs-on: ubuntu-24.04
    timeout-minutes: soon
    steps:
      - uses: actions/checkout@v4
      - run: echo "${{ github.event.pull_request.title }}"
"""
BAD_ACTION = "name: no description\nruns: {using: composite, steps: [{run: echo}]}\n"


def test_the_projects_own_campaign_is_readable():
    """The nightly workflow of this repository reads this file."""
    config = read_config(PROJECT / "torchgauge.yml")
    assert {pool.trust for pool in config.pools} == {"anyone"}


def tool(name: str) -> str:
    """The linter beside this interpreter."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    assert found, f"{name} is missing: pip install -c constraints.txt -e '.[dev]'"
    return found


def lint(folder: Path, linter: str) -> subprocess.CompletedProcess[str]:
    """Run one linter over the repository at ``folder``."""
    workflows = sorted(map(str, (folder / ".github" / "workflows").glob("*.yml")))
    actions = sorted(map(str, (folder / ".github" / "actions").glob("*/action.yml")))
    commands = {
        "actionlint": [
            tool("actionlint"),
            "-config-file",
            str(PROJECT / ".github" / "actionlint.yaml"),
            *workflows,
        ],
        "zizmor": [
            tool("zizmor"),
            "--offline",
            "--persona",
            "pedantic",
            "--config",
            str(PROJECT / ".github" / "zizmor.yml"),
            str(folder),
        ],
        "workflows": [tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *workflows],
        "actions": [tool("check-jsonschema"), "--builtin-schema", "vendor.github-actions", *actions],
    }
    return subprocess.run(commands[linter], cwd=folder, capture_output=True, text=True, check=False)


def repository(folder: Path) -> Path:
    """A repository root, which the linters look for."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".github" / "workflows").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("linter", ["actionlint", "zizmor", "workflows", "actions"])
def test_the_projects_own_workflows_have_no_finding(tmp_path, linter):
    """Nor have its composite actions."""
    root = repository(tmp_path / "project")
    shutil.copytree(PROJECT / ".github", root / ".github", dirs_exist_ok=True)
    done = lint(root, linter)
    assert done.returncode == 0, done.stdout + done.stderr


POOLS = {
    "hosted for anyone": "{name: cpu, device: cpu, runs-on: ubuntu-24.04, trust: anyone}",
    "own for anyone": "{name: open, device: cpu, runs-on: [self-hosted, tg-open], trust: anyone, shards: 2}",
    "hosted for collaborators": "{name: ours, device: cpu, runs-on: ubuntu-24.04}",
    "own for collaborators": "{name: sim, device: npusim, runs-on: [self-hosted, tg-sim], install: make}",
    "two builds": "{name: two, device: cpu, runs-on: ubuntu-24.04, base: torch==2.12.0, head: torch==2.13.0}",
}
KINDS = [kinds for count in range(1, len(POOLS) + 1) for kinds in combinations(POOLS, count)]


@pytest.mark.parametrize("linter", ["actionlint", "zizmor", "workflows"])
def test_written_workflows_have_no_finding(tmp_path, linter):
    """What ``ci init`` gives to a repository is as clean as our own, whatever kinds of pools there are."""
    found = set()
    for number, kinds in enumerate(KINDS):
        pools = "".join(f"  - {POOLS[kind]}\n" for kind in kinds)
        config = parse_config(CONFIG.partition("pools:")[0] + "pools:\n" + pools)
        root = repository(tmp_path / f"project-{number}")
        write_workflows(workflow_files(config, root))
        text = "".join(path.read_text() for path in sorted((root / ".github/workflows").iterdir()))
        if text in found:  # kinds that make no difference
            continue
        found.add(text)
        done = lint(root, linter)
        assert done.returncode == 0, f"{kinds}: {done.stdout}{done.stderr}"
    assert len(found) == 3


@pytest.mark.parametrize("linter", ["actionlint", "zizmor", "workflows", "actions"])
def test_a_bad_workflow_is_found_by_each(tmp_path, linter):
    """A linter that finds nothing anywhere would be green as well."""
    root = repository(tmp_path / "bad")
    readable = BAD.replace("soon", "5") if linter == "zizmor" else BAD  # it looks at no file of another form
    (root / ".github" / "workflows" / "bad.yml").write_text(readable)
    if linter == "actions":
        (root / ".github" / "actions" / "bad").mkdir(parents=True)
        (root / ".github" / "actions" / "bad" / "action.yml").write_text(BAD_ACTION)
    done = lint(root, linter)
    assert done.returncode != 0
    expected = {
        "actionlint": "untrusted",
        "zizmor": "dangerous-triggers",
        "workflows": "soon",
        "actions": "description",
    }
    assert expected[linter] in done.stdout + done.stderr


def test_every_test_that_the_threat_model_names_is_there():
    """A control whose test is gone is a promise and nothing more."""
    text = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 30
    for name in named:
        folder = PROJECT if name.startswith("tests/") else PROJECT / "tests" / "workflows"
        assert (folder / name).is_file(), name
