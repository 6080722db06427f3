"""The runs that a person means: an id, the beginning or the end of one, ``latest`` or ``latest~1``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.results.store import Store

_LATEST = re.compile(r"latest(?:~(\d+))?")
_SHORTEST = 4


def resolve(name: str, known: Sequence[str], kind: str = "run") -> str:
    """The id of ``known``, which are in order of time, that ``name`` means.

    Raises :class:`UsageError` for an abbreviation of several ids or more steps back than there are, and
    :class:`UnknownNameError` with suggestions.
    """
    if name in known:
        return name
    found = _LATEST.fullmatch(name)
    if found is not None:
        back = int(found[1] or 0)
        if back >= len(known):
            raise UsageError(
                f"{name}: there are {len(known)} finished {kind}s", hint="torchgauge results list shows them"
            )
        return known[-1 - back]
    matching = [each for each in known if each.startswith(name) or each.endswith(name)]
    if len(matching) == 1 and len(name) >= _SHORTEST:
        return matching[0]
    if len(matching) > 1:
        listed = ", ".join(matching[:5]) + (", ..." if len(matching) > 5 else "")
        raise UsageError(f"{name!r} means {len(matching)} {kind}s", hint=f"one of: {listed}")
    raise UnknownNameError(kind, name, known)


def resolve_run(store: Store, name: str) -> str:
    """The published run of ``store`` that ``name`` means; an unfinished one is refused."""
    infos = store.runs()
    try:
        return resolve(name, [info.run_id for info in infos if info.published])
    except UnknownNameError:
        unfinished = [info.run_id for info in infos if not info.published]
        other = next((each for each in unfinished if name in (each, each[: len(name)])), None)
        if other is None:
            raise
    raise UsageError(
        f"run {other} is not finished, so it has no numbers to compare",
        hint=f"torchgauge run --resume {other} finishes it",
    )


def resolve_comparison(store: Store, name: str) -> str:
    """The A/B run of ``store`` that ``name`` means."""
    from torchgauge.results.comparing.comparison_store import comparison_ids

    return resolve(name, comparison_ids(store), "comparison")
