"""The verdict on one operator, dtype and variant on a device. Worker side; knows nothing of the harness.

The rule, sample by sample. The device's result is right if it agrees, within PyTorch's tolerances, with the
host's result in float64 or complex128; or else with the host's result in the very same dtype, with equal
dtypes of the results. So a device may be as exact as it likes, and need not be better than the host where a
dtype is too narrow for the tolerance. Arithmetic on integers and booleans must be exact. An operator whose
host results differ between two seeds is random and not judged.

Where the host's own dtype is out of tolerance of float64 the inputs are ill-conditioned: there the device may
be :data:`SLACK` times as far from it. What is summed over a large input may differ by what another order of
sums does. Inputs are compared after the call: what the host leaves as it was, the device must leave.

Among equal values, any index is right. Running sums and products, and sums of chosen elements, may round
their partial results to the dtype.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torchgauge.suites.ops import samples, variants
from torchgauge.suites.ops.closeness import Tolerances, difference, furthest, of_partials, of_sums
from torchgauge.suites.ops.database import draws_random_numbers, dtype_name, full_name
from torchgauge.suites.ops.equal_values import has_equal_values, is_free, with_equal_places
from torchgauge.suites.ops.input_changes import inputs_changed
from torchgauge.suites.ops.kernel_kind import kernel_kind
from torchgauge.suites.ops.tried import Tried, depends_on_seed, tried_samples
from torchgauge.suites.ops.upstream import (
    BACKWARD,
    EMPTY,
    EXPANDED,
    FORWARD,
    INPLACE,
    LARGE,
    NONCONTIGUOUS,
    OUT,
    UpstreamSays,
    says,
)
from torchgauge.suites.suite import HOST

PASS, FAIL_ACCURACY, ERROR, UNSUPPORTED, SKIPPED = "pass", "fail_accuracy", "error", "unsupported", "skipped"
SAMPLES = 8
SLACK = 4.0
"""How many times the host's own error a device may have where that error is beyond the tolerance."""
_PARTIAL = re.compile(
    r"(masked\.)?(cum(sum|prod)|logcumsumexp)|cumulative_trapezoid|(index|scatter)_(add|reduce)|index_put|put"
)
"""Names of operators that return partial results, or that add up in memory."""
_NO_DTYPE = (
    "not implemented for '",
    "does not support dtype",
    "unsupported dtype",
    "not supported dtype",
    "doesn't support",
    "does not support the type",
    "framework doesn't support",
    "Unsupported data type",
)
"""What devices and operators say of a dtype that they lack; a missing operator is no such thing."""

_NOTHING = {
    BACKWARD: "no result of this sample has a gradient",
    OUT: "no result of this sample is a tensor",
    EXPANDED: "the operator returns only indices, which may differ among equal values",
    LARGE: "the operator returns only indices, which may differ among equal values",
}


@dataclass(frozen=True)
class Verdict:
    """How an operator did: a status' name, why, and where it went wrong first.

    ``judged`` samples were compared; ``beyond_wide`` of them agree with the host's own dtype only.
    ``failed_at`` is the first sample that failed, ``inputs`` say which, ``error`` was raised. ``kernel`` says
    whose kernel ran (:mod:`kernel_kind`), ``parts`` the operators that ran in place of one without any.
    """

    status: str
    reason: str = ""
    judged: int = 0
    beyond_wide: int = 0
    not_judged: int = 0
    failed_at: Tried | None = None
    inputs: str = ""
    upstream: str = ""
    error: BaseException | None = None
    kernel: str = ""
    parts: str = ""


class _Passed(Exception):  # noqa: N818  no error: a sample that is not judged, and why
    """A sample about which nothing can be said; the message is the reason."""


def judge(
    op: Any,
    dtype: Any,
    variant: str,
    device: Any,
    *,
    limit: int = SAMPLES,
) -> Verdict:
    """The verdict on ``op`` in ``dtype`` (a ``torch.dtype``) and ``variant`` on a ``torch.device``.

    ``limit`` samples are tried, all where it is 0. What operator, samples or device raise is in the verdict.
    """
    refused = _refused(op, dtype, variant, device)
    if refused:
        return Verdict(UNSUPPORTED, refused)
    upstream = says(op, variant, device, dtype)
    if upstream.skip:
        return Verdict(SKIPPED, f"PyTorch's own test is skipped: {upstream.skip}", upstream="skip")
    with _quiet():
        found = _Trial(op, dtype, variant, device, upstream).run(limit)
    if upstream.xfail and found.status in (FAIL_ACCURACY, ERROR):
        reason = f"PyTorch expects {upstream.xfail} to fail, and it does: {found.reason}"
        return Verdict(SKIPPED, reason[:500], found.judged, upstream="xfail")
    return found


class _Trial:
    """The samples of one operator, one after another until the first that fails."""

    def __init__(self, op: Any, dtype: Any, variant: str, device: Any, upstream: UpstreamSays) -> None:
        self.op, self.dtype, self.variant, self.device = op, dtype, variant, device
        self.tolerances = Tolerances(upstream.atol, upstream.rtol)
        self.says = "xfail, passes" if upstream.xfail else ""
        self.random = draws_random_numbers(op)
        self.judged = self.beyond = self.passed_by = 0
        self.why: dict[str, int] = {}

    def run(self, limit: int) -> Verdict:
        """The verdict over at most ``limit`` samples."""
        made = tried_samples(self.op, self.dtype, self.variant, limit)
        index, first = -1, None
        while True:
            try:
                tried = next(made)
                index, first = tried.index, first or tried
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001  upstream's code, and it becomes the status
                reason = f"the sample generator raised {_one_line(error)} after sample {index}"
                return self._verdict(ERROR, reason, error=error)
            try:
                wrong, raised = self._sample(tried)
            except _Passed as why:
                self.passed_by += 1
                self.why[str(why)] = self.why.get(str(why), 0) + 1
                continue
            if raised is not None and _is_no_dtype(raised):
                return self._verdict(UNSUPPORTED, _one_line(raised), tried, raised)
            if raised is not None:
                return self._verdict(ERROR, f"sample {index}: {_one_line(raised)}", tried, raised)
            if wrong:
                return self._verdict(FAIL_ACCURACY, f"sample {index}: {wrong}"[:500], tried)
            self.judged += 1
        if self.judged == 0:
            reasons = "; ".join(f"{count} x {why}" for why, count in self.why.items())
            return self._verdict(SKIPPED, reasons or _no_samples(self.variant))
        kernel, parts = self._kernel(first)
        return replace(self._verdict(PASS), kernel=kernel, parts=parts)

    def _verdict(self, status: str, reason: str = "", at: Tried | None = None, error: Any = None) -> Verdict:
        return Verdict(
            status,
            reason,
            self.judged,
            self.beyond,
            self.passed_by,
            at,
            "" if at is None else samples.described(at.sample),
            self.says,
            error,
        )

    def _kernel(self, tried: Tried | None) -> tuple[str, str]:
        """Whose kernel ran, where that is a question: on the host all are its own."""
        if tried is None or self.device.type == HOST or self.variant not in (FORWARD, INPLACE, OUT):
            return "", ""
        there = samples.carried(tried.sample, self.device, tried.on_host)

        def call() -> Any:
            return variants.run(self.op, self.variant, there)

        return kernel_kind(self.op, call, self.device.type)

    def _sample(self, tried: Tried) -> tuple[str, BaseException | None]:
        """What is wrong with the device's result, and what it raised; raises :class:`_Passed`."""
        sample = tried.sample
        if self.variant == INPLACE and sample.broadcasts_input:
            raise _Passed("an in-place form cannot broadcast its input")
        if self.variant in (INPLACE, EMPTY, EXPANDED, LARGE):
            self._same(sample, self.variant)  # passes by what the host refuses
        if self.random and depends_on_seed(self.op, sample):
            raise _Passed("random: two seeds give two results on the host")
        try:
            carried = samples.carried(sample, self.device, tried.on_host)
            there = variants.prepared(self.variant, carried)
        except Exception as error:  # noqa: BLE001  the device's own words become the status
            return "", error
        try:
            actual = variants.run(self.op, self.variant, there)
        except Exception as error:  # noqa: BLE001  the operator's own failure becomes its status
            if isinstance(error, variants.BrokenPromiseError):
                return str(error), None
            return "", error
        if actual is None and self.variant in _NOTHING:
            raise _Passed(_NOTHING[self.variant])
        try:
            return self._compare(sample, actual, there), None
        except _Passed:
            raise
        except Exception as error:  # noqa: BLE001  a result that the device cannot give back
            return "", error

    def _compare(self, sample: Any, actual: Any, there: Any) -> str:
        """What differs from both of the host's results; empty where one of them agrees."""
        own = self.variant if self.variant in (BACKWARD, INPLACE, EXPANDED, LARGE) else FORWARD
        wide = self._wide(sample, own)
        if wide is not None and not self._differs(sample, actual, wide[0], wide=True):
            return inputs_changed(sample, there, wide[1])
        # another memory layout is another order of sums: the host's own dtype runs in the same layout
        same, after = self._same(sample, NONCONTIGUOUS if self.variant == NONCONTIGUOUS else own)
        wrong = self._differs(sample, actual, same)
        if not wrong or (wide is not None and self._is_as_near(actual, same, wide[0], sample)):
            self.beyond += wide is not None
            return inputs_changed(sample, there, after)
        if not self.random and depends_on_seed(self.op, sample):
            raise _Passed("random: two seeds give two results on the host")
        if self.variant == BACKWARD and is_free(self.op, sample) and has_equal_values(sample):
            raise _Passed("any of several equal values may get the gradient")
        return wrong

    def _differs(self, sample: Any, actual: Any, expected: Any, *, wide: bool = False) -> str:
        """Return the difference, except between indices of equal values."""
        if not difference(actual, expected, self.tolerances, wide=wide):
            return ""
        actual = with_equal_places(self.op, sample, actual, expected)
        return difference(actual, expected, self.tolerances, wide=wide)

    def _is_as_near(self, actual: Any, same: Any, wide: Any, sample: Any) -> bool:
        """Whether the device is about as near to ``wide`` as the host, where that is not near enough."""
        allowed = 0.0
        if difference(same, wide, self.tolerances, wide=True):
            allowed = SLACK * furthest(same, wide)
        if self.variant == LARGE:
            allowed = max(allowed, of_sums((sample.input, sample.args), wide))
        if _PARTIAL.fullmatch(self.op.name):
            allowed = max(allowed, of_partials((sample.input, sample.args, wide), self.dtype))
        if not 0.0 < allowed < math.inf:
            return False
        loose = replace(self.tolerances, atol=max(self.tolerances.atol, allowed))
        return not difference(actual, wide, loose, wide=True)

    def _wide(self, sample: Any, variant: str) -> tuple[Any, Any] | None:
        """The host's result in float64 or complex128 and the inputs after it; None where it is no wider."""
        if samples.wide_dtype(self.dtype) in (None, self.dtype):
            return None
        try:
            wide = samples.widened(sample)
            return variants.run(self.op, variant, wide), wide
        except Exception:  # noqa: BLE001  an operator need not have the wide dtype
            return None

    def _same(self, sample: Any, variant: str) -> tuple[Any, Any]:
        """The host's result in the case's dtype and the inputs after it; passes by what the host refuses."""
        try:
            copy = variants.prepared(variant, samples.carried(sample, HOST))
            return variants.run(self.op, variant, copy), copy
        except Exception as error:
            raise _Passed(f"the host refuses this sample: {_one_line(error)}") from error


def _refused(op: Any, dtype: Any, variant: str, device: Any) -> str:
    """Why the database says that ``op`` has no ``dtype`` on the device; empty where it has."""
    kinds = op.supported_backward_dtypes if variant == BACKWARD else op.supported_dtypes
    if dtype in kinds(str(device.type)):
        return ""
    return f"PyTorch's OpInfo lists no {dtype_name(dtype)} for {full_name(op)} on {device.type} ({variant})"


def _is_no_dtype(error: BaseException) -> bool:
    if isinstance(error, NotImplementedError) and "Could not run" in str(error):
        return False
    return any(words.lower() in str(error).lower() for words in _NO_DTYPE)


_NO_FORM = {
    EMPTY: "no sample has an input whose first dimension can be set to size 0",
    EXPANDED: "no sample has a dimension to expand",
    LARGE: "the host refuses all enlarged samples, or takes too long for them",
}


def _no_samples(variant: str) -> str:
    if variant in _NO_FORM:
        return _NO_FORM[variant]
    return "PyTorch has no samples for this case"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that operators give about themselves, and without seeding other devices."""
    with warnings.catch_warnings(), samples.outside_tests():
        warnings.simplefilter("ignore")
        yield
