"""How an interpreter comes to torchgauge's worker half: our installed tree, or a private copy of it.

Why: another interpreter must see the package and nothing else of this environment. The folder that holds an
installed package is a ``site-packages``, so for a foreign interpreter the package's own tree is copied.
"""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from pathlib import Path

import torchgauge
from torchgauge.results.atomic_file import storage_errors

PACKAGE = Path(torchgauge.__file__).resolve().parent
COPY = "package"
"""Name of the copy's folder among the scratch files of a run."""
LOCKED = "torchgauge-locked"
"""A file of this name marks an environment that holds what was locked, and gets nothing from elsewhere."""


def is_own(python: str) -> bool:
    """Whether ``python`` is the interpreter of this process, under whatever name its folder gives it.

    Links are not followed: the interpreter of a virtual environment is a link out of it.
    """
    ours, other = Path(sys.executable), Path(python)
    if ours == other:
        return True
    try:
        return ours.parent.samefile(other.parent) and ours.samefile(other)
    except OSError:
        return False


def tree_for(python: str, folder: Path) -> Path:
    """The folder on the path of ``python`` in which the package lies.

    For a foreign interpreter that is a copy in ``folder``, made when it is first asked for.
    """
    if is_own(python):
        return PACKAGE.parent
    tree = folder / COPY
    if not tree.exists():
        with storage_errors(tree):
            shutil.copytree(PACKAGE, tree / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tree


def environment_for(python: str, tree: Path | None = None) -> dict[str, str]:
    """Variables, on top of ours, that lead ``python`` to ``tree`` first.

    A foreign interpreter keeps what the user has put on ``PYTHONPATH``, but for the folders of this one. One
    of an environment that is marked as :data:`LOCKED` keeps none of it: another torch would be imported.
    """
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    entries = [str(Path(entry).absolute()) for entry in named]
    variables = {}
    if not is_own(python):
        entries = [entry for entry in entries if Path(entry).resolve() not in _our_folders()]
        # Empty means unset; older Pythons take even that for a place, so it is said only where it must be.
        variables = {"PYTHONHOME": ""} if "PYTHONHOME" in os.environ else {}
        if (Path(python).parent.parent / LOCKED).is_file():
            entries = []
    path = [*([] if tree is None else [str(tree)]), *entries]
    return {**variables, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


def _our_folders() -> set[Path]:
    """Folders from which this process imports what is installed."""
    paths = sysconfig.get_paths()
    named = [*site.getsitepackages(), paths["purelib"], paths["platlib"], str(PACKAGE.parent)]
    return {Path(name).resolve() for name in named}
