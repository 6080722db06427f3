"""Where the compiled code of a row came from, as its facts and measurements say."""

from __future__ import annotations

from enum import Enum

from torchgauge.harness.compile_cache import EMPTY, FACT, KEPT, NEW
from torchgauge.records import Result


class CodeOrigin(str, Enum):
    """In the order in which people are told; the values are the words that they read."""

    COLD = "sampled cold"
    FOUND = "from the kept cache"
    NEW = "new to the kept cache"
    AGAIN = "compiled again without the kept cache"
    ALONE = "without a kept cache"


def code_origin(result: Result) -> CodeOrigin | None:
    """The origin of the code of ``result``; None where nothing was compiled, or not far enough to know."""
    said = str(dict(result.facts).get(FACT, ""))
    if any(each.metric == "compile_cold" and each.samples for each in result.measurements):
        return CodeOrigin.COLD
    if said.startswith(KEPT):
        return CodeOrigin.NEW if said == NEW else CodeOrigin.FOUND
    if said.startswith(f"{EMPTY}, "):
        return CodeOrigin.AGAIN
    return CodeOrigin.ALONE if said else None
