"""Kills a compaction before each rename and removal: ``compaction_kills.py FOLDER``; prints what it saw.

Each compaction and each look at a store is a fork of this process, which itself touches no store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import reader_answers as readers
import stored_runs as made

from torchgauge.results.compacted.compaction import compact
from torchgauge.results.dataset import read_table
from torchgauge.results.fsck import check_store
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES


def forked(work: Callable[[], object], out: Path) -> int:
    """How a fork of this process ended that did ``work``, whose result is in ``out`` as JSON."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            out.write_text(json.dumps(work(), default=str))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def build(path: Path) -> None:
    """Two nights that were compacted, of which one was published again since, and a third one."""
    store = Store.open(path, create=True)
    for number in range(3):
        of = made.result(readers.LINEAR, 1e-3 * (number + 1))
        made.run(store, readers.run_id(number), [of], at=made.BEGIN + number)
        if number == 1:
            compact(store)
    publish_again(store, readers.run_id(0))


def killed_before(number: int, path: Path) -> None:
    """Compact the store and be killed before the ``number``-th rename or removal; -1 counts them."""
    steps = 0

    def count(event: str, _arguments: object) -> None:
        nonlocal steps
        if event in ("os.rename", "os.remove"):
            steps += 1
            if steps == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    compact(Store.open(path))
    if number > 0:
        raise SystemExit(f"only {steps} steps")
    path.with_name("steps").write_text(str(steps))


def rows(path: Path) -> object:
    """Every row of the store, and how many runs it has."""
    store = Store.open(path)
    return {name: read_table(store, name).to_pylist() for name in TABLES}, len(store.published())


def seen(path: Path) -> object:
    """The rows after the kill and after another compaction, with what is wrong and left then."""
    before = rows(path)
    compact(Store.open(path))
    left = sorted(each.name for each in path.glob("tables/*/*.parquet"))
    wrong = [[each.path, each.problem] for each in check_store(Store.open(path)).findings]
    return before, rows(path), wrong, left


def main(folder: Path) -> None:
    """Try every third point, beginning with the first, and the last."""
    whole, store, out = folder / "whole", folder / "store", folder / "out.json"
    assert forked(lambda: build(whole), out) == 0
    assert forked(lambda: rows(whole), out) == 0
    expected = json.loads(out.read_text())
    shutil.copytree(whole, store)
    assert forked(lambda: killed_before(-1, store), out) == 0
    points, killed = int((folder / "steps").read_text()), 0
    tried = sorted({*range(1, points + 1, 3), points})
    wrong: list[object] = []
    for number in tried:
        shutil.rmtree(store)
        shutil.copytree(whole, store)
        killed += forked(lambda number=number: killed_before(number, store), out) == -signal.SIGKILL
        code = forked(lambda: seen(store), out)
        if code or json.loads(out.read_text()) != [expected, expected, [], []]:
            wrong.append([number, code, out.read_text()])
    print(json.dumps({"points": len(tried), "killed": killed, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
