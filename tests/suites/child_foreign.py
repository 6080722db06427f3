"""Child: build a toy network in an interpreter that lacks the parent's packages; print JSON."""

from __future__ import annotations

import json
import sys

FORBIDDEN = ("msgspec", "yaml", "click", "pandas", "pyarrow")
for name in FORBIDDEN:
    sys.modules[name] = None  # type: ignore[assignment]  # an import of it now fails

from torchgauge.records import Workload  # noqa: E402
from torchgauge.suites.huggingface import models as huggingface_models  # noqa: E402, F401
from torchgauge.suites.timm import models as timm_models  # noqa: E402, F401
from torchgauge.suites.toy import models as toy_models  # noqa: E402

built = toy_models.build(Workload("toy", "mlp"), {})
print(json.dumps([type(built.module).__name__, [name for name in FORBIDDEN if sys.modules.get(name)]]))
