"""What a back end keeps outside of a program: global variables beside the program's class are its state."""

from __future__ import annotations

import itertools
import random
from typing import Any

LATE: list[int] = []
"""One item for each call of a program that is wrong in later calls."""
KEPT: list[Any] = []
"""Values of earlier calls."""
CLOCK: list[float] = []
"""The time of the first call."""
CALLS = itertools.count()
"""The number of calls in this process."""
DICE = random.Random()
"""A generator that the system's entropy seeds."""
