"""Makes a run, an A/B run or a whole store one of another schema version."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.journal_record import Kind, PlanStamp, encode_line
from torchgauge.results.planned_folder import PlannedFolder
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.seal import seal
from torchgauge.results.store import Store

OLDER = SCHEMA_VERSION - 1


def age_run(store: Store, run_id: str, folder: str = "runs", version: int = OLDER) -> None:
    """Write ``version`` into every file of ``run_id``; ``folder`` is that of its kind."""
    planned = PlannedFolder(store.path / folder / run_id)
    for path in (planned.plan_path, planned.path / "run.json"):
        if path.is_file():
            path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": version}))
    if planned.journal_path.is_file():
        _, *lines = planned.journal_path.read_bytes().splitlines(keepends=True)
        stamp = encode_line(1, Kind.PLAN, PlanStamp(run_id, "0" * 16, version))
        planned.journal_path.write_bytes(b"".join([stamp, *lines]))
    tables = sorted((store.path / "tables").glob(f"*/{run_id}.parquet"))
    for path in tables:
        table = pq.read_table(path)
        metadata = {VERSION_KEY: str(version).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path, write_page_checksum=True)
    seal(store.path, planned, tables)


def age_store(path: Path, version: int = OLDER) -> None:
    """Write ``version`` into the marker of the store at ``path``."""
    (path / "store.json").write_text(json.dumps({"schema_version": version}))
