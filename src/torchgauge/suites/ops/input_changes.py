"""Whether an operator changed an input that it must leave alone: what the host leaves, every device leaves.

Worker side. Values are compared after the call: a schema says what an operator may write to, and not what a
kernel did. What is written back as it was, but for rounding, is no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchgauge.suites.ops.closeness import Tolerances, difference, plain_host
from torchgauge.suites.ops.samples import tensors_of


def inputs_changed(sample: Any, there: Any, host: Any) -> str:
    """As :func:`wrongly_changed`, for a sample as it was and as device and host left their copies."""
    before, after, wanted = (
        list(tensors_of((each.input, each.args, each.kwargs))) for each in (sample, there, host)
    )
    return wrongly_changed(before, after, wanted)


def wrongly_changed(before: Sequence[Any], there: Sequence[Any], host: Sequence[Any]) -> str:
    """What the device did to an input and the host did not, or the other way round; empty where they agree.

    ``before`` are the inputs on the host as they were, ``there`` and ``host`` what they were after the call.
    """
    for place, (was, after, wanted) in enumerate(zip(before, there, host, strict=False)):
        touched, by_host = _differs(was, after), _differs(was, wanted)
        if touched and not by_host:
            how = difference(after, was, Tolerances(), wide=True)
            if not how:  # written back as it was, but for rounding that a wider host does not have
                continue
            return f"the operator changes input tensor {place}, but the host does not: {how}"
        if by_host and not touched:
            return f"the operator does not change input tensor {place}, but the host does"
    return ""


def _differs(was: Any, after: Any) -> bool:
    import torch

    if was.is_nested or after.is_nested or was.is_quantized:
        return False
    a = plain_host(was)
    b = plain_host(after).to(a.dtype)
    if a.shape != b.shape:
        return True
    return not torch.equal(a, b) and not bool(((a == b) | (a.isnan() & b.isnan())).all())
