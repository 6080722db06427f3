"""Which models a claim counts: those that suites list, and those that only the store knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from torchgauge import registry
from torchgauge.errors import UnknownNameError
from torchgauge.harness.plan import MODEL_SUITES_ONLY, wanted_suites
from torchgauge.harness.selection import select_models
from torchgauge.results.claims.answering import Listing
from torchgauge.results.claims.claim import Select
from torchgauge.suites.suite import ModelEntry


def list_models(select: Select, stored: Mapping[str, Collection[str]]) -> Listing:
    """The models of ``select``'s suites: its patterns, or its tier; ``stored`` are by suite.

    A model of the store that an installed suite has in another tier is left out; one that no suite lists is
    counted and said. Raises :class:`UnknownNameError` for a suite that is neither installed nor stored.
    """
    installed = registry.names("torchgauge.suites")
    models: list[tuple[str, str]] = []
    unlisted: list[tuple[str, str]] = []
    notes: list[str] = []
    for suite in _suites(select, installed, stored):
        entries: tuple[ModelEntry, ...] = ()
        if suite in installed:
            entries = registry.load("torchgauge.suites", suite).models()
        else:
            notes.append(f"suite {suite} is not installed: only what the store has of it is counted")
        offered = [entry for entry in entries if select.mode in entry.batch]
        known = {entry.name for entry in entries}
        strangers = [ModelEntry(name, (), {}) for name in sorted(set(stored.get(suite, ())) - known)]
        chosen = select_models(suite, offered, select.models, select.tier)
        others = select_models(suite, strangers, select.models, select.tier) if select.models else strangers
        models += [(suite, entry.name) for entry in chosen]
        unlisted += [(suite, entry.name) for entry in others]
    return Listing((*models, *unlisted), tuple(unlisted), tuple(notes))


def _suites(select: Select, installed: tuple[str, ...], stored: Mapping[str, Collection[str]]) -> list[str]:
    """The suites that are meant; ``all`` also stands for suites of models that only the store has."""
    if "all" in select.suites:
        strangers = sorted(set(stored) - set(installed) - set(MODEL_SUITES_ONLY))
        return [*wanted_suites(installed, ("all",)), *strangers]
    for name in select.suites:
        if name not in installed and name not in stored:
            raise UnknownNameError("suite", name, {"all", *installed, *stored})
    return list(dict.fromkeys(select.suites))
