"""Suites from strict YAML: the parent-side half of a suite whose models are data.

A suite of one's own is a data file, a :class:`YamlSuite` that names it and a build function; see
``toy.py`` for the smallest one. Building a ``YamlSuite`` does no I/O: the file is read when asked for.

``size`` is a property of the model: ``small`` fits a slow laptop in seconds, ``full`` is what upstream
publishes, with upstream's batch where the file has one. Each data file says what the two mean for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import RANDOM_WEIGHTS, Shape, Workload, digest
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.lent_entry import NoLenderError, WithoutLender, lent, skipped
from torchgauge.suites.schema import convert, refuse
from torchgauge.suites.suite import ModelEntry, Unavailable
from torchgauge.suites.sweep import points

DATA = Path(__file__).parent / "data"
"""Folder of the data files that ship with the package."""

DTYPES_OF_A_CHECK = ("float32",)
BATCH_PROFILES = ("small", "pytorch")
"""Batches that a laptop runs, or those of upstream's own benchmark."""

Name = Annotated[str, msgspec.Meta(min_length=1)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Words = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
Recipe = TypeVar("Recipe", bound=msgspec.Struct)


class AnyRecipe(msgspec.Struct, forbid_unknown_fields=True):
    """The recipe of a suite whose build function needs the model's name only."""


class Upstream(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What upstream's own lists say of a model: facts for ``size: full``, which never affect ``small``."""

    batch: dict[Name, Size] = {}
    shape: dict[Name, Size] = {}


class ModelFields(msgspec.Struct, Generic[Recipe], forbid_unknown_fields=True):
    """One model in a data file; the fields are those of :class:`ModelEntry`."""

    name: Name
    tiers: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    batch: Annotated[dict[Name, Size], msgspec.Meta(min_length=1)]
    shape: dict[Name, Size] = {}
    axes: dict[Name, tuple[Size | Name, ...]] = {}
    exclude: tuple[dict[Name, Size | Name], ...] = ()
    sizes: Annotated[tuple[Literal["small", "full"], ...], msgspec.Meta(min_length=1)] = ("small",)
    accuracy_class: Name = "default"
    framework: Literal["torch", "python", "check"] = "torch"
    packages: tuple[Name, ...] = ()
    recipe: Recipe | None = None
    live: bool = False
    parameters: Size | None = None
    upstream: Upstream | None = None
    modes: Words = ()
    configurations: Words = ()
    dtypes: Words = ()
    cold: bool = False
    of: Annotated[str, msgspec.Meta(pattern=r"^[^/]+/[^/]+$")] | None = None


class SuiteFields(msgspec.Struct, Generic[Recipe], forbid_unknown_fields=True):
    """A whole data file."""

    suite: Name
    models: tuple[ModelFields[Recipe], ...]


@dataclass(frozen=True)
class YamlSuite:
    """A suite whose models are a data file; ``recipe_type`` is the strict form of its recipes."""

    name: str
    doc: str
    data: Path
    builder: str
    preload: tuple[str, ...] = ()
    install_hint: str = ""
    recipe_type: type[msgspec.Struct] = AnyRecipe
    unavailable: Unavailable | None = None
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scenarios: dict[str, str] = field(default_factory=dict)
    checker: str = ""
    more: tuple[ModelEntry, ...] = ()

    @cached_property
    def _models(self) -> tuple[ModelEntry, ...]:
        return load_suite_file(
            self.data, suite=self.name, recipe_type=self.recipe_type, without_lender=skipped
        )

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits over the data file's text, whatever its line ends."""
        return digest(self.data.read_text(encoding="utf-8"))

    def models(self) -> tuple[ModelEntry, ...]:
        """Return all models, in the order of the data file, then ``more``; raises :class:`DataFileError`."""
        return self._models + self.more


def load_suite_file(
    path: Path,
    *,
    suite: str | None = None,
    recipe_type: type[msgspec.Struct] = AnyRecipe,
    without_lender: WithoutLender | None = None,
) -> tuple[ModelEntry, ...]:
    """The models that ``path`` declares, in its order.

    Raises :class:`DataFileError` with file, line and field: not strict YAML, an unknown field, a wrong
    type, two models of one name, or (where ``suite`` is given) the file of another suite. Of a model that
    nobody here lends it is what ``without_lender`` makes of the entry; where that is None it raises.
    """
    document = read_document(path)
    fields = convert(document, SuiteFields[recipe_type])  # type: ignore[valid-type]  # a type made at run time
    if suite is not None and fields.suite != suite:
        raise refuse(document, "$.suite", f"the file is for suite {fields.suite!r}, not for {suite!r}")
    seen: dict[str, int | None] = {}
    for index, model in enumerate(fields.models):
        at = f"$.models[{index}].name"
        if model.name in seen:
            raise refuse(
                document, at, f"{model.name!r} is declared on line {seen[model.name]} too", "keep one"
            )
        seen[model.name] = document.line_of(at)
        if model.recipe is None and model.of is None and _has_required_fields(recipe_type):
            raise refuse(document, at, "the field 'recipe' is missing")
    return tuple(
        _placed(document, f"$.models[{index}]", fields.suite, model, without_lender)
        for index, model in enumerate(fields.models)
    )


def workload_for(
    suite: str,
    entry: ModelEntry,
    mode: str,
    *,
    size: str = "small",
    dtype: str = "float32",
    batch: int | None = None,
    batch_profile: str | None = None,
    weights: str = RANDOM_WEIGHTS,
    point: Shape = (),
) -> Workload:
    """The workload of ``entry`` in ``mode``: where size and batch profile meet batch and shape.

    ``full`` takes upstream's shape where the data file has one; the batch profile ``pytorch``, which is
    the default of ``full``, upstream's batch. ``batch`` overrules every profile, and ``point``,
    one of a sweep, every shape. Raises :class:`UsageError` for a mode, a size or a profile that the model
    does not offer.
    """
    profile = batch_profile or ("pytorch" if size == "full" else "small")
    if profile not in BATCH_PROFILES:
        raise UnknownNameError("batch profile", profile, BATCH_PROFILES)
    like = offered_as(entry, mode)
    if like is None:
        raise UnknownNameError(f"mode of {suite}/{entry.name}", mode, entry.batch)
    if size not in entry.sizes:
        raise UnknownNameError(f"size of {suite}/{entry.name}", size, entry.sizes)
    batches, shape = dict(entry.batch), dict(entry.shape)
    if size == "full":
        shape.update(entry.upstream_shape)
    if profile == "pytorch":
        batches.update(entry.upstream_batch)
    if batch is not None and batch < 1:
        raise UsageError(
            f"batch {batch} of {suite}/{entry.name} is less than 1", hint="use a batch of 1 or more"
        )
    return Workload(
        suite=suite,
        model=entry.name,
        mode=mode,
        dtype=dtype,
        batch=batch or batches[like],
        size=size,
        shape=tuple(sorted({**shape, **dict(point)}.items())),
        weights=weights,
    )


def declared_parameters(workload: Workload, entry: ModelEntry) -> int | None:
    """How many parameters the data file says that the model of ``workload`` has; None where it says nothing.

    Counts are of size ``full`` with random weights: published weights bring a configuration of their own.
    """
    return entry.parameters if workload.size == "full" and workload.weights == RANDOM_WEIGHTS else None


def _placed(
    document: Document,
    at: str,
    suite: str,
    model: ModelFields[msgspec.Struct],
    without_lender: WithoutLender | None,
) -> ModelEntry:
    """The entry of ``model``, with the points of its sweep and what another suite lends it."""
    for kind in ("modes", "configurations", "axes") if model.framework == CHECK else ():
        if getattr(model, kind):
            raise refuse(document, f"{at}.{kind}", f"a check must not have {kind}", "remove it")
    for kind in ("modes", "configurations", "dtypes"):
        words = getattr(model, kind)
        for index, word in enumerate(words):
            if word in words[:index]:
                where = f"{at}.{kind}[{index}]"
                raise refuse(document, where, f"{word!r} is listed twice", "keep one of the two")
    for index, mode in enumerate(model.modes):
        if mode not in model.batch:
            raise refuse(
                document, f"{at}.modes[{index}]", f"the model has no batch for {mode!r}", "add it to batch"
            )
    entry = replace(_entry(model), points=points(document, at, model.axes, model.exclude, _sizes(model)))
    if model.of is None:
        return entry
    try:
        return lent(document, at, suite, entry)
    except NoLenderError as error:
        if without_lender is None:
            raise
        return without_lender(entry, error)


def _sizes(model: ModelFields[msgspec.Struct]) -> dict[str, int]:
    return {**model.shape, **(model.upstream.shape if model.upstream else {})}


def _has_required_fields(kind: type[msgspec.Struct]) -> bool:
    return any(item.required for item in msgspec.structs.fields(kind))


def _entry(model: ModelFields[msgspec.Struct]) -> ModelEntry:
    recipe: dict[str, object] = {} if model.recipe is None else msgspec.to_builtins(model.recipe)
    upstream = model.upstream or Upstream()
    plain = DTYPES_OF_A_CHECK if model.framework == CHECK else ()
    return ModelEntry(
        name=model.name,
        tiers=model.tiers,
        batch=dict(model.batch),
        shape=tuple(sorted(model.shape.items())),
        sizes=model.sizes,
        accuracy_class=model.accuracy_class,
        framework=model.framework,
        packages=model.packages,
        recipe=recipe,
        live=model.live,
        parameters=model.parameters,
        upstream_batch=dict(upstream.batch),
        upstream_shape=tuple(sorted(upstream.shape.items())),
        modes=model.modes,
        configurations=model.configurations,
        dtypes=model.dtypes or plain,
        cold=model.cold,
        of=model.of or "",
    )
