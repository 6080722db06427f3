"""``torchgauge suites install``: real environments, a real pip, and an index that is a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from torchgauge.errors import InfrastructureError, NothingSelectedError, UsageError
from torchgauge.harness.interpreter.install import (
    install,
    plan_installation,
    plan_text,
    report_text,
)
from torchgauge.harness.interpreter.packages import installed_in, package_checks, suspects
from torchgauge.suites.suite import ModelEntry

TORCH = "2.13.0+cpu"


def describe(site: Path, name: str, version: str) -> None:
    """The metadata that an installer leaves, of a package that need not work."""
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text(f"{folder.name}/METADATA,,\n")


def wheel(index: Path, name: str, version: str, *requires: str) -> None:
    """A wheel of one empty module in the folder that is the index."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "timm", "9.9")
    wheel(folder, "tgplain", "1.0")
    wheel(folder, "tgplain", "2.0")
    wheel(folder, "tggreedy", "1.0", "torch==1.0")
    wheel(folder, "torch", "1.0")
    wheel(folder, "tgspeaks", "1.0", "torchaudio")
    wheel(folder, "torchaudio", "2.1.0")
    wheel(folder, "detectron2", "0.6", "tgplain<2")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip, in which a torch is installed for all that pip can tell."""
    folder = tmp_path_factory.mktemp("env")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # Linked: installing it would take longer than all tests. Not imported: setuptools would take that for a
    # process of pip, and refuse to bring distutils for the tests that need it.
    ours = Path(sysconfig.get_path("purelib")) / "pip"
    for path in (ours, *ours.parent.glob("pip-*.dist-info")):
        (site / path.name).symlink_to(path)
    describe(site, "torch", TORCH)
    return folder


@pytest.fixture
def offline(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)


def entry(name: str, *requirements: str) -> ModelEntry:
    return ModelEntry(
        name, ("full",), {"inference": 1}, packages=("torch",), recipe={"requirements": list(requirements)}
    )


@pytest.mark.usefixtures("offline")
def test_what_fails_is_a_line_and_torch_stays(made: Path) -> None:
    """Models are named with what they lack, and what comes last changes nothing that is there.

    A package that is nowhere fails, and so do one that wants another torch, and one that wants a torchaudio,
    of which none fits.
    """
    python = str(made / "bin" / "python")
    entries = [
        entry("plain", "tgplain"),
        entry("absent", "tgabsent", "tgplain"),
        entry("greedy", "tggreedy"),
        entry("speaks", "tgspeaks"),
        entry("last", "detectron2"),
    ]
    planned = plan_installation(python, "mine", entries)
    assert planned.constraints[0] == f"torch=={TORCH}"
    said: list[str] = []
    ended = install(planned, said.append)
    versions = installed_in(python)
    assert versions["torch"] == TORCH
    assert versions["tgplain"] == "2.0"
    assert not {"tgabsent", "tggreedy", "tgspeaks", "torchaudio", "detectron2"} & set(versions)
    assert [step.need.name for step in ended.steps if not step.failed] == ["tgplain"]
    reasons = {step.need.name: step.reason for step in ended.steps if step.failed}
    assert set(reasons) == {"tgabsent", "tggreedy", "tgspeaks", "detectron2"}
    assert "tgabsent" in reasons["tgabsent"]
    assert dict(ended.skipped) == {
        "absent": ("tgabsent",),
        "greedy": ("tggreedy",),
        "speaks": ("tgspeaks",),
        "last": ("detectron2",),
    }
    assert ended.failed
    assert len(said) == 5
    text = "\n".join(report_text(ended))
    assert "1 of 5 packages are installed" in text
    assert "4 models stay skipped: missing_package" in text
    assert reasons["tgabsent"] in text


@pytest.mark.usefixtures("offline")
def test_what_would_not_import_and_what_pip_does_not_bring_is_named(made: Path, tmp_path: Path) -> None:
    """A diffusers of 2024 does not import beside transformers 5, and triton comes with a build of torch.

    Both models are counted among those that stay skipped, and ``suites show`` prints what is missing there.
    A build of triton under another name is triton.
    """
    (site,) = made.glob("lib/python*/site-packages")
    python = str(made / "bin" / "python")
    describe(site, "transformers", "5.23.0")
    entries = [entry("unet", "diffusers==0.30.3"), entry("kernels", "triton"), entry("plain", "tgplain")]
    planned = plan_installation(python, "mine", entries)
    assert "triton is not installed: a build of torch for a GPU brings it" in plan_text(planned)
    ended = install(planned, lambda _: None)
    assert not {"diffusers", "triton"} & set(installed_in(python))
    assert set(ended.skipped) == {"unet", "kernels"}
    reasons = {step.need.name: step.reason for step in ended.steps}
    assert "diffusers 0.30.3 beside transformers 5.23.0 breaks" in reasons["diffusers"]
    show = [sys.executable, "-m", "torchgauge.cli.main", "suites", "show", "torchbench", "--python", python]
    lines = []
    for name in ("boto3", "pytorch-triton-rocm", "tabulate"):
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stderr
        assert f"try: torchgauge suites install torchbench --python {python}" in shown
        lines.append(next(line for line in shown.splitlines() if line.startswith("needs: ")))
        describe(site, name, "1.0")
    assert "fbgemm-gpu-nightly" not in lines[0]  # only canaries need it, and `suites install` leaves them out
    packages = [set(line.removeprefix("needs: ").partition(";")[0].split(", ")) for line in lines]
    assert (packages[0] - packages[1], packages[1] - packages[2]) == ({"boto3"}, {"triton"})


@pytest.mark.usefixtures("offline")
def test_the_command_installs_into_the_workers_interpreter(made: Path, tmp_path: Path) -> None:
    """``--dry-run`` changes nothing; without a yes nothing is done; ``--yes`` installs the family."""
    command = [
        sys.executable,
        "-m",
        "torchgauge.cli.main",
        "suites",
        "install",
        "timm",
        "--python",
        str(made),
    ]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ),
        )

    shown = run("--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "-m pip install --no-input -c CONSTRAINTS timm" in shown.stdout
    assert f"torch=={TORCH}" in shown.stdout
    refused = run()
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert "timm" not in installed_in(str(made / "bin" / "python"))
    done = run("--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"][0]["after"] == "9.9"
    assert installed_in(str(made / "bin" / "python"))["timm"] == "9.9"
    unknown = run("--models", "resnet1_8", "--dry-run")
    assert (unknown.returncode, "resnet18" in unknown.stderr) == (2, True)


@pytest.mark.usefixtures("offline")
def test_an_interpreter_without_torch_is_given_none(tmp_path: Path) -> None:
    """Pip would choose one; and one without pip, or models that need nothing, are told apart."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(tmp_path / "bare")
    python = str(tmp_path / "bare" / "bin" / "python")
    with pytest.raises(UsageError, match="so pip would choose the version"):
        plan_installation(python, "mine", [entry("plain", "tgplain")])
    (site,) = (tmp_path / "bare").glob("lib/python*/site-packages")
    describe(site, "torch", TORCH)
    with pytest.raises(NothingSelectedError):
        plan_installation(python, "mine", [entry("bare")])
    planned = plan_installation(python, "mine", [entry("plain", "tgplain", "torch_sparse")])
    assert plan_text(planned)[-1].endswith(
        "--no-build-isolation torch_sparse  (last: compiled against torch)"
    )
    with pytest.raises(InfrastructureError, match="no working pip"):
        install(planned, print)


def test_a_conflict_is_found_by_its_metadata_in_another_interpreter(tmp_path: Path) -> None:
    """Nothing of it is imported: here there is nothing to import. What fits is no conflict."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(tmp_path / "env")
    python = str(tmp_path / "env" / "bin" / "python")
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    describe(site, "torch", "2.13.0")
    assert [check.state.value for check in package_checks(python)] == ["ok"]
    describe(site, "torchaudio", "2.1.0")
    describe(site, "torchvision", "0.28.0")
    (check,) = package_checks(python)
    assert (check.name, check.state.value) == ("torchaudio", "warn")
    assert "built for torch 2.1" in check.message
    assert "models of transformers" in check.message
    assert check.fix == f"{python} -m pip uninstall -y torchaudio"
    found = {each.package: each for each in suspects(installed_in(python))}
    assert found["torchaudio"].why
    assert not found["torchvision"].why


def test_an_interpreter_that_does_not_answer_is_said(tmp_path: Path) -> None:
    """A program that is no Python says nothing of packages."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no idea\n")
    program.chmod(0o755)
    with pytest.raises(InfrastructureError, match="does not list its packages: no idea"):
        installed_in(str(program))
    assert [check.state.value for check in package_checks(str(program))] == ["warn"]
