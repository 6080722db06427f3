"""Runs in a foreign interpreter, from a copy of the package: which plugins are there, and what they declare.

Usage: ``python -m torchgauge.harness.interpreter.plugin_child REPORT TASK [ARGUMENT...]``. Appends one line
of JSON to REPORT: the task with its answer, or what was raised. Standard library only; plugins import what
they like.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any

from torchgauge import registry
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.records import METRICS, Configuration, Metric, Workload, from_plain, to_json
from torchgauge.registry import GROUPS, resolve
from torchgauge.suites.model_code import builder_file


def main(arguments: list[str]) -> int:
    """Answer one question; an exception is an answer as well."""
    report, task, *rest = arguments
    code = 0
    try:
        stage, data = task, TASKS[task](*rest)
    except BaseException as error:  # noqa: BLE001  the top of the child: a plugin may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name
        data = {"error": f"{type(error).__name__}: {error}", "missing": missing or ""}
        stage, code = "raised", 1
    with Path(report).open("a", encoding="utf-8") as file:
        file.write(to_json({"stage": stage, "data": data}) + "\n")
    return code


def plugins() -> list[dict[str, str]]:
    """Group, name, value, package and version of every installed plugin."""
    return [
        {
            "group": group,
            "name": point.name,
            "value": point.value,
            "package": point.dist.name if point.dist is not None else "",
            "version": point.dist.version if point.dist is not None else "",
        }
        for group in GROUPS
        for point in metadata.entry_points(group=group)
    ]


def suite(reference: str) -> dict[str, Any]:
    """The suite as plain data."""
    found = resolve(reference)
    names = ("name", "doc", "builder", "preload", "install_hint", "digest")
    later: dict[str, Any] = {  # suites that say none of them lack them
        "unavailable": None,
        "environment": {},
        "notes": (),
        "scenarios": {},
        "checker": "",
    }
    return {
        **{name: getattr(found, name) for name in names},
        **{name: getattr(found, name, default) for name, default in later.items()},
        "entries": found.models(),
        "source": str(builder_file(found.builder) or ""),
    }


def device(reference: str) -> dict[str, Any]:
    """The device as plain data, and whether it refuses cases by code of its own."""
    found = resolve(reference)
    names = [item.name for item in fields(DeviceDescriptor) if hasattr(found, item.name)]
    own = getattr(type(found), "cannot_run", None) is not DeviceDescriptor.cannot_run
    return {
        **{name: getattr(found, name) for name in names},
        "fixed_environment": found.environment(()),
        "reference": reference,
        "refuses": own,
    }


def refusals(reference: str, cases: str) -> list[str | None]:
    """What the device says of each workload and configuration in the file ``cases``."""
    found = resolve(reference)
    pairs = json.loads(Path(cases).read_text(encoding="utf-8"))
    return [
        found.cannot_run(from_plain(Workload, workload), from_plain(Configuration, configuration))
        for workload, configuration in pairs
    ]


def metrics() -> list[Metric]:
    """The metrics that packages declare beside the table."""
    return [metric for name, metric in registry.metrics().items() if name not in METRICS]


TASKS: dict[str, Callable[..., Any]] = {
    "plugins": plugins,
    "suite": suite,
    "device": device,
    "refusals": refusals,
    "metrics": metrics,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
