"""A child whose disk is full while it publishes: ``full_disk_child.py FOLDER LEFT``; prints what it saw."""

import json
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from conftest import Build
from small_disk import fill, free

from torchgauge.errors import InfrastructureError
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store


def torchgauge(*arguments: str) -> dict[str, object]:
    """Exit code and words of a command."""
    command = [sys.executable, "-c", "from torchgauge.cli.main import main; main()", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return {"code": done.returncode, "out": done.stdout}


def publish_on_a_full_disk(folder: Path, left: int) -> dict[str, object]:
    """Fill the disk but for ``left`` bytes, publish, list, query; then again with the disk freed."""
    at, build = str(folder / "store"), Build()
    store = Store.open(at, create=True)
    with store.begin(build.plan()).open_journal() as journal:
        journal.append(Kind.RESULT, [build.result(), build.crashed()])
        journal.append(Kind.END, [End(RunState.COMPLETE, 0.0)])
    fill(folder, left)
    seen: dict[str, object] = {"error": "", "advice": ""}
    try:
        store.finish("run-1")
    except InfrastructureError as error:
        seen |= {"error": error.message, "advice": error.hint.partition("then: ")[2]}
    seen["list"] = torchgauge("results", "list", "--store", at)
    seen["query"] = torchgauge("results", "query", "--store", at)
    free(folder)
    words = str(seen["advice"]).split()
    seen["publish"] = torchgauge(*words[1:])
    seen["list after"] = torchgauge("results", "list", "--store", at)
    seen["query after"] = torchgauge("results", "query", "--store", at)
    seen["left over"] = sorted(path.name for path in folder.rglob(".*.tmp"))
    return seen


if __name__ == "__main__":
    print(json.dumps(publish_on_a_full_disk(Path(sys.argv[1]), int(sys.argv[2]))))
