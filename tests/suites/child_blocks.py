"""Child: which parameters of a timm model its output does not depend on, after one backward pass; print JSON.

Usage: child_blocks.py MODELS. The gradient of the loss is zero for a parameter that a gain of zero hides.
"""

from __future__ import annotations

import json
import sys

import torch

from torchgauge.records import Workload
from torchgauge.suites.timm import models as timm_models

torch.set_num_threads(1)
hidden: dict[str, list[str]] = {}
for model in sys.argv[1].split(","):
    built = timm_models.build(Workload("timm", model, mode="training", batch=2), {})
    assert built.loss is not None
    built.loss(built.module(*built.args)).backward()
    named = built.module.named_parameters()
    hidden[model] = [name for name, p in named if p.ndim > 1 and (p.grad is None or not p.grad.any())]
print(json.dumps(hidden))
