"""The section on several machines is followed on one: its commands are typed, with models without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import ROOT

GUIDE = ROOT / "docs" / "how-to" / "run-on-a-cluster.md"
GROUPS = re.compile(r"(?<=plan\.json )([0-9a-f]{16}(?: [0-9a-f]{16})*)")
QUICK = {"timm --tier smoke --device cpu": "toy --tier smoke --device fake --config eager --no-calibration"}


def test_parts_of_a_plan_become_one_run(tmp_path: Path) -> None:
    """As the page says it: a plan, a worker for each machine, and one run with a row for every case."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TORCHGAUGE_")},
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    section = GUIDE.read_text(encoding="utf-8").partition("## Any machines\n")[2]
    commands = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    verbs = [command.split()[1] for command in commands]
    assert verbs == ["plan", "-r", "worker", "worker", "results"]
    ids: list[str] = []
    parts = iter((slice(0, 1), slice(1, None)))  # the ids of the page are no plan's
    for command, verb in zip(commands, verbs, strict=True):
        if verb == "-r":  # what jq prints
            ids = [group["id"] for group in json.loads((tmp_path / "plan.json").read_text())["groups"]]
            continue
        for slow, quick in QUICK.items():
            command = command.replace(slow, quick)  # noqa: PLW2901
        if verb == "worker":
            command, replaced = GROUPS.subn(" ".join(ids[next(parts)]), command)  # noqa: PLW2901
            assert replaced == 1
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"
    (run,) = (tmp_path / "torchgauge-results" / "runs").iterdir()
    rows = (run / "journal.jsonl").read_text().count('"kind":"result"')
    assert rows == len(ids) == 7
