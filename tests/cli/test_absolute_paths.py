"""What a worker or a build command is handed names no relative path: it may work in another folder."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge.harness.pool.host_process import HostProcess
from torchgauge.processes.kept_process import KeptProcess

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
HERE = sys.executable
SUM = ("--device", "fake", "--config", "eager", "--threads", "1")
TWICE = ("toy", "--models", "sum", *SUM, "--max-launches", "3")
OTHER = ("--head-env", "OTHER=1", "--no-control")
STORE = "results-here"
COMMANDS = {
    "run": ("run", "toy", "--models", "sum,mlp", "--device", "cpu,fake", "--config", "eager",
            "--no-calibration", "--measure-seconds", "0.1"),
    "ab": ("ab", *TWICE, *OTHER),
    "matrix": ("matrix", *TWICE, "--python", f"a={HERE}", "--python", f"b={HERE}"),
    "bisect": ("bisect", "toy/sum", "--device", "fake", "--builds", "builds.yaml"),
}  # fmt: skip
BUILDS = """
builds: [{label: a, spec: one}, {label: b, spec: two}]
install: ["{python}", -c, "print('nothing to install')"]
"""


def texts(value: Any) -> Iterator[str]:
    """Every text in a decoded JSON value."""
    if isinstance(value, str):
        yield from value.split(os.pathsep)
    elif isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


@pytest.fixture
def handed(tmp_path, monkeypatch) -> list[str]:
    """Every text that any process or worker is started with, from now on, in a folder of our own."""
    found: list[str] = []
    begin, run = KeptProcess.__init__, HostProcess.run

    def started(self, command, environment, **options):
        found.extend(texts([*command, *environment.values(), str(options.get("cwd") or "/")]))
        begin(self, command, environment, **options)

    def told(self, **order):
        found.extend(texts(order))
        found.extend(texts(json.loads(Path(order["job"]).read_text())))
        run(self, **order)

    monkeypatch.setattr(KeptProcess, "__init__", started)
    monkeypatch.setattr(HostProcess, "run", told)
    monkeypatch.chdir(tmp_path)
    Path("library").mkdir()
    Path("builds.yaml").write_text(BUILDS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["library", str(SOURCE)]))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_no_path_is_relative_with_a_relative_store(invoke, handed, name):
    """Whatever begins with a folder of the current one would be another place elsewhere."""
    done = invoke(*COMMANDS[name], "--store", STORE)
    assert Path(STORE).is_dir(), done.output
    assert any(STORE in text for text in handed), done.output
    there = {each.name for each in Path().iterdir()}
    assert [text for text in handed if Path(text).parts[:1] and Path(text).parts[0] in there] == []
