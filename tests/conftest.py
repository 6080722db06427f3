"""No test keeps compiled code between runs, or finds what another one kept, unless it asks for it."""

from __future__ import annotations

import os


def pytest_configure() -> None:
    """Say so to every command that a test starts."""
    os.environ["TORCHGAUGE_COMPILE_CACHE"] = "none"
