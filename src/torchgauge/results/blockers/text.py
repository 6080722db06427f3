"""Rankings for terminals, CSV, JSON and Markdown. Names and errors of a store are nobody's: none may act."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchgauge.counted import counted
from torchgauge.records import to_plain
from torchgauge.results import document, units
from torchgauge.results.blockers.prediction import Accuracy, Forecast, Share
from torchgauge.results.blockers.ranking import Blockers
from torchgauge.results.blockers.verdicts import OperatorState
from torchgauge.results.csv_text import csv_text
from torchgauge.results.document import ours

SHOWN_AGE_S = 3600.0
"""What is younger belongs to one sitting; machine forms have every age."""
CSV_HEADER = (
    "device", "dtype", "path", "kind", "rank", "subject", "count", "status", "forecast", "models", "reason",
    "age_s",
)  # fmt: skip


def terminal_of(rankings: Sequence[Blockers]) -> str:
    """All rankings as a person reads them on a terminal."""
    return document.terminal("results/blockers/blockers", rankings=rankings, **_WORDS)


def markdown_of(rankings: Sequence[Blockers]) -> str:
    """All rankings as one Markdown document."""
    return document.markdown("results/blockers/blockers", rankings=rankings, **_WORDS)


def accuracy_sentence(accuracy: Accuracy) -> str:
    """How good the predictions are on models that were run, each predicted without its own rows."""
    if not accuracy.n:
        return "predictions: accuracy unknown, because no model of this kind was run on the device"
    return (
        f"predictions, checked on {counted(accuracy.n, 'attempted model')}: "
        f"precision {_share(accuracy.precision)}, "
        f"recall {_share(accuracy.recall)} of `blocked`; "
        f"{_share(accuracy.base_rate)} of these models did not run; "
        f"{accuracy.unknown} predictions are `unknown`"
    )


def as_plain(found: Blockers) -> dict[str, Any]:
    """The whole ranking as JSON values, nothing left out."""
    shares = {
        name: _share_plain(getattr(found.accuracy, name)) for name in ("precision", "recall", "base_rate")
    }
    return {**to_plain(found), "accuracy": {**to_plain(found.accuracy), "n": found.accuracy.n, **shares}}


def csv_of(rankings: Iterable[Blockers]) -> str:
    """One line per step, operator, cluster and model; ``kind`` says which."""
    rows = ((found.device, found.dtype, found.path, *row) for found in rankings for row in _csv_rows(found))
    return csv_text(CSV_HEADER, rows)


def _csv_rows(found: Blockers) -> Iterable[tuple[object, ...]]:
    for number, step in enumerate(found.steps, 1):
        models = (*step.unblocks, *step.fixes, *step.perhaps)
        counts = {"unblocks": step.unblocks, "fixes": step.fixes, "perhaps": step.perhaps}
        kinds = ", ".join(f"{kind} {len(members)}" for kind, members in counts.items() if members)
        yield "step", number, " ".join(step.operators), len(models), "", "", " ".join(models), kinds, None
    beside: tuple[object, ...]
    for number, each in enumerate(found.operators, 1):
        models = (*each.in_all, *each.fixes, *each.perhaps)
        beside = each.state.value, "", " ".join(models), each.because, each.age_s
        yield "operator", number, each.operator, len(models), *beside
    for number, cluster in enumerate(found.clusters, 1):
        beside = cluster.status, "", " ".join(cluster.models), cluster.reason, None
        yield "cluster", number, cluster.fingerprint, len(cluster.models), *beside
    for line in found.models:
        beside = (
            line.forecast.value,
            " ".join(line.lacks),
            line.reason if line.status else line.forecast_reason,
        )
        yield "model", None, line.name, len(line.lacks), line.status, *beside, line.age_s


def _titles(names: Iterable[str]) -> list[str]:
    """``suite/model (inference, training)`` for names with modes."""
    modes: dict[str, list[str]] = {}
    for name in names:
        title, _, mode = name.rpartition(":")
        modes.setdefault(title, []).append(mode)
    return [f"{title} ({', '.join(sorted(set(found)))})" for title, found in sorted(modes.items())]


def _models(names: Iterable[str]) -> int:
    """Number of models, whatever the mode."""
    return len({name.rpartition(":")[0] for name in names})


def _wrong(found: Blockers, operators: Sequence[str]) -> bool:
    """Whether all of ``operators`` are there and compute something wrong."""
    states = {each.operator: each.state for each in found.operators}
    return all(states.get(name) is OperatorState.INACCURATE for name in operators)


def _older(seconds: float) -> str:
    return ours(f"{units.age(seconds)} older than the newest run" if seconds >= SHOWN_AGE_S else "")


def _share(share: Share) -> str:
    if share.interval is None or share.value is None:
        return "none (0 of 0)"
    low, high = share.interval
    return f"{share.value:.3f} [{low:.3f}, {high:.3f}] ({share.hits} of {share.n})"


def _share_plain(share: Share) -> dict[str, Any]:
    low, high = share.interval or (None, None)
    return {"value": share.value, "low": low, "high": high, "hits": share.hits, "n": share.n}


_WORDS: dict[str, Any] = {
    "titles": _titles,
    "models": _models,
    "wrong": _wrong,
    "older": _older,
    "accuracy": lambda found: ours(accuracy_sentence(found)),
    "Forecast": Forecast,
}
