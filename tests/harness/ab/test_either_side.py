"""Suites, models and modes that only one side has: real interpreters with unequal packages."""

from __future__ import annotations

import io
import json
import shutil
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.ab.comparison import Request, new_comparison
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import RunSettings
from torchgauge.records.comparison import Side, SideSpec

PLUGIN = Path(__file__).parent / "racers_plugin"
SETTINGS = RunSettings(threads=1, warmup_budget_s=0.2)


def interpreter_with(folder: Path, *edits: tuple[str, str]) -> str:
    """An environment that sees the packages of this one, and the racers with ``edits`` to their suite."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=240)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "seen.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    if edits:
        shutil.copytree(PLUGIN, packages, dirs_exist_ok=True)
        suite = packages / "torchgauge_racers" / "__init__.py"
        text = suite.read_text()
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        suite.write_text(text)
    return str(folder / "bin" / "python")


MODELS = 'MODELS = ("steady", "faulty")'
BOTH_MODES = ('{"inference": 1}', '{"inference": 1, "training": 1}')


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Interpreters by what their racers are."""
    folder = tmp_path_factory.mktemp("pythons")
    return {
        "old": interpreter_with(folder / "old", (MODELS, 'MODELS = ("steady", "retired")'), BOTH_MODES),
        "new": interpreter_with(folder / "new", (MODELS, 'MODELS = ("steady", "recruit")')),
        "none": interpreter_with(folder / "none"),
    }


@pytest.fixture
def planned(pythons: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """The comparison of two of them."""

    def plan(base: str, head: str, **selected: Any) -> Any:
        wanted: dict[str, Any] = {"suites": ("racers",), "devices": ("fake",), "configurations": ("eager",)}
        request = Request(
            Selection(**{**wanted, **selected}),
            SETTINGS,
            SideSpec(base, pythons[base]),
            SideSpec(head, pythons[head]),
            seed=1,
        )
        return new_comparison(request, store=str(tmp_path / "store"), progress=AbProgress(io.StringIO()))

    return plan


def refusals(made: Any) -> dict[str, tuple[str, str]]:
    """Why base and head refuse each pair that somebody asked for; empty where they do not."""
    found = {}
    for pair in made.plan.pairs:
        if not pair.control:
            case = f"{pair.head.workload.model}:{pair.head.workload.mode}"
            sides = (made.sides[side].find(getattr(pair, side.value).key)[1].declined for side in Side)
            found[case] = tuple(each.reason if each else "" for each in sides)
    return found


LACKS = "its suite 'racers' has no model "


def test_models_of_either_side_are_planned(planned: Callable[..., Any]) -> None:
    """Head's first; each side refuses what it lacks, and A/A pairs are of what head can run."""
    made = planned("old", "new")
    assert refusals(made) == {
        "steady:inference": ("", ""),
        "recruit:inference": (f"{LACKS}'recruit'", ""),
        "retired:inference": ("", f"{LACKS}'retired'"),
    }
    controls = {pair.head.workload.model for pair in made.plan.pairs if pair.control}
    assert controls == {"steady", "recruit"}


def test_a_name_is_right_where_either_side_knows_it(planned: Callable[..., Any]) -> None:
    """A model that head dropped can be asked for by its name; one that nobody has is a mistake."""
    assert refusals(planned("old", "new", models=("retired",))) == {
        "retired:inference": ("", f"{LACKS}'retired'")
    }
    with pytest.raises(UnknownNameError, match="unknown model 'retyred'; did you mean retired"):
        planned("old", "new", models=("retyred",))


@pytest.mark.parametrize("side", [0, 1])
def test_a_suite_that_one_side_lacks_is_planned(planned: Callable[..., Any], side: int) -> None:
    """All of its models, refused by that side; a suite that neither has is a mistake."""
    found = refusals(planned(*(("none", "new") if side == 0 else ("new", "none"))))
    assert set(found) == {"steady:inference", "recruit:inference"}
    assert all(bool(reasons[side]) and not reasons[1 - side] for reasons in found.values())
    with pytest.raises(UnknownNameError, match="unknown suite 'rasers'"):
        planned("old", "new", suites=("rasers",))


def test_checks_are_no_pairs(planned: Callable[..., Any]) -> None:
    """They share a process and have no step time: said, instead of one of them that fails."""
    with pytest.raises(UsageError, match="suite 'conformance' holds checks"):
        planned("old", "new", suites=("conformance",), devices=("cpu",))
    with pytest.raises(UsageError, match="suite 'features' holds checks"):
        planned("old", "new", suites=("features",), models=("device.autoload-*",), devices=("cpu",))
    beside = planned("old", "new", suites=("features",), models=("*-off", "*-mlp"), devices=("cpu",))
    assert {group.workload.model for group in beside.plan.groups} == {"inductor.knobs-mlp"}


def test_a_model_that_head_dropped_is_broken(pythons: dict[str, str], tmp_path: Path) -> None:
    """And one that is new is fixed; nobody vanishes from the verdicts, and the exit code is 1."""
    words = ("racers", "--device", "fake", "--config", "eager", "--threads", "1", "--seed", "1", "--json")
    sides = ("--base", pythons["old"], "--head", pythons["new"], "--store", str(tmp_path / "store"))
    done = CliRunner().invoke(cli, ["ab", *words, *sides, "--no-control", "--max-launches", "3"])
    assert done.exit_code == 1, done.output
    said = {
        (each["pair_id"].split("/")[1].split(":")[0], each["metric"]): each
        for each in json.loads(done.stdout)["verdicts"]
        if each["pair_key"]
    }
    assert said["retired", "status"]["verdict"] == "broken"
    assert said["retired", "status"]["reason"] == f"head ends with unsupported in start: {LACKS}'retired'"
    assert said["recruit", "status"]["verdict"] == "fixed"
    assert said["recruit", "latency"]["action"] == "report"
    assert said["steady", "status"]["verdict"] == "unchanged"
