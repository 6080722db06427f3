"""A child that writes a run into a store, or publishes one: ``store_child.py ACTION STORE RUN_ID``.

``close`` and ``publish`` are publications that say when they have come to that step, and go no further.
"""

import sys
import time

from conftest import Build

from torchgauge.results import publication
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


def close(path: str, run_id: str) -> None:
    """Up to the end of the first table, the others half written."""
    publication.TableWriter.close = _wait_for_the_kill
    finish(path, run_id)


def publish(path: str, run_id: str) -> None:
    """Up to where all tables are written and none has its name."""
    publication.publish = _wait_for_the_kill
    finish(path, run_id)


def _wait_for_the_kill(*_: object) -> None:
    print("reached", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    {"write": write, "finish": finish, "close": close, "publish": publish}[sys.argv[1]](
        sys.argv[2], sys.argv[3]
    )
