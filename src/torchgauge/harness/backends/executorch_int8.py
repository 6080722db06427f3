"""A model in 8 bits for ExecuTorch (PT2E): quantised by a delegate's quantizer, judged by its noise.

Scales are those of the case's own inputs; of a step that generates, those of a text. No tolerance of float32
holds for 8 bits: the result is judged by its signal-to-quantisation-noise ratio against eager.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from torchgauge.harness.backends.executorch_delegates import SUFFIX, class_named, made
from torchgauge.harness.backends.prepared import Prepared
from torchgauge.harness.worker.accuracy import Verdict
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.quantised_quality import by_noise, sqnr_of_tensors

FLOOR_DB = 10.0
"""A tenth of the result's power is noise, a cosine of 0.95. Networks with random weights come down to 14 dB
in 8 bits (mobilenetv3): no training has tamed their activations. Wrong scales leave nothing of a signal.
"""
PT2E, KERNELS = "torchao.quantization.pt2e.quantize_pt2e", "executorch.kernels.quantized"
LIBRARY = (PT2E, KERNELS)
"""What registers the operators of quantised programs with torch."""


def quantised(
    delegate: str,
    module: Any,
    calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]],
    *,
    strict: bool = False,
) -> Any:
    """``module`` in 8 bits as the quantizer of ``delegate`` wants it, with scales of these ``calls``.

    ``module`` stays as it is. Raises :class:`NotOfferedError` where there is no such quantizer.
    """
    import torch

    pt2e, _ = map(import_module, LIBRARY)
    kind = class_named(f"{delegate.removesuffix(SUFFIX)}Quantizer", delegate)
    quantizer = made(kind)
    usual = getattr(import_module(kind.__module__), "get_symmetric_quantization_config", None)
    if usual is not None and hasattr(quantizer, "set_global"):
        quantizer.set_global(usual(is_per_channel=True))
    exported = torch.export.export(module, *calls[0], strict=strict).module()
    prepared = pt2e.prepare_pt2e(exported, quantizer)
    for args, kwargs in calls:
        prepared(*args, **kwargs)
    return pt2e.convert_pt2e(prepared)


def rule(prepared: Prepared) -> Callable[[Any, Any, Verdict], Verdict]:
    """What judges a result in 8 bits; tells ``prepared`` the ratio of the first one."""
    prepared.evidence["sqnr_floor_db"] = FLOOR_DB

    def judge(expected: dict[str, Any], found: dict[str, Any], verdict: Verdict) -> Verdict:
        ratio = min(sqnr_of_tensors(expected, found).values(), default=None)
        if ratio is None:  # something is missing, not finite or of another form: that is no noise
            return verdict
        if math.isfinite(ratio) and not any(each.metric == "sqnr" for each in prepared.measurements):
            prepared.measurements.append(single("sqnr", ratio, "worst output, against eager"))
        return by_noise(ratio, FLOOR_DB, "8 bits", verdict)

    return judge
