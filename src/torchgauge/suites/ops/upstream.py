"""What PyTorch's own tests say of an operator: skips, expected failures and tolerances. Worker side.

An entry of the database carries decorators for named tests of upstream. They are applied to an empty test
here, which is then called: what upstream would skip says so itself, with its reason.
"""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORWARD, BACKWARD, OUT, INPLACE, NONCONTIGUOUS, EMPTY, EXPANDED, LARGE = VARIANTS = (
    "forward",
    "backward",
    "out",
    "inplace",
    "noncontiguous",
    "empty",
    "expanded",
    "large",
)
TESTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    FORWARD: (("TestCommon", "test_compare_cpu"),),
    BACKWARD: (("TestCommon", "test_compare_cpu"), ("TestBwdGradients", "test_fn_grad")),
    OUT: (("TestCommon", "test_compare_cpu"), ("TestCommon", "test_out")),
    INPLACE: (("TestCommon", "test_compare_cpu"), ("TestCommon", "test_variant_consistency_eager")),
    NONCONTIGUOUS: (("TestCommon", "test_compare_cpu"), ("TestCommon", "test_noncontiguous_samples")),
    EMPTY: (("TestCommon", "test_compare_cpu"),),
    EXPANDED: (("TestCommon", "test_compare_cpu"), ("TestCommon", "test_noncontiguous_samples")),
    LARGE: (("TestCommon", "test_compare_cpu"),),
}
"""Upstream's tests whose decorators hold for a variant: class and method."""


@dataclass(frozen=True)
class UpstreamSays:
    """``skip`` is upstream's reason, empty where it tests; ``xfail`` names a test that it expects to fail.

    ``atol`` and ``rtol`` are what upstream asks for beside its defaults; the larger counts.
    """

    skip: str = ""
    xfail: str = ""
    atol: float = 0.0
    rtol: float = 0.0


class _EmptyTest(unittest.TestCase):
    """Stands for an instance of upstream's test class: decorators read its device type."""

    device_type: str = ""

    def runTest(self) -> None:  # noqa: N802  unittest's name
        """Required by the base class."""


def says(op: Any, variant: str, device: Any, dtype: Any) -> UpstreamSays:
    """What upstream's decorators on ``op`` mean for ``variant`` on a ``torch.device`` in ``dtype``."""
    skip = xfail = ""
    atol = rtol = 0.0
    for cls, method in TESTS[variant]:
        test, instance = _decorated(op, cls, method, device, dtype)
        overrides = getattr(test, "tolerance_overrides", {})
        if dtype in overrides:
            atol, rtol = max(atol, overrides[dtype].atol), max(rtol, overrides[dtype].rtol)
        atol = max(atol, getattr(test, "precision_overrides", {}).get(dtype, 0.0))
        if getattr(test, "__unittest_expecting_failure__", False):
            xfail = xfail or f"{cls}.{method}"
            continue
        if getattr(test, "__unittest_skip__", False):
            skip = (
                skip or f"{cls}.{method}: {getattr(test, '__unittest_skip_why__', '') or 'no reason given'}"
            )
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                test(instance, str(device), dtype, op)
        except unittest.SkipTest as why:
            skip = skip or f"{cls}.{method}: {why}"
    return UpstreamSays(skip, xfail, atol, rtol)


def _decorated(op: Any, cls: str, method: str, device: Any, dtype: Any) -> tuple[Any, _EmptyTest]:
    def empty(self: Any, device: str, dtype: Any, op: Any) -> None:
        """What is decorated: it does nothing."""

    empty.__name__ = method
    instance = type(cls, (_EmptyTest,), {"device_type": device.type, "__module__": __name__})()
    test: Any = empty
    arguments = (cls, method, device.type, dtype, {"op": op, "dtype": dtype})
    try:
        decorators = op.get_decorators(*arguments)
    except TypeError:  # older: without the parameters
        decorators = op.get_decorators(*arguments[:4])
    for decorator in reversed(decorators):
        test = decorator(test)
    return test, instance
