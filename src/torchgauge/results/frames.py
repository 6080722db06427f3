"""Documented pandas views of a store: ``from torchgauge.results import frames``.

Missing values are ``pd.NA`` in nullable columns, never NaN. Every view works on a store without runs and
then has the same columns and no rows. Columns that come from a table are documented with it in
``docs/reference/store.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.records import number_counts
from torchgauge.results.dataset import Runs, read_latest, read_table
from torchgauge.results.latest import KEYS, STALE_AFTER_S, in_time, standing
from torchgauge.results.row_case import WORKLOAD
from torchgauge.results.store import Store
from torchgauge.results.table_file import Where
from torchgauge.results.tables import TABLES


def results(store: Store, run: Runs = None) -> pd.DataFrame:
    """One row per planned case and run: run_id, case_id, case_key; the workload (suite, model, mode, dtype,
    batch, size, shape, seed, weights, declared_hash); configuration, backend, device, device_index; status,
    phase, cause, reason, expected, unexpected, modifiers; error_*, missing_op, fingerprint, traceback;
    realised_hash, parameters; the accuracy numbers; environment_id, torch_version, run_created_at,
    started_at, duration_s; exit, teardown, log, reproduce, facts (``tables.RESULTS`` has all).
    """  # noqa: D205
    return frame_of(read_table(store, "results", run))


def summaries(store: Store, run: Runs = None, where: Where = ()) -> pd.DataFrame:
    """One row per case, metric and run: the case's columns as in :func:`results`, status, metric, unit,
    better, n, median, low, high, confidence, method, provenance, stopped, absent, realised_hash,
    environment_id, torch_version, run_created_at, started_at (``tables.SUMMARIES``). ``modifiers`` are those
    of its row of :func:`results`: step times of an ``unsteady`` or ``unchecked`` row belong in no mean.
    ``where``, such as ``(("case_key", frozenset({key})),)``, reads only rows with one of the words in it.
    """  # noqa: D205
    return with_modifiers(store, frame_of(read_table(store, "summaries", run, where=where)), run)


def with_modifiers(store: Store, numbers: pd.DataFrame, run: Runs = None) -> pd.DataFrame:
    """``numbers``, a frame with run_id and case_key, with the ``modifiers`` of the row of each."""
    keys = ["run_id", "case_key"]
    cases = frozenset(numbers["case_key"].unique().tolist())
    where = (("case_key", cases),) if len(cases) <= _FEW_CASES else ()
    rows = frame_of(read_table(store, "results", run, (*keys, "modifiers"), where))
    return numbers.merge(rows, on=keys, how="left", validate="many_to_one")


def samples(store: Store, run: Runs = None) -> pd.DataFrame:
    """One row per raw sample: run_id, case_key, metric, block, index, value (``tables.SAMPLES``)."""
    return frame_of(read_table(store, "samples", run))


def environments(store: Store, run: Runs = None) -> pd.DataFrame:
    """One row per fact: run_id, environment_id, device, key, value (JSON), kind, observation."""
    return frame_of(read_table(store, "environments", run))


def calibrations(store: Store, run: Runs = None) -> pd.DataFrame:
    """One row per calibration: run_id, device, at, index, gemm_flops, copy_bytes_per_s, launch_s, absent."""
    return frame_of(read_table(store, "calibrations", run))


def latest(
    store: Store, run: Runs = None, *, clock: Clock = SYSTEM_CLOCK, stale_after_s: float = STALE_AFTER_S
) -> pd.DataFrame:
    """The newest row of :func:`results` per case key, with ``age_s`` and ``stale``.

    A ``not_run`` or ``infra`` row says nothing of the case, so an older row stands in for it where there is
    one. ``age_s`` is in seconds since the case started (or was planned). ``stale`` is true where the row
    stands in for a newer one or is older than ``stale_after_s``.
    """
    table = in_time(_may_stand(store, "results", run))
    stands, newest = (table.take(places) for places in standing(table, "case_key"))
    frame, when = frame_of(stands.drop_columns("when")), frame_of(stands.select(["when"]))["when"]
    age = (pd.Timestamp(clock.now(), unit="s", tz="UTC") - when).dt.total_seconds().astype("Float64")
    stands_in = when < frame_of(newest.select(["when"]))["when"]
    frame = frame.assign(age_s=age, stale=(stands_in | (age > stale_after_s)).astype("boolean"))
    return frame.sort_values("case_id").reset_index(drop=True)


def _may_stand(
    store: Store, name: str, run: Runs, columns: Sequence[str] | None = None, where: Where = ()
) -> Any:
    """Rows of a table, over ``run`` or all runs, of which those that stand for their case are taken."""
    if run is not None:
        return read_table(store, name, run, columns, where)
    return read_latest(store, name, columns or TABLES[name].names, where)


def matrix(store: Store, metric: str, run: Runs = None) -> pd.DataFrame:
    """Medians of ``metric``, in its base unit, of the rows of :func:`latest`, those that may be compared.

    One row per workload (index: its columns, as in :func:`results`, without the hash), one column per pair of
    device and configuration (``device`` carries the index where it is not 0); ``pd.NA`` where there is
    no number, and where the row's modifiers keep it out of every comparison (``records.number_counts``).
    """
    keys = ["run_id", "case_key"]
    rows = in_time(_may_stand(store, "results", run, (*KEYS, "modifiers")))
    chosen = frame_of(rows.take(standing(rows, "case_key")[0]).select([*keys, "modifiers"]))
    told = (*keys, *WORKLOAD, "device", "device_index", "configuration", "status", "median")
    frame = frame_of(_may_stand(store, "summaries", run, told, (("metric", frozenset({metric})),)))
    frame = frame[frame["median"].notna()].merge(chosen, on=keys)
    counts = [number_counts(metric, *row) for row in zip(frame["status"], frame["modifiers"], strict=True)]
    frame["median"] = frame["median"].where(pd.Series(counts, index=frame.index, dtype=bool))
    shown = frame["device"].where(
        frame["device_index"] == 0, frame["device"] + "." + frame["device_index"].astype("string")
    )
    frame = frame.assign(device=shown).set_index([*WORKLOAD, "device", "configuration"])
    table = frame["median"].unstack(["device", "configuration"])
    return table.sort_index(axis=0).sort_index(axis=1)


def frame_of(table: Any) -> pd.DataFrame:
    """An Arrow table as a frame of nullable columns; lists become Python lists."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=_NULLABLE.get)
    for field in table.schema:
        if pa.types.is_list(field.type):
            frame[field.name] = pd.Series(
                table.column(field.name).to_pylist(), index=frame.index, dtype=object
            )
    return frame


_FEW_CASES = 16
"""Cases for which parts of the tables are looked for, in place of reading all of them."""

_NULLABLE: dict[Any, Any] = {
    pa.string(): pd.StringDtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
