"""The kept census as people and programs read it: models, and operators by how many models need them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from torchgauge.errors import NothingSelectedError, UnknownNameError
from torchgauge.harness.planning.selection import check_plain_names, select_models
from torchgauge.results import document
from torchgauge.results.csv_text import csv_text
from torchgauge.suites.census.data import CensusData
from torchgauge.suites.census.record import ModelCensus, base_name
from torchgauge.suites.suite import ModelEntry


@dataclass(frozen=True)
class View:
    """Which part of a census is looked at; what is empty selects everything."""

    suites: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Need:
    """One operator by its base name: the models that dispatch it, as ``suite/model``, and in which dtypes."""

    operator: str
    models: tuple[str, ...]
    dtypes: tuple[str, ...]


def looked_at(data: CensusData, view: View) -> list[ModelCensus]:
    """The entries of ``data`` that ``view`` selects, sorted; ``models`` may be names, globs or ``/regex/``.

    Raises :class:`UnknownNameError` for a name that the census does not hold and
    :class:`NothingSelectedError` where nothing is left.
    """
    fields: tuple[tuple[str, tuple[str, ...], Callable[[ModelCensus], str]], ...] = (
        ("suite", view.suites, lambda each: each.suite),
        ("mode", view.modes, lambda each: each.mode),
        ("dtype", view.dtypes, lambda each: each.dtype),
        ("path", view.paths, lambda each: each.path),
    )
    found = list(data.models)
    for what, wanted, of in fields:
        known = sorted({of(each) for each in data.models})
        for name in wanted:
            if name not in known:
                raise UnknownNameError(f"{what} of the census", name, known)
        found = [each for each in found if not wanted or of(each) in wanted]
    found = _of_models(found, view.models)
    if not found:
        raise NothingSelectedError("the census has no matching operator", hint="torchgauge ops census")
    return sorted(found, key=lambda each: (each.suite, each.model, each.mode, each.dtype, each.path))


def ranking(entries: Iterable[ModelCensus], *, received: bool = False) -> list[Need]:
    """Operators by the number of models that need them, most first.

    ``received`` ranks what reaches a backend that brings no composite operator.
    """
    models: dict[str, set[str]] = {}
    dtypes: dict[str, set[str]] = {}
    for each in entries:
        for name, dtype in each.received if received else each.operators:
            base = base_name(name)
            models.setdefault(base, set()).add(f"{each.suite}/{each.model}")
            dtypes.setdefault(base, set()).add(dtype)
    needs = [Need(name, tuple(sorted(models[name])), tuple(sorted(dtypes[name] - {""}))) for name in models]
    return sorted(needs, key=lambda need: (-len(need.models), need.operator))


def stale_lines(data: CensusData, installed: dict[str, str]) -> list[str]:
    """What differs between the recorded and the ``installed`` versions, and what to do."""
    differing = data.differing(installed)
    if not differing:
        return []
    texts = [
        f"{name} {recorded} (installed: {here or 'none'})"
        for name, (recorded, here) in sorted(differing.items())
    ]
    return [
        f"warning: the census was recorded with {', '.join(texts)}; operators may differ between versions",
        "  torchgauge ops census --record --device DEVICE --out FILE records your own",
    ]


def view_text(data: CensusData, entries: Sequence[ModelCensus], top: int, *, received: bool) -> str:
    """The census as a person reads it: one line per entry, then the operators that most models need."""
    return document.terminal(
        "harness/census/view",
        data=data,
        entries=entries,
        devices=sorted({each.recorded_on for each in entries if each.recorded_on}),
        needs=ranking(entries, received=received),
        models=len({f"{each.suite}/{each.model}" for each in entries if not each.problem}),
        top=top,
        received=received,
        bases=lambda pairs: {base_name(name) for name, _ in pairs},
    )


def view_csv(entries: Sequence[ModelCensus]) -> str:
    """One line per operator of an entry; an entry that could not be recorded has one line with its problem.

    ``level`` is ``operator`` or ``received``.
    """
    header = ("suite", "model", "mode", "dtype", "path", "level", "operator", "operand_dtype", "problem")
    rows: list[tuple[str, ...]] = []
    for each in entries:
        key = (each.suite, each.model, each.mode, each.dtype, each.path)
        if each.problem:
            rows.append((*key, "", "", "", each.problem))
        for level, pairs in (("operator", each.operators), ("received", each.received)):
            rows += [(*key, level, name, dtype, "") for name, dtype in sorted(pairs)]
    return csv_text(header, rows)


def view_json(
    data: CensusData, entries: Sequence[ModelCensus], installed: dict[str, str], *, received: bool
) -> str:
    """Versions, entries and the whole ranking."""
    keys = ("suite", "model", "mode", "dtype", "path", "recorded_on", "problem")
    return json.dumps(
        {
            "versions": dict(sorted(data.versions.items())),
            "differing": {name: list(pair) for name, pair in sorted(data.differing(installed).items())},
            "models": [
                {
                    **{key: getattr(each, key) for key in keys},
                    "operators": sorted(map(list, each.operators)),
                    "received": sorted(map(list, each.received)),
                }
                for each in entries
            ],
            "ranking": [asdict(need) for need in ranking(entries, received=received)],
        },
        indent=1,
    )


def _of_models(entries: list[ModelCensus], patterns: tuple[str, ...]) -> list[ModelCensus]:
    """Those whose model matches; the patterns are those of every other verb."""
    if not patterns:
        return entries
    known: dict[str, list[ModelEntry]] = {}
    for suite, model in sorted({(each.suite, each.model) for each in entries}):
        known.setdefault(suite, []).append(ModelEntry(model, ("full",), {}))
    check_plain_names(dict(known), patterns)
    chosen = {
        (suite, entry.name)
        for suite, models in known.items()
        for entry in select_models(suite, models, patterns, "full")
    }
    return [each for each in entries if (each.suite, each.model) in chosen]
