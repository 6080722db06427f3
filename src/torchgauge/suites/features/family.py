"""The family of a feature, with which the name of its model begins: ``compile.regional-stack4``."""

from __future__ import annotations

NAME = "features"
"""The suite."""
PACKAGE = "torchgauge.suites.features"


def family_of(model: str) -> str:
    """What stands before the first hyphen in the name of ``model``."""
    return model.partition("-")[0]


def module_of(family: str) -> str:
    """The module that builds the networks of ``family``."""
    return f"{PACKAGE}.{family.replace('.', '_')}"
