"""How near a quantised result has to be: a floor of its signal-to-noise ratio that follows from the bits.

A uniform quantiser of b bits has 2^b - 1 steps between minus and plus the peak of what it quantises, and an
error of a twelfth of a squared step (Bennett, 1948). With k the peak divided by the RMS its ratio is

    SQNR = 20 log10(2^b - 1) + 10 log10(3 / k^2)   dB,

with k read from the weights (by row) and from the layer's inputs (over all). A floating-point format with m
bits of mantissa has a relative error instead: 6.02 m + 14.1 dB, for mantissas spread evenly by logarithm.
Errors of weights and inputs and of one layer after another are independent, so their powers add. So does
the rounding of both results in the workload's dtype, twice eager's error against float64 in this tensor. The
floor is one bit below the sum: what is worse than a right implementation with a bit less is not called right.
It is never below 3 dB, where half of the result's power is noise.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch

from torchgauge.counted import counted
from torchgauge.harness.backends.prepared import Prepared
from torchgauge.harness.worker.accuracy import Verdict
from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Cause, absent
from torchgauge.suites.outputs import Observation

BIT_DB = 20 * math.log10(2)
LEAST_DB = 3.0
EVEN_MANTISSA_DB = 10 * math.log10(18 / math.log(2))
"""Twelve times 3 / (2 ln 2): the mean square of mantissas that are spread evenly by logarithm."""
CHOOSES = ("weight_dtype", "dtype", "code_dtype", "bit_width", "n", "b")
"""Fields that say how a weight is kept, the surest first."""
_DTYPE = re.compile(r"u?int(?P<bits>\d)|float\d_e\dm(?P<mantissa>\d)")
_WORD = re.compile(r"(?P<kind>UInt|Int|NF|Float|NVFP|MX)(?P<bits>\d+)?")
_MANTISSA = {"Float": 3, "MX": 3, "NVFP": 1}
"""Bits of mantissa of the formats that names of classes stand for: e4m3, and e2m1 in 4 bits."""
FEWEST_BITS = 4
"""What a weight is taken to have where neither a field nor the name says it."""


@dataclass(frozen=True)
class Format:
    """How numbers are kept: whole ones of ``bits``, or floating-point ones with ``mantissa`` bits."""

    bits: int = 0
    mantissa: int | None = None

    def sqnr(self, peak: float) -> float:
        """Ratio in dB for values whose squared peak is ``peak`` times their mean square."""
        if self.mantissa is not None:
            return BIT_DB * self.mantissa + EVEN_MANTISSA_DB
        return 20 * math.log10(2**self.bits - 1) + 10 * math.log10(3 / peak)

    def __str__(self) -> str:
        return (
            f"{self.mantissa} bits of mantissa"
            if self.mantissa is not None
            else f"{counted(self.bits, 'bit')}"
        )


@dataclass(frozen=True)
class Quality:
    """What a configuration keeps weights and inputs in, and the floor in dB that follows for one model."""

    weights: Format
    inputs: Format | None
    floor: float

    @classmethod
    def of(cls, kind: type, arguments: Mapping[str, Any], shapes: Iterable[tuple[float, float]]) -> Quality:
        """That of class ``kind`` with ``arguments``; ``shapes`` are squared peaks of weights and inputs."""
        weights, inputs = formats(kind, arguments)
        noise = 0.0
        for of_weights, of_inputs in shapes:
            noise += 10 ** (-weights.sqnr(of_weights) / 10)
            noise += 10 ** (-inputs.sqnr(of_inputs) / 10) if inputs else 0.0
        expected = -10 * math.log10(noise) if noise else LEAST_DB
        return cls(weights, inputs, max(LEAST_DB, expected - BIT_DB))

    @property
    def activations(self) -> bool:
        """Whether the inputs of layers are quantised too."""
        return self.inputs is not None

    def rule(self, prepared: Prepared) -> Callable[[Observation, Observation, Verdict], Verdict]:
        """What judges a result in place of a tolerance; tells ``prepared`` the ratio of the first one."""
        told: list[float] = []
        rounding: dict[str, float] = {}
        prepared.evidence["sqnr_floor_db"] = round(self.floor, 1)
        prepared.evidence["weights_kept_in"] = str(self.weights)
        if self.inputs is not None:
            prepared.evidence["inputs_kept_in"] = str(self.inputs)

        def judge(expected: Observation, found: Observation, verdict: Verdict) -> Verdict:
            ratios = sqnr_of_tensors(expected, found)
            if not ratios:
                return verdict
            if not told:
                told.append(min(ratios.values()))
                exact = math.isinf(told[0])
                prepared.measurements.append(
                    absent("sqnr", "the result is bitwise equal to that of the unquantised model")
                    if exact
                    else single("sqnr", told[0], "worst output, against eager in the workload's dtype")
                )
            # repetitions and later steps have no float64 result: eager's rounding is the same
            rounding.update(rounding_of_tensors(verdict))
            least = min(rounding.values(), default=0.0)
            floors = {path: beside_rounding(self.floor, rounding.get(path, least)) for path in ratios}
            worst = min(ratios, key=lambda path: ratios[path] - floors[path])
            inputs = f" and inputs in {self.inputs}" if self.inputs else ""
            beside = " beside eager's rounding" if floors[worst] < self.floor - 0.1 else ""
            return by_noise(
                ratios[worst], floors[worst], f"weights in {self.weights}{inputs}{beside}", verdict
            )

        return judge


def beside_rounding(floor: float, rounding: float) -> float:
    """Return the ``floor`` in dB where eager's error has ``rounding`` of the power of the float64 result."""
    both, bit = 2 * rounding, 10 ** (BIT_DB / 10)
    return max(LEAST_DB, -10 * math.log10(10 ** (-floor / 10) + bit * both))


def rounding_of_tensors(verdict: Verdict) -> dict[str, float]:
    """Return, by path, the power of eager's error as a share of the float64 result; empty without one."""
    power: dict[str, float] = defaultdict(float)
    error: dict[str, float] = defaultdict(float)
    for part in verdict.tensors:
        if part.truth:
            power[part.path] += part.truth
            error[part.path] += part.eager_error or 0.0
    return {path: error[path] / power[path] for path in power}


def by_noise(ratio: float, floor: float, of: str, verdict: Verdict) -> Verdict:
    """The numbers of ``verdict``, judged by a ``ratio`` in dB that may not lie below its ``floor``."""
    kept = Verdict(
        max_abs_error=verdict.max_abs_error,
        squares=verdict.squares,
        reference_squares=verdict.reference_squares,
        elements=verdict.elements,
    )
    if ratio < floor:
        kept.fail(Cause.TOLERANCE, f"SQNR of {ratio:.1f} dB, below the minimum of {floor:.1f} dB for {of}")
    return kept


def sqnr_of_tensors(expected: Observation, found: Observation) -> dict[str, float]:
    """Return, by path, signal to quantisation noise in dB of floating-point tensors; infinite if equal.

    Empty where something is missing, has another shape or dtype or is not finite: that is no noise.
    """
    ratios: dict[str, float] = {}
    for path, wanted in expected.items():
        if not isinstance(wanted, torch.Tensor) or not wanted.is_floating_point():
            continue
        got = found.get(path)
        if not isinstance(got, torch.Tensor) or (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
            return {}
        if not bool(torch.isfinite(got).all()):
            return {}
        signal, noise = wanted.double().norm(), (wanted.double() - got.double()).norm()
        loss = float(20 * torch.log10(signal / noise)) if signal > 0 else -math.inf
        ratios[path] = loss if noise > 0 else math.inf
    return ratios


def formats(kind: type, arguments: Mapping[str, Any]) -> tuple[Format, Format | None]:
    """What the class ``kind`` keeps weights in, and inputs, None where those stay as they are."""
    inputs, activation, rest = kind.__name__.rpartition("Activation")
    return (
        _said(kind, arguments) or _named(rest if activation else kind.__name__) or Format(FEWEST_BITS),
        (_named(inputs) or Format(FEWEST_BITS)) if activation else None,
    )


def _said(kind: type, arguments: Mapping[str, Any]) -> Format | None:
    """What the fields of ``kind`` say of its weights."""
    usual = {each.name: each.default for each in fields(kind)} if is_dataclass(kind) else {}
    for name in CHOOSES:
        value = arguments.get(name, usual.get(name))
        if isinstance(value, int) and not isinstance(value, bool):
            return Format(value)
        if isinstance(value, torch.dtype) and (made := _of_dtype(value)):
            return made
    return None


def _of_dtype(dtype: torch.dtype) -> Format | None:
    found = _DTYPE.search(str(dtype))
    if found is None:
        return None
    return Format(int(found["bits"])) if found["bits"] else Format(mantissa=int(found["mantissa"]))


def _named(text: str) -> Format | None:
    found = _WORD.search(text)
    if found is None:
        return None
    if found["kind"] in _MANTISSA:
        return Format(mantissa=1 if found["bits"] == "4" else _MANTISSA[found["kind"]])
    return Format(int(found["bits"])) if found["bits"] else None
