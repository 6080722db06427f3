"""Which models a claim counts: those that suites list, and those that only the store knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torchgauge import registry
from torchgauge.errors import UnknownNameError
from torchgauge.harness.planning.configurations import is_known, known_configurations
from torchgauge.harness.planning.plan import MODEL_SUITES_ONLY, wanted_suites
from torchgauge.harness.planning.selection import DTYPES, check_plain_names, is_wild, select_models
from torchgauge.results.claims.answering import Listing
from torchgauge.results.claims.claim import Select
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.suite import ModelEntry


def list_models(select: Select, stored: Mapping[str, Collection[str]]) -> Listing:
    """The models of ``select``'s suites: its patterns, or its tier; ``stored`` are by suite.

    A model of the store that an installed suite has in another tier is left out; one that no suite lists is
    counted and said. Raises :class:`UnknownNameError` for a suite, a model, a mode or a dtype that is neither
    known here nor stored; a device or a configuration that is not known here is said.
    """
    installed = registry.names(registry.SUITES)
    _check_names(select, any(stored.values()))
    models: list[tuple[str, str]] = []
    unlisted: list[tuple[str, str]] = []
    notes = _strange_names(select)
    offers: dict[str, Sequence[ModelEntry]] = {}
    suites, private = _suites(select, installed, stored)
    notes += [
        f"suite {name} is not part of PyTorch, so not counted; --suite {name} counts it" for name in private
    ]
    for suite in suites:
        entries: tuple[ModelEntry, ...] = ()
        if suite in installed:
            entries = registry.load(registry.SUITES, suite).models()
        else:
            notes.append(f"suite {suite} is not installed: only its rows in the store are counted")
        offered = [entry for entry in entries if offered_as(entry, select.mode)]
        known = {entry.name for entry in entries}
        strangers = [ModelEntry(name, (), {}) for name in sorted(set(stored.get(suite, ())) - known)]
        offers[suite] = (*entries, *strangers)
        chosen = select_models(suite, offered, select.models, select.tier)
        others = select_models(suite, strangers, select.models, select.tier) if select.models else strangers
        models += [(suite, entry.name) for entry in chosen]
        unlisted += [(suite, entry.name) for entry in others]
    check_plain_names(offers, select.models)
    return Listing((*models, *unlisted), tuple(unlisted), tuple(notes))


def _check_names(select: Select, stored: bool) -> None:
    """Raise for a mode or a dtype of which nothing is ``stored`` and that nothing here can measure."""
    if stored:
        return
    for kind, name, known in (
        ("mode", select.mode, registry.names("torchgauge.scenarios")),
        ("dtype", select.dtype, DTYPES),
    ):
        if name not in known:
            raise UnknownNameError(kind, name, known)


def _strange_names(select: Select) -> list[str]:
    """A sentence for each device and configuration not known here; a store may have it all the same."""
    sought = [
        ("device", registry.names("torchgauge.devices"), [name.split(".")[0] for name in select.devices]),
        ("configuration", tuple(known_configurations()), list(select.configurations)),
    ]
    return [
        UnknownNameError(kind, name, known).message
        for kind, known, names in sought
        for name in names
        if not is_wild(name) and not (is_known(name, known) if kind == "configuration" else name in known)
    ]


def _suites(
    select: Select, installed: tuple[str, ...], stored: Mapping[str, Collection[str]]
) -> tuple[list[str], list[str]]:
    """The suites that are meant, and those that ``all`` leaves out though the store has rows of them.

    ``all`` is what torchgauge ships, which is PyTorch's own benchmarks: a claim about PyTorch is not decided
    by the models of one house.
    """
    if "all" in select.suites:
        points = registry.entry_points(registry.SUITES)
        shipped = [name for name in wanted_suites(installed, ("all",)) if points[name].dist is None]
        named = [name for name in select.suites if name != "all"]
        private = sorted(set(stored) - set(shipped) - set(MODEL_SUITES_ONLY) - set(named))
        _check_suites(named, installed, stored)
        return list(dict.fromkeys((*shipped, *named))), private
    _check_suites(select.suites, installed, stored)
    return list(dict.fromkeys(select.suites)), []


def _check_suites(
    names: Sequence[str], installed: tuple[str, ...], stored: Mapping[str, Collection[str]]
) -> None:
    for name in names:
        if name not in installed and name not in stored:
            raise UnknownNameError("suite", name, {"all", *installed, *stored})
