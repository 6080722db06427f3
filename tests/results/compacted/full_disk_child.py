"""A child whose disk is full while it compacts: ``full_disk_child.py FOLDER LEFT``; prints what it saw."""

import json
import sys
from pathlib import Path

sys.path.extend((str(Path(__file__).parents[2]), str(Path(__file__).parents[1])))

import stored_runs as made
from small_disk import fill, free

from torchgauge.errors import InfrastructureError
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.dataset import read_table
from torchgauge.results.fsck import check_store
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES


def rows(path: Path) -> str:
    """Every row of the store."""
    store = Store.open(path)
    return json.dumps({name: read_table(store, name).to_pylist() for name in TABLES}, default=str)


def compact_on_a_full_disk(folder: Path, left: int) -> dict[str, object]:
    """Fill the disk but for ``left`` bytes and compact; then again with the disk freed."""
    store = Store.open(folder / "store", create=True)
    for number in range(2):
        made.run(store, f"night-{number}", [made.result(made.case(), 1e-3)], at=made.BEGIN + number)
    before = rows(store.path)
    fill(folder, left)
    seen: dict[str, object] = {"error": "", "advice": ""}
    try:
        compact(Store.open(store.path))
    except InfrastructureError as error:
        seen |= {"error": error.message, "advice": error.hint}
    seen["same"] = rows(store.path) == before
    seen["left over"] = [path.name for path in store.path.glob("compacted/*/*")]
    free(folder)
    seen["after"] = [report.done for report in compact(Store.open(store.path))]
    seen["same after"] = rows(store.path) == before
    seen["findings"] = [each.path for each in check_store(Store.open(store.path)).findings]
    return seen


if __name__ == "__main__":
    print(json.dumps(compact_on_a_full_disk(Path(sys.argv[1]), int(sys.argv[2]))))
