"""The suite ``ops``: every operator of PyTorch's own database, as checks. Parent side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from torchgauge.records import Cause, Refusal, Status, digest
from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import read_document
from torchgauge.suites.ops.catalogue import Catalogue, Operator, catalogue_of
from torchgauge.suites.ops.database import INSTALL
from torchgauge.suites.ops.upstream import (
    BACKWARD,
    EMPTY,
    EXPANDED,
    FORWARD,
    INPLACE,
    LARGE,
    NONCONTIGUOUS,
    OUT,
    VARIANTS,
)
from torchgauge.suites.schema import Date, Link, Reason, convert
from torchgauge.suites.suite import ModelEntry, Unavailable

DEFAULT_SAMPLES = 8
LARGE_DTYPES = ("float32", "bfloat16", "int64")
"""Dtypes of large inputs: one of each width, since how a kernel divides its input depends on nothing else."""


class NotJudged(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An operator whose result no rule can judge, in one variant or in all, and why."""

    name: Name
    variant: (
        Literal["forward", "backward", "out", "inplace", "noncontiguous", "empty", "expanded", "large"] | None
    ) = None
    reason: Reason
    link: Link
    date: Date


class OpsFields(msgspec.Struct, forbid_unknown_fields=True):
    """The data file: what is in the smoke tier, and what is not judged."""

    suite: Name
    smoke: tuple[Name, ...]
    not_judged: tuple[NotJudged, ...]


def load_ops_file(path: Path) -> OpsFields:
    """The operators that ``path`` names; raises :class:`DataFileError` with file, line and field."""
    return convert(read_document(path), OpsFields)


@dataclass(frozen=True)
class OpsSuite:
    """Operators as entries, in the dtypes that PyTorch lists; ``python`` is the interpreter with this torch.

    ``samples`` is how many of PyTorch's samples each case tries, 0 for all. Without PyTorch's database,
    operators have the ``dtypes`` in every variant.
    """

    name: str = "ops"
    doc: str = "Operators of PyTorch's own database (OpInfo) against the host, by dtype and variant."
    data: Path = DATA / "ops.yaml"
    builder: str = "torchgauge.suites.ops.checks:check"
    preload: tuple[str, ...] = ("torchgauge.suites.ops.checks",)
    install_hint: str = INSTALL
    python: str | None = None
    samples: int = DEFAULT_SAMPLES
    dtypes: tuple[str, ...] = ("float32",)
    checks_per_process: int = 512
    unavailable: Unavailable | None = None

    def seen_from(self, python: str) -> OpsSuite:
        """The same suite over the torch of another interpreter."""
        return replace(self, python=python)

    @cached_property
    def _fields(self) -> OpsFields:
        return load_ops_file(self.data)

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """What the data file says cannot be judged."""
        return self._fields.not_judged

    @property
    def smoke(self) -> tuple[str, ...]:
        """Operators of the smoke tier, as the data file names them."""
        return self._fields.smoke

    @cached_property
    def catalogue(self) -> Catalogue:
        """What the interpreter's torch has; asked when it is first needed."""
        return catalogue_of(self.python)

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the data file and the operators of this torch."""
        known = msgspec.to_builtins(self.catalogue)
        return digest([self.data.read_text(encoding="utf-8"), known])

    @property
    def environment(self) -> dict[str, str]:
        """Nothing is needed before a worker's imports."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """That the database is missing, where it is."""
        missing = self.catalogue.missing
        if not missing:
            return ()
        return (f"PyTorch's operator database needs {missing!r}, which is not installed; try: {INSTALL}",)

    def models(self) -> tuple[ModelEntry, ...]:
        """One entry per operator; without a database those of the smoke tier, which say what is missing."""
        fields = self._fields
        if self.catalogue.missing:
            unknown = {"": self.dtypes}
            every = (Operator(name, unknown, unknown, True, True) for name in fields.smoke)
            return tuple(self._entry(op, True) for op in every)
        return tuple(self._entry(op, op.name in fields.smoke) for op in self.catalogue.operators)

    def _entry(self, op: Operator, smoke: bool) -> ModelEntry:
        modes = variants_of(op)
        # Dtypes by mode, and by ``mode@type`` where a device type has its own list.
        found: dict[str, tuple[str, ...]] = {}
        for mode in modes:
            lists = op.backward if mode == BACKWARD else op.dtypes
            for kind, dtypes in lists.items():
                few = tuple(each for each in dtypes if each in LARGE_DTYPES) or dtypes[:1]
                found[f"{mode}@{kind}" if kind else mode] = few if mode == LARGE else dtypes
        return ModelEntry(
            name=op.name,
            tiers=("smoke", "full") if smoke else ("full",),
            batch=dict.fromkeys(modes, 1),
            shape=(("samples", self.samples),),
            framework=CHECK,
            dtypes=op.dtypes[""],
            mode_dtypes=found,
            declined={
                why.variant or "": Refusal(Status.SKIPPED, f"{why.reason} {why.link}", Cause.DECLARED)
                for why in self.not_judged
                if why.name == op.name
            },
        )


def variants_of(op: Operator) -> tuple[str, ...]:
    """The variants that the operator has, in the order of their names' list."""
    has = {
        FORWARD: True,
        BACKWARD: any(op.backward.values()),
        OUT: op.out,
        INPLACE: op.inplace,
        NONCONTIGUOUS: True,
        EMPTY: True,
        EXPANDED: True,
        LARGE: True,
    }
    return tuple(variant for variant in VARIANTS if has[variant])


SUITE = OpsSuite()
