"""Python starts with a clock on the wall that a file moves: on the path of a process, as ``sitecustomize``.

The file that ``TORCHGAUGE_TEST_CLOCK`` names holds seconds to be added, and may change at any time. Steady
clocks go on as ever.
"""

import os
import time
from pathlib import Path

_FILE = Path(os.environ.get("TORCHGAUGE_TEST_CLOCK", os.devnull))
_TRUE = time.time


def _moved() -> float:
    try:
        return _TRUE() + float(_FILE.read_text(encoding="ascii") or 0)
    except (OSError, ValueError):
        return _TRUE()


time.time = _moved
