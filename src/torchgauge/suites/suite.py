"""The seam of a suite: names and recipes on the parent side, one build function on the worker side."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from torchgauge.records import Refusal, Shape, Workload

if TYPE_CHECKING:
    from torchgauge.suites.placing import Placed

HOST = "cpu"
"""PyTorch's own name of the host, where suites build their models whatever is measured."""


def seed_all(subject: Any) -> None:
    """Seed the device, PyTorch, Python and, where it is loaded, numpy: models draw from any of them."""
    subject.session.seed(subject.seed)
    seed_host(subject.seed)


def seed_host(number: int) -> None:
    """Seed Python and, where it is loaded, numpy; from now on ``torch.seed`` draws from Python's generator.

    Otherwise a model that calls it, as Reformer does in training, repeats no run. PyTorch's own runner
    replaces ``torch.manual_seed`` for such models.
    """
    random.seed(number)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.seed = _seed_by_python
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number % (1 << 32))


def _seed_by_python() -> int:
    number = random.getrandbits(62)
    sys.modules["torch"].manual_seed(number)
    return number


@dataclass(frozen=True)
class ModelEntry:
    """One model of a suite as its YAML declares it.

    ``batch`` maps a mode to a batch size in items; a mode that is absent is not offered. ``recipe`` holds
    plain JSON values that only the suite's own build function reads. ``accuracy_class`` keys the
    tolerance (see ``data/tolerances.yaml``). ``framework`` is ``"torch"``, or ``"python"`` for models
    that need no torch, or ``"check"`` for checks (:mod:`torchgauge.suites.check`): each of their modes runs
    eagerly in each of their ``dtypes``. Of other models ``modes``, ``configurations`` and ``dtypes`` are what
    runs where the user names none, empty for what runs of every model; a ``cold`` one compiles cold in each
    run; ``of`` is the ``suite/model`` of another suite that it is (:mod:`.lending`). ``live`` says that
    upstream still runs the model in 2026; ``points`` are those of its sweep, each a workload with these
    values in its shape; ``upstream_batch`` (by mode) and ``upstream_shape`` are upstream's own sizes.
    ``parameters`` counts those of the model at size ``full``, None where nobody has said it. ``mode_dtypes``
    replaces ``dtypes`` by ``mode`` or ``mode@type`` of a device; ``declined`` says, by mode (``""``: all of
    them), why no case is tried.
    """

    name: str
    tiers: tuple[str, ...]
    batch: dict[str, int]
    shape: Shape = ()
    points: tuple[Shape, ...] = ()
    sizes: tuple[str, ...] = ("small",)
    accuracy_class: str = "default"
    framework: str = "torch"
    packages: tuple[str, ...] = ()
    recipe: dict[str, object] = field(default_factory=dict)
    live: bool = False
    parameters: int | None = None
    upstream_batch: dict[str, int] = field(default_factory=dict)
    upstream_shape: Shape = ()
    modes: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    cold: bool = False
    of: str = ""
    dtypes: tuple[str, ...] = ()
    mode_dtypes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    declined: dict[str, Refusal] = field(default_factory=dict)

    @property
    def axes(self) -> dict[str, list[int | str]]:
        """The values on each axis of its sweep, in their order."""
        found: dict[str, dict[int | str, None]] = {}
        for point in self.points:
            for name, value in point:
                found.setdefault(name, {})[value] = None
        return {name: list(values) for name, values in found.items()}

    def dtypes_of(self, mode: str, torch_type: str | None) -> tuple[str, ...]:
        """The dtypes of a check in ``mode`` on a device type: its own list, else the mode's, else all."""
        kept = self.mode_dtypes
        return kept.get(f"{mode}@{torch_type}", kept.get(mode, self.dtypes))

    def declined_in(self, mode: str) -> Refusal | None:
        """Why no case in ``mode`` is tried; None where they are."""
        return self.declined.get(mode, self.declined.get(""))


@dataclass(frozen=True)
class Unavailable:
    """Why no model of a suite can be built here, and what to type."""

    reason: str
    hint: str


class Suite(Protocol):
    """A named set of models.

    One that steps its models by itself has ``scenarios`` too: mode to the module that takes the place of the
    scenario's own. One with checks beside its models has ``checker``: ``module:function``, a ``Check``. One
    whose models have code of their own has ``code(model, recipe, builder)``: the facts that name it.
    """

    @property
    def name(self) -> str:
        """The name in case ids and on the command line."""

    @property
    def doc(self) -> str:
        """One sentence for ``torchgauge suites``."""

    @property
    def builder(self) -> str:
        """``module:function`` that the worker imports: a :data:`Build`, or a ``Check``."""

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that the warm template imports once for all models of the suite."""

    @property
    def install_hint(self) -> str:
        """What to type when a package is missing."""

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the suite's data."""

    @property
    def unavailable(self) -> Unavailable | None:
        """Why nothing of the suite can be built here, for example without a checkout; None where it can."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that a worker of the suite needs before it imports anything."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear before a run, and the run's journal keeps."""

    def models(self) -> tuple[ModelEntry, ...]:
        """All models, in the order of the data file."""


@dataclass(frozen=True)
class Work:
    """What one step cannot do without: floating-point operations, and bytes, each read or written once."""

    flops: int
    bytes: int


@dataclass
class BuiltWorkload:
    """A live model with its inputs, as the worker's scenarios use it.

    ``module`` is a ``torch.nn.Module`` on the CPU in float32 with seeded random weights (in ``train()`` or
    ``eval()`` as the mode asks; no dropout), or any callable for framework ``"python"``. ``loss`` maps the
    module's output to a scalar tensor; ``abilities`` are what else the model can do, by the name that
    scenarios ask for. ``wrappable`` says that any callable may take the module's place. ``args`` and
    ``kwargs`` are CPU tensors (or nested tuples, lists and dicts of them); real floating-point inputs are
    cast to the workload's dtype by the harness. ``items_per_step`` counts what ``item`` names (images,
    sequences, ...). ``facts`` go into every row. ``stands_for`` says which inputs these stand for, empty
    where for none: it is part of what was realised, so that numbers over them are compared with no others.
    ``work`` is that of one step where it is known by definition: then rows say which share of the device's
    peak was achieved.
    """

    module: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Any] | None = None
    items_per_step: int = 1
    item: str = "item"
    framework: str = "torch"
    notes: tuple[str, ...] = ()
    abilities: dict[str, Callable[..., Any]] = field(default_factory=dict)
    wrappable: bool = True
    facts: dict[str, str] = field(default_factory=dict)
    stands_for: str = ""
    work: Work | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        """What scenarios may ask of the model."""
        return frozenset({"forward", *self.abilities, *(("loss",) if self.loss is not None else ())})

    def place(self, device: Any, dtype: Any, *, apart: bool = False) -> Placed:
        """Return module and inputs on ``device`` in ``dtype``, as copies where they are to be ``apart``.

        Raises ``NotImplementedError`` for a dtype that the model does not run in.
        """
        from torchgauge.suites.placing import placed

        return placed(self.module, self.args, self.kwargs, device, dtype, apart=apart)

    def compiled(self, subject: Any) -> Any:
        """Return what ``torch.compile`` gets for ``subject``: its module."""
        return subject.module

    def least_calls(self, subject: Any) -> float:
        """Return the least calls of the module in a step of eager, as a share of those in the first step."""
        return 1.0

    def tensors(self, subject: Any) -> dict[str, Any]:
        """Return what a step of ``subject`` reads, by name: inputs, parameters and buffers."""
        state = {**dict(subject.module.named_parameters()), **dict(subject.module.named_buffers())}
        return {"args": subject.args, "kwargs": subject.kwargs, **state}

    def instance(self, subject: Any) -> Any:
        """Return what steps ``subject`` and restores its own state (a TorchBench ``Instance``), or None."""
        return None


Build = Callable[[Workload, "dict[str, object]"], BuiltWorkload]
"""``build(workload, recipe)``: raises ``ImportError`` for a missing package and
``NotImplementedError`` for a mode that the model does not have."""
