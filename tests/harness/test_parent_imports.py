"""The parent plans, records and decides without ever importing torch or a model library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
from torchgauge.cli.main import main
heavy = ("torch", "torchvision", "transformers", "timm")
for command in json.loads(sys.argv[1]):
    sys.argv = ["torchgauge", *command]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, (command, stop.code)
    found = [name for name in heavy if name in sys.modules]
    assert not found, (command, found)
"""


def test_no_parent_command_imports_torch(sandbox) -> None:
    """Plan, run, results, suites, validate and dashboard leave the model libraries alone."""
    store = ["--store", str(sandbox.store_path)]
    commands = [
        ["--version"],
        ["suites", "list"],
        ["suites", "show", "timm"],
        ["validate"],
        ["plan", "timm", "huggingface", "toy", "--device", "cpu", "--mode", "inference,training"],
        ["run", "toy", "--models", "noop,mlp", "--device", "fake", *sandbox.quick, *store],
        ["results", "list", *store],
        ["results", "query", "status=pass", *store],
        ["results", "show", "toy/noop:inference:float32:b1:eager@fake", *store],
        [
            "dashboard",
            "build",
            str(sandbox.store_path),
            "--out",
            str(sandbox.store_path.with_name("site")),
        ],
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.torch
def test_a_run_on_a_torch_device_imports_torch_in_the_worker_only(sandbox) -> None:
    """Even while real models run, the command's own process has no torch."""
    store = ["--store", str(sandbox.store_path)]
    words = ["run", "toy", "--models", "mlp", "--device", "cpu", "--config", "eager", *sandbox.quick, *store]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([words])],
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert sandbox.rows()[0].status.value == "pass"
