"""Reading an entry that is another suite's model: ``of`` in a suite's data file."""

from __future__ import annotations

import difflib
from dataclasses import replace

from torchgauge import registry
from torchgauge.errors import UnknownNameError
from torchgauge.suites.document import Document
from torchgauge.suites.lending import OF, RECIPE, SUITES
from torchgauge.suites.schema import refuse
from torchgauge.suites.suite import ModelEntry, Suite


def lent(document: Document, at: str, suite: str, entry: ModelEntry) -> ModelEntry:
    """``entry`` of ``suite`` with what the model that it is of says; ``at`` is its path in ``document``.

    Raises :class:`DataFileError` for a model that no other suite has, or that is itself another one's.
    """
    lending, _, name = entry.of.partition("/")
    if lending == suite:
        raise refuse(document, f"{at}.of", f"{entry.of} is of this suite", "name another suite's model")
    if entry.recipe:
        raise refuse(document, f"{at}.recipe", f"{entry.of} has its own", "remove it")
    try:
        known: Suite = registry.load(SUITES, lending)
        found = {each.name: each for each in known.models()}
    except UnknownNameError as error:
        raise refuse(document, f"{at}.of", error.message, error.hint) from None
    model = found.get(name)
    if model is None:
        close = difflib.get_close_matches(name, found)
        hint = f"did you mean {' or '.join(close)}?" if close else f"torchgauge suites show {lending}"
        raise refuse(document, f"{at}.of", f"suite {lending!r} has no model {name!r}", hint)
    if model.of:
        raise refuse(document, f"{at}.of", f"{entry.of} is itself {model.of}", f"of: {model.of}")
    return replace(
        entry,
        shape=tuple(sorted({**dict(model.shape), **dict(entry.shape)}.items())),
        accuracy_class=model.accuracy_class,
        framework=model.framework,
        packages=model.packages,
        recipe={OF: entry.of, RECIPE: dict(model.recipe)},
        parameters=model.parameters,
        upstream_batch=dict(model.upstream_batch),
        upstream_shape=model.upstream_shape,
    )
