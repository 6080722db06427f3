"""A store as frames: what the commands of torchgauge print of it, for pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.live.result import required
from torchgauge.results.store import Store

if TYPE_CHECKING:
    import pandas as pd

TREND = (
    *(
        "case_key",
        "case_id",
        "suite",
        "model",
        "mode",
        "device",
        "configuration",
        "machine",
        "metric",
        "unit",
    ),
    *("run_id", "at", "value", "doubt", "torch_version", "change", "state"),
)
CLAIMS = (
    *("claim", "device", "configuration", "verdict", "why", "estimate", "low", "high", "n", "unit", "method"),
    *("confidence", "planned", "notes", "commands"),
)


def open_store(path: str | Path) -> OpenStore:
    """Return the store (the folder of results) at ``path`` for pandas.

    Raises :class:`UsageError` for a missing store, and :class:`MissingPackageError` without pandas.
    """
    required("pandas", "torchgauge.open")
    return OpenStore(path)


class OpenStore:
    """A store (a folder of results). Every method returns a new pandas frame.

    Below, a case is one model in one configuration on one device. Name a run by its id or its beginning,
    ``latest`` or ``latest~1``. A missing value is ``pandas.NA``.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self._store = str(path), Store.open(path)

    def __repr__(self) -> str:
        return f"torchgauge.open({self.path!r})"

    def results(self, *conditions: str, run: str | None = None) -> pd.DataFrame:
        """Return a row for each case of ``run``, or of all runs: status, reason and so on.

        Conditions are as in ``torchgauge results query``: ``"status=crash"``, ``"model=bert*"``.
        Raises :class:`UsageError` for a condition that cannot be read.
        """
        return self._query("results", run, conditions)

    def summaries(self, *conditions: str, run: str | None = None, metric: str | None = None) -> pd.DataFrame:
        """Return a row for each case and metric: median, its interval, unit and reasons to doubt it."""
        return self._query("summaries", run, (*conditions, *([f"metric={metric}"] if metric else [])))

    def samples(self, *conditions: str, run: str | None = None) -> pd.DataFrame:
        """Return a row for each raw sample: metric, round and value."""
        return self._query("samples", run, conditions)

    def latest(self) -> pd.DataFrame:
        """Return the newest row of each case, with its age in seconds."""
        from torchgauge.results.frames import latest

        return latest(self._store)

    def compare(
        self,
        base: str = "latest~1",
        head: str = "latest",
        *,
        device: tuple[str, str] = ("", ""),
        config: tuple[str, str] = ("", ""),
        metric: str = "latency",
        policy: str | None = None,
    ) -> pd.DataFrame:
        """Return a row for each case and metric of two runs: verdict, ratio and its interval.

        A ratio is head time over base time. The verdict is ``undecided`` unless the store has
        three earlier runs of the case on the same machine and software: they give its noise.

        - To compare two devices of one run, pass ``device=(BASE, HEAD)``.
        - To compare two configurations, pass ``config=(BASE, HEAD)``.
        """
        from torchgauge.records.comparison import MetricVerdict
        from torchgauge.results.comparing.run_pairs import RunSide
        from torchgauge.results.comparing.two_runs import compare_named

        sides = (RunSide(base, device[0], config[0]), RunSide(head, device[1], config[1]))
        found = compare_named(self._store, *sides, policy, metric=metric)
        return _frame(found.verdicts, [field.name for field in fields(MetricVerdict)])

    def trend(self, metric: str = "latency", *, since: float = 0.0, **globs: Any) -> pd.DataFrame:
        """Return a row for each nightly run of each case: ``at`` (UTC) and ``value``.

        - ``since``: excludes older runs, in seconds since the epoch.
        - ``globs``: select cases by ``suite``, ``model``, ``device`` and ``configuration``.

        ``change`` is the relative change that began that night. ``state`` shows whether it was confirmed.
        """
        import pandas as pd

        from torchgauge.results.dataset import around_damage
        from torchgauge.results.trends.trend import trend
        from torchgauge.results.trends.trend_findings import TrendFilter

        wanted = TrendFilter(metric=metric, since=since, **globs)
        found, rows = around_damage(self._store, lambda: trend(self._store, wanted)), []
        for each in found.series:
            changes = {one.suspect.run_id: one for one in each.suspicions}
            for night in each.series.nights:
                change = changes.get(night.run_id)
                rows.append(
                    {
                        **vars(each.series),
                        **vars(night),
                        "change": change.change.size if change else None,
                        "state": change.state.value if change else None,
                    }
                )
        frame = _frame(rows, TREND)
        return frame.assign(at=pd.to_datetime(frame["at"], unit="s", utc=True))

    def claims(self, *names: str) -> pd.DataFrame:
        """Return a row for each published claim, device and configuration: verdict, estimate, interval.

        ``torchgauge results claim --list`` prints the names. Raises :class:`UnknownNameError`.
        """
        from torchgauge.harness.planning.claim_models import list_models
        from torchgauge.results.claims.answering import answer_claim
        from torchgauge.results.claims.catalogue import find_claim
        from torchgauge.results.claims.claim_file import bundled_claims

        known = bundled_claims()
        asked = [find_claim(name, known) for name in names] or known
        answers = [
            answer for claim in asked for answer in answer_claim(claim, [self.path], list_models).answers
        ]
        return _frame(answers, CLAIMS)

    def compat(self, *devices: str) -> pd.DataFrame:
        """Return a row for each check, operator and model, and each of ``devices`` (all by default)."""
        from torchgauge.results.compat.gathering import compare_devices
        from torchgauge.results.compat.text import rows_of

        rows = list(rows_of(compare_devices([self.path], devices)))
        return _frame(rows, list(dict.fromkeys(name for row in rows for name in row)))

    def _query(self, table: str, run: str | None, conditions: Iterable[str]) -> pd.DataFrame:
        from torchgauge.results.lookup import resolve_run
        from torchgauge.results.query import query

        runs = None if run is None else resolve_run(self._store, run)
        return query(self._store, conditions, table, runs)


def _frame(rows: Sequence[Any], columns: Sequence[str]) -> pd.DataFrame:
    """Return ``rows``, records or dicts, as a frame with ``columns``, of nullable types."""
    import pandas as pd

    def plain(row: Any, name: str) -> Any:
        value = row.get(name) if isinstance(row, dict) else getattr(row, name)
        return getattr(value, "value", value)

    data = {name: [plain(row, name) for row in rows] for name in columns}
    return pd.DataFrame(data, columns=list(columns)).convert_dtypes()
