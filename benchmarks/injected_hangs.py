"""How many culprits the flight records of a group name, and whether groups without one are left in peace.

``--each N`` hangs of each kind are injected into groups of three real processes, by another process and in
another call each time, and as many groups as hangs run without a fault. Prints one JSON object; ends with 1
where a culprit was not named, or a record was told of a group that had none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

from torchgauge.harness.worker.flight_check import inject, judged
from torchgauge.harness.worker.injected_hang import KINDS, Injected
from torchgauge.processes.kept_process import scratch
from torchgauge.records import Status


def main() -> int:
    """Inject, count and say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument(
        "--clean", type=int, default=None, help="groups without a fault; default: as many as hangs"
    )
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a call may take")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    dice = random.Random(asked.seed)
    kinds = [kind for kind in KINDS for _ in range(asked.each)]
    clean = len(kinds) if asked.clean is None else asked.clean
    named, missed, dumps, seconds = 0, [], 0, []
    for number, kind in enumerate([*kinds, *[""] * clean]):
        with scratch("hangs") as folder:
            injected = Injected(
                kind, dice.randrange(asked.ranks), dice.randint(2, 9), asked.ranks, asked.limit, str(folder)
            )
            found = inject(injected)
        told = f"{number + 1}/{len(kinds) + clean} {kind or 'clean'}"
        if not kind:
            dumps += found.told
            if found.told or any(found.statuses):
                missed.append(f"clean: {found}")
            continue
        said = judged(injected, found)
        if said.status is Status.PASS:
            named += 1
            seconds.append(found.seconds)
        else:
            missed.append(f"{kind} by {injected.culprit} at {injected.number}: {said.reason}")
        print(f"{told}: {said.reason or (found.named.why if found.named else '')}", file=sys.stderr)
    answer = {
        "hangs": len(kinds),
        "named": named,
        "clean": clean,
        "records_of_clean": dumps,
        "missed": missed,
        "median_s": statistics.median(seconds) if seconds else None,
    }
    print(json.dumps(answer))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
