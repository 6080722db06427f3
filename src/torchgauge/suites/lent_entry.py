"""Reading an entry that is another suite's model: ``of`` in a suite's data file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torchgauge import registry
from torchgauge.errors import DataFileError, InfrastructureError, UnknownNameError, UsageError
from torchgauge.records import Cause, Refusal, Status
from torchgauge.records.case import PROCESSES
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import Document
from torchgauge.suites.lending import OF, RECIPE
from torchgauge.suites.schema import refuse
from torchgauge.suites.suite import ModelEntry, Suite

THEIRS = {
    "recipe": "recipe",
    "framework": "framework",
    "accuracy_class": "accuracy_class",
    "packages": "packages",
    "parameters": "parameters",
    "upstream_batch": "upstream",
    "upstream_shape": "upstream",
}
"""What a lent model brings, by the field of its entry, and the key that says it in a file."""
_OF_NOBODY = ModelEntry("", (), {})


class NoLenderError(DataFileError):
    """Nothing here lends the model that an entry is of; right where its suite is installed."""


WithoutLender = Callable[[ModelEntry, NoLenderError], ModelEntry]


def skipped(entry: ModelEntry, why: NoLenderError) -> ModelEntry:
    """``entry`` as one of which no case is tried: a suite goes on without those who lend it models."""
    return replace(entry, declined={"": Refusal(Status.SKIPPED, why.in_a_line, Cause.MISSING_PACKAGE)})


def lent(document: Document, at: str, suite: str, entry: ModelEntry) -> ModelEntry:
    """``entry`` of ``suite`` with what the model that it is of says; ``at`` is its path in ``document``.

    Raises :class:`DataFileError` for an entry that says itself what the model brings, that is no point of
    its sweep, or whose model is itself another one's, and :class:`NoLenderError` where nobody has the model.
    """
    lending, _, name = entry.of.partition("/")
    if lending == suite:
        raise refuse(document, f"{at}.of", f"{entry.of} is in the same suite", "use a model of another suite")
    for field, key in THEIRS.items():
        if getattr(entry, field) != getattr(_OF_NOBODY, field):
            raise refuse(document, f"{at}.{key}", f"{entry.of} already sets this field", "remove it")
    model = _model(document, at, lending, name)
    if model.framework == CHECK:
        raise refuse(document, f"{at}.of", f"{entry.of} is a check", "use a model")
    if model.of:
        raise refuse(document, f"{at}.of", f"{entry.of} is itself taken from {model.of}", f"of: {model.of}")
    _check_sweep(document, at, entry, model)
    return replace(
        entry,
        shape=tuple(sorted({**dict(model.shape), **dict(entry.shape)}.items())),
        recipe={OF: entry.of, RECIPE: dict(model.recipe)},
        **{field: getattr(model, field) for field in THEIRS if field != "recipe"},
    )


def _model(document: Document, at: str, lending: str, name: str) -> ModelEntry:
    """The model ``name`` of the suite ``lending``."""
    try:
        with registry.stranger(f"models() of suite {lending!r} raised", hint=registry.FIX):
            known: Suite = registry.load(registry.SUITES, lending)
            found = {each.name: each for each in known.models()}
    except (UsageError, InfrastructureError) as error:
        hint = error.hint
        if isinstance(error, UnknownNameError):
            hint = f"install the package of this suite, or use {hint}"
        raise refuse(document, f"{at}.of", error.message, hint, NoLenderError) from None
    if name not in found:
        unknown = UnknownNameError(
            f"model of {lending}", name, found, hint=f"torchgauge suites show {lending}"
        )
        raise refuse(document, f"{at}.of", unknown.message, unknown.hint, NoLenderError)
    return found[name]


def _check_sweep(document: Document, at: str, entry: ModelEntry, model: ModelEntry) -> None:
    """Raise unless ``entry`` says a value on each axis of ``model``, and sweeps no size that it has not."""
    theirs, ours = model.axes, entry.axes
    for name in theirs:
        if name not in ours and name not in dict(entry.shape):
            listed = ", ".join(map(str, theirs[name]))
            problem = f"{entry.of} is a sweep, but its axis is not set: {name!r}"
            raise refuse(document, f"{at}.of", problem, f"axes: {{{name}: [{listed}]}}, or fewer values")
    sizes = {*theirs, *dict(model.shape), PROCESSES}
    for name, values in ours.items():
        if name not in sizes:
            known = ", ".join(sorted(sizes))
            raise refuse(
                document, f"{at}.axes.{name}", f"{entry.of} has no size {name!r}", f"one of: {known}"
            )
        for index, value in enumerate(values):
            if isinstance(value, str) and value not in theirs.get(name, ()):
                known = ", ".join(map(str, theirs.get(name, ()))) or "numbers"
                problem = f"{entry.of} has no {name} {value!r}"
                raise refuse(document, f"{at}.axes.{name}[{index}]", problem, f"one of: {known}")
