"""Lists of devices that other sources use."""

import re

SUPPORTED = ("cuda", "cpu", "xpu")
FAST = frozenset({"cuda"}) | {"xpu"}
DEVICE_PATTERN = re.compile(r"^(cuda|cpu)(:\d+)?$")
