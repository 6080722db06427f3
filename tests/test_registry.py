"""Plugins, ours and others', come through one door."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge import registry
from torchgauge.errors import InfrastructureError, UnknownNameError
from torchgauge.testing import check_suite

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("group", registry.GROUPS)
def test_every_built_in_plugin_loads(group: str) -> None:
    """Each line of the built-in table names something that exists and calls itself so."""
    for name in registry.names(group):  # may be empty: a group may be for others' plugins alone
        assert registry.load(group, name).name == name


@pytest.mark.parametrize("suite", registry.names("torchgauge.suites"))
def test_built_in_suites_pass_the_public_check(suite: str) -> None:
    """What suite authors are told to call finds nothing wrong with ours."""
    assert check_suite(registry.load("torchgauge.suites", suite)) == []


def test_unknown_name_has_a_suggestion() -> None:
    """A near miss is answered with the name that was meant."""
    with pytest.raises(UnknownNameError, match="did you mean timm") as caught:
        registry.load("torchgauge.suites", "tim")
    assert caught.value.exit_code == 2


def install(folder: Path, name: str, value: str) -> None:
    """Write the metadata of a package with one suite."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[torchgauge.suites]\n{value}\n")


def ask(folder: Path, expression: str) -> str:
    """What ``expression`` prints in an interpreter that has the packages of ``folder``."""
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    script = f"from torchgauge import registry\ntry: print({expression})\nexcept Exception as e: print(e)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.stdout


def test_plugin_cannot_silently_replace_a_built_in(tmp_path: Path) -> None:
    """Two plugins of one name are an error that names both."""
    install(tmp_path, "impostor", "timm = impostor:SUITE")
    said = ask(tmp_path, "registry.load('torchgauge.suites', 'timm')")
    assert "have the name 'timm'" in said
    assert "impostor:SUITE" in said
    assert ask(tmp_path, "registry.load('torchgauge.suites', 'toy').name").strip() == "toy"


BAD = {
    "exits": ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
    "leaves": ("import os; os._exit(5)", "cannot be loaded: SystemExit: os._exit(5)"),
    "forks": (
        "import os\nif not os.fork(): os._exit(0)\nos.wait(); raise ValueError('still here')",
        "cannot be loaded: ValueError: still here",
    ),
    "base": ("raise BaseException('base')", "cannot be loaded: BaseException: base"),
    "hangs": ("import time; time.sleep(600)", "cannot be loaded: TimeoutError: the plugin takes longer than"),
    "nothing": ("SUITE = None", "has no name, doc, builder"),
    "half": ("class A: name = 'half'\nSUITE = A()", "has no doc, builder, preload"),
    "klass": ("class SUITE: pass", "is a class, not an instance"),
    "other": (
        "from torchgauge.suites.toy.suite import SUITE; print('not an answer')",
        "has another name in its code: 'toy'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_module_does_when_it_is_imported_is_an_error_with_its_name(tmp_path: Path, name: str) -> None:
    """It neither ends nor stops the command, nor speaks in its place."""
    install(tmp_path, name, f"{name} = {name}_module:SUITE")
    (tmp_path / f"{name}_module.py").write_text(BAD[name][0])
    said = ask(
        tmp_path, f"setattr(registry, 'PATIENCE_S', 0.3) or registry.load('torchgauge.suites', '{name}')"
    )
    assert said.startswith(f"plugin '{name}' of torchgauge.suites ({name}_module:SUITE) {BAD[name][1]}"), said


def test_a_module_that_crashes_the_command_is_in_its_last_words(tmp_path: Path) -> None:
    """No process survives a signal of an extension; whose line it was stands on standard error."""
    install(tmp_path, "crashes", "crashes = crashing_module:SUITE")
    (tmp_path / "crashing_module.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "suites", "list"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])},
    )
    assert done.returncode == -signal.SIGSEGV
    assert 'crashing_module.py", line 2' in done.stderr


def test_a_name_is_a_word(tmp_path: Path) -> None:
    """It becomes part of case ids and of files' names."""
    install(tmp_path, "slash", "a/b = slash:SUITE")
    (tmp_path / "slash.py").write_text("SUITE = None")
    said = ask(tmp_path, "registry.load('torchgauge.suites', 'a/b')")
    assert "has a name with characters other than" in said


def test_a_broken_suite_is_listed_with_its_reason_and_the_others_as_ever(tmp_path: Path) -> None:
    """One package cannot take the list of suites away."""
    install(tmp_path, "broken", "broken = broken_module:SUITE")
    (tmp_path / "broken_module.py").write_text("raise SystemExit(0)")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "suites", "list", "--json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])},
    )
    assert done.returncode == 3
    listed = json.loads(done.stdout)
    assert listed["broken"] is None
    assert "mlp" in listed["toy"]
    assert "plugin 'broken' of torchgauge.suites" in done.stderr


def test_broken_plugin_is_named_and_others_still_load(tmp_path: Path) -> None:
    """A plugin whose module is missing is an infrastructure error; the rest of the door stays open."""
    install(tmp_path, "broken", "broken = nowhere_to_be_found:SUITE")
    said = ask(tmp_path, "registry.load('torchgauge.suites', 'broken')")
    assert "cannot be loaded: ModuleNotFoundError" in said
    assert "uninstall the package" in said
    assert ask(tmp_path, "registry.load('torchgauge.suites', 'toy').name").strip() == "toy"
    assert InfrastructureError.exit_code == 3
