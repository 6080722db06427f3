"""The steps of docs/how-to/bring-up-a-device.md are typed as they stand, with the simulated device."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "bring-up-a-device.md"
# A doctor may find a busy machine unfit to measure on. One sample of layer_norm differs from the host in the
# fourth digit on the simulated device, and `ops` says so with its exit code.
ENDINGS = {"doctor": {0, 3}, "ops": {0, 1}}


def commands() -> list[str]:
    """Every command of a console block, in order."""
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return [
        line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


@pytest.mark.torch
def test_the_way_to_a_green_card_can_be_walked(tmp_path: Path) -> None:
    """Each command ends as the guide says; pip builds the package offline, into a folder of this test."""
    work, home, site = tmp_path / "work", tmp_path / "home", tmp_path / "site-packages"
    for folder in (work, home, site):
        folder.mkdir()
    (work / "packages").symlink_to(ROOT / "packages")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TORCHGAUGE_") and name != "TORCH_DEVICE_BACKEND_AUTOLOAD"
    }
    environment = {
        **inherited,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])]),
        "OMP_NUM_THREADS": "1",
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads the value as that of build isolation
    }
    if not any(each.value == "torchgauge.pytest_plugin" for each in metadata.entry_points(group="pytest11")):
        environment["PYTEST_ADDOPTS"] = "-p torchgauge.pytest_plugin"
    typed = commands()
    verbs = {word.split()[1] for word in typed if word.startswith("torchgauge")}
    assert {"devices", "doctor", "check", "ops", "run"} <= verbs
    said = {}
    for command in typed:
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            capture_output=True,
            text=True,
            cwd=work,
            env=environment,
            timeout=900,
        )
        allowed = ENDINGS.get(command.split()[1], {0})
        assert done.returncode in allowed, f"$ {command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        said[command] = done.stdout
    assert (site / "torchgauge_npusim" / "__init__.py").is_file()
    card = said["torchgauge check --device npusim"]
    assert re.search(r"npusim: \d{3} of \d{3} checks pass", card)
    assert "unexpected" not in card
    assert said["torchgauge ops blockers --device npusim"].strip()
