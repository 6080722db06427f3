"""Every verb explains itself, and machine output is machine output."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from torchgauge import __version__
from torchgauge.cli.main import RENAMED, cli, run_command

CASE = "toy/noop:inference:float32:b1:eager@fake"


def verbs() -> Iterator[tuple[str, ...]]:
    """Every command and subcommand, as it is typed."""
    return below((), cli)


def below(typed: tuple[str, ...], command: click.Command | None) -> Iterator[tuple[str, ...]]:
    """Every command at and under ``command``, which is typed as ``typed``."""
    if not isinstance(command, click.Group):
        yield typed
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from below((*typed, name), command.get_command(context, name))


@pytest.mark.parametrize("verb", list(verbs()), ids=" ".join)
def test_every_verb_explains_itself(invoke, verb) -> None:
    """``--help`` works without a device or a store and shows one example of this very verb."""
    shown = invoke(*verb, "--help")
    assert shown.exit_code == 0, shown.output
    assert f"Example: torchgauge {' '.join(verb)}" in " ".join(shown.output.split())


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_earlier_name_runs_the_new_verb_and_is_not_shown(old: str, new: str) -> None:
    """With one line on standard error; a wrong option shows which verb took it."""
    done = CliRunner().invoke(cli, [*old.split(), "--no-such-option"])
    told, *rest = done.stderr.splitlines()
    assert told == f"`{old}` is now `{new}`; the old name works until 0.2"
    assert rest[0].startswith(f"Usage: cli {new.partition(' -')[0]} ")
    shown = CliRunner().invoke(cli, ["--help"]).stdout
    assert f"  {old} " not in shown or old in cli.verbs


def test_the_version_is_shown(process) -> None:
    """``--version`` is the package's own."""
    assert process("--version").stdout.strip().split("+")[0] == f"torchgauge, version {__version__}"


def test_a_failure_of_torchgauge_itself_is_no_regression(monkeypatch, capsys) -> None:
    """A verb whose module cannot be imported ends with 3, with the traceback and one message."""
    monkeypatch.setitem(cli.verbs, "validate", ("torchgauge.cli.no_such_module", ""))
    assert run_command(["validate"]) == 3
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.count("error: torchgauge itself failed: ModuleNotFoundError") == 1


def test_a_broken_installation_is_no_regression(tmp_path) -> None:
    """A package that the command line itself needs and that cannot be imported: exit 3, not 1."""
    (tmp_path / "click.py").write_text("raise ImportError('half installed')\n")
    start = [sys.executable, "-c", "from torchgauge.cli.start import main; main()", "validate"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(start, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "torchgauge itself failed: ImportError: half installed" in done.stderr) == (
        3,
        True,
    )


def test_an_unknown_verb_is_suggested(process) -> None:
    """A misspelt verb ends with 2 and the close one; a strange one without any."""
    done = process("rnu")
    assert (done.returncode, "Did you mean run" in done.stderr) == (2, True)
    done = process("xyzzy")
    assert (done.returncode, "Did you mean" in done.stderr) == (2, False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("suites", "list"),
        ("suites", "show", "toy"),
        ("plan", "toy", "--device", "fake"),
        ("validate",),
    ],
    ids=" ".join,
)
def test_machine_output_is_json(invoke, store, words) -> None:
    """With ``--json`` standard output is one JSON document and nothing else."""
    done = invoke(*(str(store) if word == "STORE" else word for word in words), "--json")
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)


@pytest.mark.torch
@pytest.mark.parametrize(
    "words", [("devices",), ("doctor", "--device", "cpu", "--no-calibration")], ids=" ".join
)
def test_machine_output_of_probes_is_json(process, words) -> None:
    """The probing verbs give JSON, too, whatever they find."""
    done = process(*words, "--json")
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    names = {entry["name"] for entry in (found["checks"] if words[0] == "doctor" else found)}
    assert names


def test_a_run_speaks_json_on_stdout_only(process, tmp_path) -> None:
    """Progress and summary of a run go to standard error, its report to standard output."""
    words = ("--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.1")
    done = process("run", "toy", *words, "--store", str(tmp_path / "store"), "--no-calibration", "--json")
    report = json.loads(done.stdout)
    assert (report["planned"], report["counts"], report["exit_code"]) == (1, {"pass": 1}, 0)
    (latency,) = report["latencies"]
    assert latency["low"] <= latency["median"] <= latency["high"]
    assert (latency["case"], latency["unit"]) == (CASE, "s")
    assert "1/1 pass" in done.stderr


@pytest.mark.parametrize("flag", ["-q", "-v"])
def test_a_run_says_less_or_more(process, tmp_path, flag) -> None:
    """Quiet is the summary alone; verbose has phases, and every number of the case."""
    words = ("--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.1")
    done = process("run", "toy", *words, "--store", str(tmp_path / "store"), "--no-calibration", flag)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1/1 pass") == 1
    assert (": measure, after" in done.stderr) is (flag == "-v")
    assert ("peak_memory" in done.stderr) is (flag == "-v")
    assert ("run 2" in done.stderr.splitlines()[0]) is (flag == "-v")


LOST = "error: output could not be written: "


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize(
    ("line", "code", "printed"),
    [
        ("torchgauge suites | head -c 0", 0, ""),
        ("torchgauge suites >/dev/full", 3, f"{LOST}No space left on device\n"),
        ("torchgauge suites list --json >/dev/full", 3, f"{LOST}No space left on device\n"),
        ("torchgauge suites >&-", 3, f"{LOST}Bad file descriptor\n"),
        ("GITHUB_ACTIONS=true torchgauge suites >&-", 3, f"{LOST}Bad file descriptor\n"),
        ("torchgauge suites >/dev/full 2>&1", 3, ""),
        ("torchgauge suites >&- 2>&-", 3, ""),
        ("torchgauge suites 2>&- | head -c 0", 0, ""),
        ("torchgauge ci plan --config nope 2>/dev/full", 2, ""),
        ("torchgauge ci plan --config nope 2>&-", 2, ""),
        ("torchgauge --no-such-option 2>&-", 2, ""),
    ],
)
def test_output_that_cannot_be_written_is_no_regression(line, code, printed) -> None:
    """A reader that left ends the command in peace; a full disk and a closed stream are no verdict."""
    command = f'torchgauge() {{ "{sys.executable}" -m torchgauge.cli.main "$@"; }}; set -o pipefail; {line}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (code, printed)


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/full/x"), "free disk space"),
        (RuntimeError("Could not determine home directory."), "set HOME"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "run the command again"),
    ],
)
def test_a_failure_of_the_machine_is_none_of_torchgauge(monkeypatch, capsys, error, printed) -> None:
    """What the machine lacks is named with what to do, without a traceback; never 1."""

    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(cli, "get_command", lambda *_: command)
    assert run_command(["validate"]) == 3
    said = capsys.readouterr().err
    assert said.endswith(f"\n  try: {printed}\n")
    assert "itself failed" not in said
    assert "Traceback" not in said
