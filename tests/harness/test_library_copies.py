"""Which copy of a library is measured: never that of the typed folder, and rows name it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import torchgauge

pytestmark = pytest.mark.torch
QUICK = (
    "--config", "eager", "--mode", "inference", "--device", "cpu", "--measure-seconds", "0.02",
    "--no-memory-probe", "--no-calibration", "--no-accuracy", "--prefetch", "1", "--quiet-wait", "0",
)  # fmt: skip
SOURCE = Path(torchgauge.__file__).parents[1]


def cli(folder: Path, *arguments: str, path: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Type one torchgauge command in ``folder``, with ``path`` before the source on ``PYTHONPATH``."""
    variables = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{SOURCE}", "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(
        [sys.executable, "-P", "-m", "torchgauge.cli.main", *arguments],
        capture_output=True, text=True, check=False, env=variables, cwd=folder,
    )  # fmt: skip


def rows(store: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Return status, environment and facts of each row, oldest first."""
    done = cli(store.parent, "results", "query", "--json", "--store", str(store))
    listed = sorted(json.loads(done.stdout), key=lambda row: row["run_id"])
    return [(row["status"], row["environment_id"], json.loads(row["facts"] or "{}")) for row in listed]


def installed(folder: Path) -> Path:
    """Copy the installed timm with its record into ``folder``, with the times of its files."""
    for file in metadata.files("timm") or ():
        if file.parts[0] in {"timm", f"timm-{metadata.version('timm')}.dist-info"} and file.suffix != ".pyc":
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.locate(), target)
    return folder


def test_files_of_equal_size_and_time_and_new_files_change_a_library(tmp_path: Path) -> None:
    """Neither changes the version, the record or the time of a file's content."""
    whole = installed(tmp_path / "whole")
    script = Path(torchgauge.__file__).with_name("devices") / "library.py"

    def copy_of_timm() -> str:
        variables = {**os.environ, "PYTHONPATH": str(whole)}
        done = subprocess.run(
            [sys.executable, str(script), "timm"], capture_output=True, text=True, check=True, env=variables
        )
        return str(json.loads(done.stdout)["timm"])

    first = copy_of_timm()
    assert "edited" not in first
    file, added = whole / "timm" / "layers" / "drop.py", whole / "timm" / "layers" / "added.py"
    text, times = file.read_text(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text(text.replace("Drop", "drop", 1))
    os.utime(file, ns=times)
    edited = copy_of_timm()
    file.write_text(text)
    assert copy_of_timm() == first
    added.write_text("")
    os.utime(added, ns=times)
    more = copy_of_timm()
    assert f"edited: timm/layers/drop.py in {whole}" in edited
    assert f"edited: timm/layers/added.py in {whole}" in more
    assert len({copy.split()[1] for copy in (first, edited, more)}) == 3


@pytest.mark.parametrize("warm", [True, False])
def test_modules_of_the_typed_folder_are_not_measured(tmp_path: Path, warm: bool) -> None:
    """Packages and files there raise when they are imported; empty entries of the path do not reach them.

    A worker that is not forked from its host does not find them either.
    """
    for name in ("timm/__init__.py", "torch/__init__.py", "transformers.py", "torchvision.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('the typed folder was imported')\n")
    store = tmp_path / "store"
    if not warm:  # where imports start threads, workers are not forked
        thread = "threading.Thread(target=time.sleep, args=[1e6], daemon=True).start()"
        code = f"import threading, time\n{thread}\n"
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(code)
    path = "" if warm else f"{tmp_path / 'site'}{os.pathsep}"
    words = ("run", "timm", "--models", "resnet18", *QUICK, "--store", str(store))
    done = cli(tmp_path, *words, path=path)
    assert done.returncode == 0, done.stderr
    listed = rows(store)
    assert {status for status, _, _ in listed} == {"pass"}
    for _, _, facts in listed:
        assert facts["library.torch"].startswith(metadata.version("torch"))
        assert "shadowed" not in facts or "timm" not in facts["shadowed"]


def test_another_copy_of_a_library_is_named_on_rows_and_between_runs(tmp_path: Path) -> None:
    """A folder on ``PYTHONPATH`` and a file that is edited in place differ by digest, at one version.

    ``compare`` and ``trend`` name both, and a plan does not go on over another copy.
    """
    store, version = tmp_path / "store", metadata.version("timm")
    bare, whole = tmp_path / "bare", installed(tmp_path / "whole")
    shutil.copytree(whole / "timm", bare / "timm")
    other = bare / "timm" / "layers" / "drop.py"
    other.write_text(f"{other.read_text()}# another\n")
    words = (*QUICK, "--store", str(store))
    for path in (whole, bare, bare):
        done = cli(tmp_path, "run", "timm", "--models", "resnet18", *words, path=str(path))
        assert done.returncode == 0, done.stderr
    begun = cli(
        tmp_path, "run", "timm", "--models", "resnet18,levit_128", *words, "--budget", "0.1", path=str(whole)
    )
    assert "Continue with: torchgauge run --resume" in begun.stderr, begun.stderr
    edited = whole / "timm" / "layers" / "drop.py"
    text = edited.read_text()
    edited.write_text(text.replace("Drop", "drop", 1))
    resumed = cli(tmp_path, "run", "--resume", "latest", "--store", str(store), path=str(whole))
    assert resumed.returncode == 2, resumed.stderr
    assert "the library 'timm of " in resumed.stderr
    cli(tmp_path, "run", "timm", "--models", "resnet18", *words, path=str(whole))

    taken = [each for each in rows(store) if each[0] == "pass"]
    first, second, *_, last = (facts for _, _, facts in taken)
    digests = [
        facts["library.timm"].removeprefix(f"{version} ").split()[0] for facts in (first, second, last)
    ]
    assert len(set(digests)) == 3
    assert first["library.timm"] == f"{version} {digests[0]} in {whole}"
    assert second["library.timm"] == f"{digests[1]} in {bare}"
    assert last["library.timm"] == f"{version} {digests[2]} edited: timm/layers/drop.py in {whole}"
    assert f"timm in {bare} hides timm in " in second["shadowed"]
    assert len({environment for _, environment, _ in (*taken[:2], taken[-1])}) == 3
    compare = ("compare", "--store", str(store))
    changed = cli(tmp_path, *compare, "latest~4", "latest~3").stdout
    assert f"differs: library.timm: {first['library.timm']} -> {second['library.timm']}" in changed
    assert f"-> {second['shadowed']}" in changed
    assert (
        f"on both sides: shadowed: {second['shadowed']}"
        in cli(tmp_path, *compare, "latest~3", "latest~2").stdout
    )
    assert "edited: timm/layers/drop.py" in cli(tmp_path, *compare, "latest~2", "latest").stdout
    assert "model code changed on" in cli(tmp_path, "results", "trend", "--store", str(store)).stdout
