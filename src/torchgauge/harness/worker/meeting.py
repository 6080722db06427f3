"""The place where processes that a launcher started find each other: torch's store, in a process of its own.

The parent never imports torch, so this process, of the target interpreter, opens the store that the launcher
named: it is its server where nobody else is, and a client beside it. What rank 0 has to say to the others
lies there; workers meet in it too, case by case. It lives until its standard input ends.
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import timedelta
from typing import Any

MARK = "torchgauge-meeting "
"""Begins the line of the answer; libraries may print others."""


def meet(words: dict[str, Any]) -> tuple[dict[str, str], Any]:
    """What this process has and finds, or the ``error`` that kept it from that; and the store, to be kept."""
    import torch
    from torch.distributed import TCPStore

    answer = {"torch": str(torch.__version__), "Python": platform.python_version()}
    try:
        store = TCPStore(
            words["address"],
            words["port"],
            is_master=words["serves"],
            wait_for_workers=False,
            timeout=timedelta(seconds=words["patience_s"]),
        )
        if words["tells"]:
            store.set(words["key"], words["tells"])
        else:
            answer["told"] = store.get(words["key"]).decode()
    except Exception as error:  # noqa: BLE001  whatever torch raises here, the parent says it
        return {**answer, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}, None
    return answer, store


def main() -> None:
    """Answer on standard output, and keep the store until standard input ends."""
    answer, store = meet(json.loads(sys.argv[1]))
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    del store


if __name__ == "__main__":
    main()
