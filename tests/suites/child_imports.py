"""Child: import one half of the suites and print the heavy modules that came with it, as JSON."""

from __future__ import annotations

import importlib
import json
import sys

HEAVY = {
    "parent": ("torch", "torchvision", "timm", "transformers", "numpy"),
    "worker": ("torch", "torchvision", "timm", "transformers", "numpy", "msgspec", "yaml"),
}

half, *modules = sys.argv[1:]
for module in modules:
    importlib.import_module(module)
if half == "parent":
    from torchgauge.registry import load, names

    for name in names("torchgauge.suites"):
        load("torchgauge.suites", name).models()
print(json.dumps([name for name in HEAVY[half] if name in sys.modules]))
