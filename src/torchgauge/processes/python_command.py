"""Commands that start an interpreter without the current directory on its path.

Why: ``python -m`` and ``python -c`` import from the folder in which the user typed the command, and a folder
``timm`` there would be measured. Interpreters before 3.11 do not have the option for this.
"""

from __future__ import annotations

from pathlib import Path

OFF_THE_PATH = "import sys; sys.path[:] = filter(None, sys.path);"
"""First statement of a ``python -c``."""
_MODULE = "run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
_FILE = "run_path(sys.argv[0], run_name='__main__')"


def python_command(python: str, target: str | Path, *words: str) -> list[str]:
    """Return the command by which ``python`` runs ``target``, a module's name or a file, with ``words``."""
    run = _FILE if isinstance(target, Path) else _MODULE
    code = f"{OFF_THE_PATH} del sys.argv[0]; import runpy; runpy.{run}"
    return [python, "-c", code, str(target), *words]
