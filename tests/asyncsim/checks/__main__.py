"""Runs one file of checks on the device and prints a JSON line for each."""

from __future__ import annotations

import importlib
import json
import sys
import traceback


def main(group: str) -> None:
    """Run the functions of checks/GROUP.py whose names begin with `check_`, in order."""
    module = importlib.import_module(group)
    for name in [name for name in vars(module) if name.startswith("check_")]:
        error = ""
        try:
            getattr(module, name)()
        except BaseException:  # noqa: BLE001  # a check must not hide the ones after it, whatever it raises
            error = traceback.format_exc()
        print(json.dumps({"check": name, "error": error}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
