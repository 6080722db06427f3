"""Backend ``eager``: operator by operator, as written; what every other backend is judged against."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.backends.backend import EAGER, BackendDescriptor
from torchgauge.harness.backends.prepared import Prepared

BACKEND = BackendDescriptor(
    name=EAGER, doc="operator by operator, as written", implementation=__name__, takes=("memory_format",)
)


def prepare(subject: Any, _configuration: Any, _session: Any) -> Prepared:
    """The module itself."""
    return Prepared(subject.module)
