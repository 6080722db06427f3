"""Child: import torchvision with or without the missing schemas; print what happened as JSON."""

from __future__ import annotations

import importlib
import json
import sys


def attempt() -> str:
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        return str(error)
    return ""


def main(order: str) -> None:
    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    facts: dict[str, object] = {}
    if order == "import-first":
        facts["plain"] = attempt()
    facts["notes"] = [list(define_missing_schemas()), list(define_missing_schemas())]
    facts["after"] = attempt()
    facts["again"] = list(define_missing_schemas())
    facts["transforms"] = hasattr(sys.modules.get("torchvision"), "transforms")
    print(json.dumps(facts))


main(sys.argv[1])
