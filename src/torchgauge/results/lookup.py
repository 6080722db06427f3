"""What a person means by a name: a run, an A/B run or a case of a store.

An id, the beginning or the end of one, ``latest``, or ``latest~1`` for the one before it. Every verb that
takes a run or a comparison asks here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torchgauge.counted import counted, plural
from torchgauge.errors import OtherSchemaError, UnknownNameError, UsageError
from torchgauge.records import Result
from torchgauge.results.journal import results
from torchgauge.results.store import Store

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
_SHORTEST = 4


def resolve(name: str, known: Sequence[str], kind: str = "run", several: str = "") -> str:
    """The id of ``known``, which are in order of time, that ``name`` means.

    Raises :class:`UsageError` for an abbreviation of several ids or more steps back than there are, and
    :class:`UnknownNameError` with suggestions.
    """
    if name in known:
        return name
    kinds = several or plural(kind)
    found = _LATEST.fullmatch(name)
    if found is not None:
        back = int(found[1] or 0)
        if back >= len(known):
            there = f"there is 1 {kind}" if len(known) == 1 else f"there are {len(known) or 'no'} {kinds}"
            raise UsageError(f"{name}: {there} in the store", hint=_hint(kind, known))
        return known[-1 - back]
    matching = [each for each in known if name and (each.startswith(name) or each.endswith(name))]
    if len(matching) == 1 and len(name) >= _SHORTEST:
        return matching[0]
    if len(matching) > 1:
        listed = ", ".join(matching[:5]) + (", ..." if len(matching) > 5 else "")
        raise UsageError(f"{name!r} means {counted(len(matching), kind, kinds)}", hint=f"one of: {listed}")
    raise UnknownNameError(kind.removeprefix("finished "), name, known, hint="" if known else _hint(kind, ()))


def _hint(kind: str, known: Sequence[str]) -> str:
    """What to type for what there is of a kind, and how the first one comes about where there is none."""
    listing = "torchgauge matrix --show latest" if kind == "matrix" else "torchgauge results list"
    return f"{listing} shows them" if known else f"{MAKERS.get(kind, MAKERS['run'])} makes one"


MAKERS = {
    "run": "torchgauge run SUITE --device DEVICE",
    "comparison": "torchgauge ab --base PYTHON --head PYTHON SUITE --device DEVICE",
    "matrix": "torchgauge matrix SUITE --torch VERSION,VERSION --device DEVICE",
    "bisection": "torchgauge bisect SUITE/MODEL --device DEVICE --build LABEL=PYTHON --build LABEL=PYTHON",
}
"""The command that makes the first object of a kind."""


def is_latest(name: str) -> bool:
    """Whether ``name`` counts back from the newest."""
    return _LATEST.fullmatch(name) is not None


def resolve_run(store: Store, name: str) -> str:
    """The published run of ``store`` that ``name`` means; an unfinished one is refused."""
    if "/" not in name and store.is_published(name):
        return name
    infos = store.runs()
    try:
        return resolve(name, [info.run_id for info in infos if info.published], "finished run")
    except UnknownNameError:
        unfinished = [info.run_id for info in infos if not info.published]
        other = next((each for each in unfinished if name in (each, each[: len(name)])), None)
        if other is None:
            raise UnknownNameError("run", name, [info.run_id for info in infos]) from None
    raise UsageError(
        f"run {other} is not finished, so it has no tables to read",
        hint=f"torchgauge run --resume {store.path / 'runs' / other} finishes it",
    )


def resolve_any_run(store: Store, name: str) -> str:
    """The run of ``store`` that ``name`` means, finished or not."""
    known = [info.run_id for info in store.runs()] if is_latest(name) else store.run_ids()
    return resolve(name, known)


def _comparison_ids(store: Store) -> tuple[str, ...]:
    # here: it brings scipy, a second that a run does not need
    from torchgauge.results.comparing.comparison_store import comparison_ids

    return comparison_ids(store)


def resolve_comparison(store: Store, name: str) -> str:
    """The A/B run of ``store`` that ``name`` means."""
    return resolve(name, _comparison_ids(store), "comparison")


def resolve_either(store: Store, name: str) -> str:
    """The run or the A/B run of ``store`` that ``name`` means; their ids are in order of time."""
    return resolve(
        name, sorted({*store.run_ids(), *_comparison_ids(store)}), "comparison or run", "comparisons and runs"
    )


def resumed_folder(store: str, name: str, folder: str) -> str:
    """The path of what is to go on: ``name``, where that is a folder with a plan, or what it means there.

    ``folder`` is ``runs`` or ``comparisons``, in the store at ``store``. Raises :class:`UsageError` where it
    is neither.
    """
    if (Path(name) / "plan.json").is_file():
        return name
    kind = "run" if folder == "runs" else "comparison"
    shows = (
        f"--resume STORE/{folder}/ID, or --resume latest with --store; torchgauge results list prints the ids"
    )
    if "/" in name or not (Path(store) / "store.json").is_file():
        raise UsageError(f"--resume {name}: not the folder of a {kind}", hint=shows)
    opened = Store.open(store, writes=True)
    resolver = resolve_any_run if folder == "runs" else resolve_comparison
    return str(opened.path / folder / resolver(opened, name))


def find_results(store: str, name: str) -> tuple[list[Result], bool]:
    """All results of the run that ``name`` means and True, or the newest result of a case and False.

    Raises :class:`UnknownNameError` with suggestions where neither exists.
    """
    opened = Store.open(store)
    run_ids = opened.run_ids()
    if not run_ids:
        raise UsageError(f"the store {store} holds no run", hint="torchgauge run SUITE --device DEVICE")
    if name in run_ids or ":" not in name:
        return results_of(opened, resolve_any_run(opened, name)), True
    known: set[str] = set()
    for run_id in reversed(run_ids):
        try:
            found = results_of(opened, run_id)
        except OtherSchemaError:
            continue  # `results list` names it
        known.update(result.case_id for result in found)
        matching = [result for result in found if result.case_id == name]
        if matching:
            return matching, False
    raise UnknownNameError("case", name, known)


def results_of(store: Store, run_id: str) -> list[Result]:
    """Every row of a run so far, in the order of its journal; none where it has no journal yet."""
    folder = store.run(run_id)
    if not folder.journal_path.is_file():
        return []
    return list(results(folder.journal_path))
