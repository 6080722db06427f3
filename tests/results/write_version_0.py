"""Made ``data/v0`` once, from today's code turned back to version 0; kept to show what that format was.

Version 0 called the failure of a result ``error``, the column ``device`` ``device_name``, and knew neither
modifiers, realised notes, blocks, observations nor calibrations. Run it as
``python tests/results/write_version_0.py`` from the repository root, only while the schema is version 1.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))

from conftest import Build

from torchgauge.results.journal_record import Kind
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.store import Store

TARGET = Path(__file__).parent / "data" / "v0"
NEWER_COLUMNS = ("modifiers", "realised_notes", "block", "observation")


def main() -> None:
    """Write a published run and one that was interrupted after all its rows."""
    shutil.rmtree(TARGET, ignore_errors=True)
    store = Store.open(TARGET, create=True)
    build = Build()
    build.published(store, "old-published")
    folder = store.begin(build.plan("old-unpublished"))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [build.environment])
        journal.append(Kind.RESULT, [build.result("old-unpublished"), build.crashed("old-unpublished")])
    for run_id in store.run_ids():
        _journal(store.run(run_id).journal_path)
        _json(store.run(run_id).plan_path)
        (store.run(run_id).logs / ".gitkeep").touch()
    _json(store.run("old-published").info_path)
    _json(TARGET / "store.json")
    shutil.rmtree(TARGET / "tables" / "calibrations")
    for path in (TARGET / "tables").glob("*/*.parquet"):
        _table(path)


def _journal(path: Path) -> None:
    import zlib

    lines = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        data, kind = record["data"], record["kind"]
        if "schema_version" in data:
            data["schema_version"] = 0
        if kind == "result":
            data["error"] = data.pop("failure")
            del data["modifiers"]
        if kind == "calibration":
            continue
        number, body = len(lines) + 1, json.dumps(data, separators=(",", ":"))
        crc = zlib.crc32(f"{number}:{kind}:{body}".encode())
        lines.append(f'{{"n":{number},"kind":"{kind}","crc":"{crc:08x}","data":{body}}}\n')
    path.write_text("".join(lines))


def _json(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 0}, indent=1) + "\n")


def _table(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    table = table.drop_columns([name for name in NEWER_COLUMNS if name in table.column_names])
    if path.parent.name in ("results", "summaries"):
        names = ["device_name" if name == "device" else name for name in table.column_names]
        table = table.rename_columns(names)
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: b"0"}), path, compression="zstd")


if __name__ == "__main__":
    main()
