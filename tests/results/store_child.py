"""A child that writes a run into a store, or publishes one: ``store_child.py write|finish STORE RUN_ID``."""

import sys

from conftest import Build

from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store


def write(path: str, run_id: str) -> None:
    """A run of two cases, from its plan to its tables."""
    build = Build()
    store = Store.open(path, create=True)
    with store.begin(build.plan(run_id)).open_journal() as journal:
        for result in (build.result(run_id), build.crashed(run_id)):
            journal.append(Kind.RESULT, [result])
        journal.append(Kind.END, [End(RunState.COMPLETE, 0.0)])
    store.finish(run_id)


def finish(path: str, run_id: str) -> None:
    """The tables of a run whose journal is there."""
    Store.open(path).finish(run_id)


if __name__ == "__main__":
    {"write": write, "finish": finish}[sys.argv[1]](sys.argv[2], sys.argv[3])
