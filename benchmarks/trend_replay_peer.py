"""The other detector of ``trend_replay.py``: apache-otava, in the interpreter that has it.

Reads a request on stdin: ``history`` (nights before the first judgement), ``p``, ``smallest`` (relative),
``near`` (nights within which a change point is the same one) and ``runs`` (logarithms, one list per run).
Writes, for each run, a list of alarms (night, position). A change point is an alarm on the first night on
which it is reported; those that were there before the first judgement are not.
"""

from __future__ import annotations

import json
import math
import sys

from otava.analysis import compute_change_points


def alarms(nights: list[float], request: dict) -> list[tuple[int, int]]:
    """The alarms of one run, in the order of nights."""
    values = [math.exp(each) for each in nights]
    rules = {"max_pvalue": request["p"], "min_magnitude": request["smallest"]}
    known: list[int] = []
    found = []
    for night in range(request["history"] - 1, len(values)):
        points, _ = compute_change_points(values[: night + 1], **rules)
        for point in points:
            if all(abs(point.index - each) > request["near"] for each in known):
                known.append(int(point.index))
                if night >= request["history"]:
                    found.append((night, int(point.index)))
    return found


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    memory: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    answer = []
    for run in request["runs"]:
        key = tuple(run)
        if key not in memory:
            memory[key] = alarms(run, request)
        answer.append(memory[key])
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
