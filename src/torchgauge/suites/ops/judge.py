"""The verdict on one operator, dtype and variant on a device. Worker side; knows nothing of the harness.

The rule, sample by sample. The device's result is right if it agrees, within PyTorch's tolerances, with the
host's result in float64 or complex128; or else with the host's result in the very same dtype, with equal
dtypes of the results. So a device may be as exact as it likes, and need not be better than the host where a
dtype is too narrow for the tolerance. Arithmetic on integers and booleans must be exact. An operator whose
host results differ between two seeds is random and not judged.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchgauge.suites.ops import samples, variants
from torchgauge.suites.ops.closeness import Tolerances, difference
from torchgauge.suites.ops.database import draws_random_numbers, dtype_name, full_name
from torchgauge.suites.ops.upstream import (
    BACKWARD,
    EMPTY,
    FORWARD,
    INPLACE,
    NONCONTIGUOUS,
    OUT,
    UpstreamSays,
    says,
)
from torchgauge.suites.suite import HOST

PASS, FAIL_ACCURACY, ERROR, UNSUPPORTED, SKIPPED = "pass", "fail_accuracy", "error", "unsupported", "skipped"
SAMPLES = 8
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
}


@dataclass(frozen=True)
class Verdict:
    """How an operator did: a status' name, why, and where it went wrong first.

    ``judged`` samples were compared; ``beyond_wide`` of them agree with the host's own dtype only.
    ``failed_at`` is the index of the first sample that failed, ``inputs`` say which, ``error`` was raised.
    """

    status: str
    reason: str = ""
    judged: int = 0
    beyond_wide: int = 0
    not_judged: int = 0
    failed_at: int | None = None
    inputs: str = ""
    upstream: str = ""
    error: BaseException | None = None


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
        made = samples_of(self.op, self.dtype, self.variant, limit)
        index = -1
        while True:
            try:
                index, sample = next(made)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001  upstream's code, and it becomes the status
                reason = f"the sample generator raised {_one_line(error)} after sample {index}"
                return self._verdict(ERROR, reason, error=error)
            try:
                wrong, raised = self._sample(sample)
            except _Passed as why:
                self.passed_by += 1
                self.why[str(why)] = self.why.get(str(why), 0) + 1
                continue
            if raised is not None and _is_no_dtype(raised):
                return self._verdict(UNSUPPORTED, _one_line(raised), index, sample, raised)
            if raised is not None:
                return self._verdict(ERROR, f"sample {index}: {_one_line(raised)}", index, sample, raised)
            if wrong:
                return self._verdict(FAIL_ACCURACY, f"sample {index}: {wrong}"[:500], index, sample)
            self.judged += 1
        if self.judged == 0:
            reasons = "; ".join(f"{count} x {why}" for why, count in self.why.items())
            return self._verdict(SKIPPED, reasons or _no_samples(self.variant))
        return self._verdict(PASS)

    def _verdict(
        self, status: str, reason: str = "", at: int | None = None, sample: Any = None, error: Any = None
    ) -> Verdict:
        return Verdict(
            status,
            reason,
            self.judged,
            self.beyond,
            self.passed_by,
            at,
            "" if sample is None else samples.described(sample),
            self.says,
            error,
        )

    def _sample(self, sample: Any) -> tuple[str, BaseException | None]:
        """What is wrong with the device's result, and what it raised; raises :class:`_Passed`."""
        if self.variant == INPLACE and sample.broadcasts_input:
            raise _Passed("the input is broadcast, which no in-place form can do")
        if self.variant in (INPLACE, EMPTY):
            self._host_accepts(sample)
        if self.random and depends_on_seed(self.op, sample):
            raise _Passed("random: two seeds give two results on the host")
        try:
            there = samples.carried(sample, self.device)
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
            return self._compare(sample, actual), None
        except _Passed:
            raise
        except Exception as error:  # noqa: BLE001  a result that the device cannot give back
            return "", error

    def _compare(self, sample: Any, actual: Any) -> str:
        """What differs from both of the host's results; empty where one of them agrees."""
        own = self.variant if self.variant in (BACKWARD, INPLACE) else FORWARD
        wide = self._wide(sample, own)
        if wide is not None and not difference(actual, wide[0], self.tolerances, wide=True):
            return ""
        # another memory layout is another order of sums: the host's own dtype is asked in the same layout
        same = self._same(sample, NONCONTIGUOUS if self.variant == NONCONTIGUOUS else own)
        wrong = difference(actual, same, self.tolerances)
        if not wrong:
            self.beyond += wide is not None
            return ""
        if not self.random and depends_on_seed(self.op, sample):
            raise _Passed("random: two seeds give two results on the host")
        return wrong

    def _wide(self, sample: Any, variant: str) -> tuple[Any] | None:
        """The host's result in float64 or complex128; None where there is none, or it is no wider."""
        if samples.wide_dtype(self.dtype) in (None, self.dtype):
            return None
        try:
            return (variants.run(self.op, variant, samples.widened(sample)),)
        except Exception:  # noqa: BLE001  an operator need not have the wide dtype
            return None

    def _same(self, sample: Any, variant: str) -> Any:
        """The host's result in the case's dtype; raises what the host raises."""
        try:
            return variants.run(self.op, variant, samples.carried(sample, HOST))
        except Exception as error:
            raise _Passed(f"the host refuses it: {_one_line(error)}") from error

    def _host_accepts(self, sample: Any) -> None:
        """Raise :class:`_Passed` where the host has no in-place form or no result for no rows."""
        self._same(sample, self.variant)


def depends_on_seed(op: Any, sample: Any) -> bool:
    """Whether the host's results for ``sample`` differ between two seeds; one that raises has none."""
    results = []
    for seeds in (contextlib.nullcontext(), samples.other_seeds()):
        copy = samples.carried(sample, HOST)
        try:
            with samples.outside_tests(), seeds:
                samples.seed(samples.SEED)
                results.append(variants.plain(op, copy))
        except Exception:  # noqa: BLE001  what raises is no sign of randomness
            return False
    return bool(difference(results[0], results[1], Tolerances()))


def samples_of(op: Any, dtype: Any, variant: str, limit: int) -> Iterator[tuple[int, Any]]:
    """Index and sample, on the host, of every sample that ``variant`` tries; raises what upstream raises."""
    wants = samples.host_samples(op, dtype, limit, requires_grad=variant == BACKWARD)
    if variant != EMPTY:
        yield from enumerate(wants)
        return
    for index, sample in enumerate(wants):
        cut = sample if samples.has_empty(sample) else samples.emptied(sample)
        if cut is not None:
            yield index, cut


def _refused(op: Any, dtype: Any, variant: str, device: Any) -> str:
    """Why the database says that ``op`` has no ``dtype`` on the device; empty where it has."""
    kinds = op.supported_backward_dtypes if variant == BACKWARD else op.supported_dtypes
    if dtype in kinds(str(device.type)):
        return ""
    return f"PyTorch lists no {dtype_name(dtype)} for {full_name(op)} on {device.type} ({variant})"


def _is_no_dtype(error: BaseException) -> bool:
    if isinstance(error, NotImplementedError) and "Could not run" in str(error):
        return False
    return any(words.lower() in str(error).lower() for words in _NO_DTYPE)


def _no_samples(variant: str) -> str:
    if variant == EMPTY:
        return "no sample has a first dimension to cut to no rows"
    return "PyTorch has no samples"


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that operators give about themselves, and without seeding other devices."""
    with warnings.catch_warnings(), samples.outside_tests():
        warnings.simplefilter("ignore")
        yield
