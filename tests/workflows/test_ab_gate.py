"""The gate's measuring half: a real A/B run of two environments becomes a set, and so does every trouble."""

from __future__ import annotations

import json
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_wheels import PROJECT_FILES

import torchgauge
from torchgauge.cli.main import cli
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.workflows.gate_set import Origin, read_gate_set
from torchgauge.workflows.side_environment import make_by_command, make_environment

SHA = "a" * 40
SOURCE = Path(torchgauge.__file__).resolve().parent.parent
ORIGIN = Origin("owner/project", SHA, 7, 2)


@pytest.fixture
def step(monkeypatch, tmp_path) -> Path:
    """The variables of a step of a pull request's workflow."""
    event = {"pull_request": {"head": {"sha": SHA}}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/project")
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(*words: str):
    return CliRunner().invoke(cli, ["ci", "gate", *words])


def environment(folder: Path) -> str:
    """A virtual environment that sees the packages of this one: pip would take minutes."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=240)
    (packages,) = folder.glob("lib/python*/site-packages")
    seen = [*site.getsitepackages(), str(SOURCE)]
    (packages / "seen.pth").write_text("\n".join(seen) + "\n")
    return str(folder / "bin" / "python")


@pytest.mark.torch
def test_two_environments_are_compared_and_submitted(step) -> None:
    """Exit 0 whatever the verdict: it is in the set, which the trusted half takes as it is."""
    sides = [environment(step / name) for name in ("old", "new")]
    words = ("toy", "--pool", "cpu", "--device", "fake", "--models", "noop", "--configs", "eager")
    measured = ("--max-launches", "3", "--no-control", "--no-calibration", "--threads", "1", "--seed", "1")
    (step / "policy.yml").write_text("patterns:\n  '*nope*': {tolerance: 0.01}\n")
    measured += ("--policy", "policy.yml")
    done = gate("--base-python", sides[0], "--head-python", sides[1], *words, *measured, "--json")
    assert done.exit_code == 0, done.output
    found = read_gate_set(step / "pr-gate-v1-cpu", ORIGIN, "cpu")
    assert found.report.counts.planned == 1
    assert {each.metric for each in found.report.verdicts} >= {"status", "latency"}
    assert found.manifest.trouble == ""
    assert "note: policy.yml: patterns.*nope* applies to none of the judged cases (1)" in done.stderr
    told = json.loads(done.stdout[done.stdout.index("{") :])
    assert (told["verdict"], told["artifact"]) == (found.verdict.value, "pr-gate-v1-cpu")


def test_what_cannot_be_measured_is_submitted_too(step) -> None:
    """With the reason; the exit code is that of the mistake, as `ab` has it."""
    words = ("toy", "--pool", "cpu", "--device", "fake", "--base-python", "/no/such/python", "--head-python")
    done = gate(*words, sys.executable, "--exit-verdict")
    assert done.exit_code == 2
    found = read_gate_set(step / "pr-gate-v1-cpu", ORIGIN, "cpu")
    assert found.verdict is GateVerdict.INCOMPLETE
    assert "/no/such/python" in found.manifest.trouble
    assert gate(*words, sys.executable, "--out", "again").exit_code == 0


def test_what_others_print_is_no_command_of_the_step(step, monkeypatch) -> None:
    """A path with a command in it is told by a process whose log takes commands apart, and in the summary."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_OUTPUT", str(step / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step / "summary.md"))
    bad = "/no/such\n::error::owned"
    words = (
        "toy",
        "--pool",
        "cpu",
        "--device",
        "fake",
        "--base-python",
        bad,
        "--head-python",
        sys.executable,
    )
    command = [sys.executable, "-m", "torchgauge.cli.main", "ci", "gate", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=step, check=False)
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert any("error::owned" in line for line in lines)
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    assert "Nothing was measured" in (step / "summary.md").read_text()
    assert "\nincomplete\n" in (step / "output").read_text()


def test_torchgauge_yml_says_what_to_measure_where(step) -> None:
    """Suites and device of the pool, so that a workflow names the pool alone; an unknown pool is an error."""
    (step / "torchgauge.yml").write_text(
        "version: 1\ncampaign: {suites: [toy]}\npools:\n"
        "  - {name: cpu, device: fake, runs-on: ubuntu-latest, base: torch==1, head: torch==2}\n"
    )
    sides = ("--base-python", "/no/such/python", "--head-python", sys.executable)
    assert gate("--pool", "cpu", *sides).exit_code == 0
    assert "/no/such/python" in read_gate_set(step / "pr-gate-v1-cpu", ORIGIN, "cpu").manifest.trouble
    assert "unknown pool 'gpu'" in str(gate("--pool", "gpu", *sides).exception)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("toy", "--pool", "Not A Pool", "--device", "fake", "--base", "a", "--head", "b"),
            "is not a valid name of a pool",
        ),
        (("--pool", "cpu", "--device", "fake", "--base", "a", "--head", "b"), "no suite"),
        (("toy", "--pool", "cpu", "--base", "a", "--base-python", "b", "--head", "c"), "both given"),
        (("toy",), "without --base or --head"),
        (
            ("toy", "--pool", "cpu", "--device", "fake", "--base", "a", "--head", "b", "--head-sha", "main"),
            "commit",
        ),
    ],
)
def test_a_mistake_in_the_options_is_a_usage_error(step, words, said) -> None:
    """And nothing is submitted."""
    done = gate(*words)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not (step / "pr-gate-v1-cpu").exists()


def test_a_set_that_is_there_is_not_written_over(step) -> None:
    """Before anything is measured."""
    (step / "pr-gate-v1-cpu").mkdir()
    done = gate("toy", "--pool", "cpu", "--device", "fake", "--base", "a", "--head", "b")
    assert "exists" in str(done.exception)


@pytest.mark.full
def test_a_wheel_becomes_an_interpreter_and_a_missing_one_an_error(tmp_path) -> None:
    """By pip, without a network; the end of pip's output is in the message."""
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing.py", "NUMBER = 42\n")
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr(
            "thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    python = make_environment(tmp_path / "side", f"--no-index {wheel}")
    done = subprocess.run([python, "-c", "import thing; print(thing.NUMBER)"], capture_output=True, text=True,
                          timeout=240, check=True)  # fmt: skip
    assert done.stdout.strip() == "42"
    with pytest.raises(InfrastructureError, match=r"could not be installed:[\s\S]*nothing-like-it"):
        make_environment(tmp_path / "other", "--no-index nothing-like-it==9")
    for bad in ("", "--pre", "'open"):
        with pytest.raises(UsageError):
            make_environment(tmp_path / "none", bad)


def test_a_build_is_made_by_the_command_of_its_pool(tmp_path) -> None:
    """In the checkout of its night, in an environment of its own that is active, with that night's torch."""
    (tmp_path / "checkout").mkdir()
    command = 'python -c "import sys; print(sys.prefix)" >made; echo "$TORCH" >>made'
    python = make_by_command(tmp_path / "work" / "night-1", command, tmp_path / "checkout", "2.12.0")
    assert python == tmp_path / "work" / "night-1" / "bin" / "python"
    assert (tmp_path / "checkout" / "made").read_text().splitlines() == [str(python.parent.parent), "2.12.0"]


def test_a_side_that_is_a_checkout_has_what_its_pool_installs(tmp_path) -> None:
    """The command runs in the checkout first, then pip installs that; nothing else is made so."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name, text in PROJECT_FILES.items():
        (checkout / name).write_text(text)
    install = "python -m pip --version >made; python -c 'import project' 2>>made || true"
    python = make_environment(tmp_path / "work" / "base", str(checkout), install=install)
    subprocess.run([python, "-c", "import project"], timeout=240, check=True)
    said = (checkout / "made").read_text()
    assert f"from {python.parent.parent}" in said
    assert "No module named 'project'" in said
    with pytest.raises(InfrastructureError, match="could not be installed"):
        make_environment(tmp_path / "other", "--no-index nothing-like-it==9", install="echo 9 >&2; exit 1")


@pytest.mark.parametrize(
    ("command", "where", "said"),
    [
        ("echo no such wheel; false; true", "checkout", "no such wheel"),
        ("true", "gone", "gone does not exist"),
    ],
)
def test_a_build_that_cannot_be_made_says_why(tmp_path, command, where, said) -> None:
    """The end of what was printed, or that the commit was not checked out."""
    (tmp_path / "checkout").mkdir()
    with pytest.raises(InfrastructureError, match=said):
        make_by_command(tmp_path / "work" / "night-1", command, tmp_path / where, "2.12.0")
