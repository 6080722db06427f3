"""Stops the clock on the wall at the moment that ``FROZEN_NOW`` names: on the path of a process.

Steady clocks go on.
"""

import os
import time

_NOW = float(os.environ.get("FROZEN_NOW", "0")) or time.time()
time.time = lambda: _NOW
