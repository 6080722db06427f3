"""Import once what many of TorchBench's models import, so that every worker is forked with it.

A package that is missing is left out here: only the models that need it are skipped. TorchBench itself is not
among them: it changes the process that imports it.
"""

from __future__ import annotations

import importlib

from torchgauge.suites.torchvision_schemas import define_missing_schemas

LIBRARIES = ("torchvision", "timm", "transformers.modeling_utils", "transformers.models.auto", "torch.optim")

define_missing_schemas()
for _name in LIBRARIES:
    try:
        importlib.import_module(_name)
    except ImportError:
        continue
