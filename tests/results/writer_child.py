"""A child that appends results to a journal and prints each acknowledgement, until it is killed.

Usage: writer_child.py JOURNAL FIRST COUNT BATCH. It imports nothing but the standard library and the journal.
"""

import sys

from torchgauge.records import Case, Configuration, DeviceTarget, Measurement, Phase, Result, Status, Workload
from torchgauge.results.journal import Journal, Kind


def result_of(index: int) -> Result:
    """The result of case number ``index``."""
    case = Case(Workload("toy", f"m{index}"), Configuration("eager", "eager"), DeviceTarget("fake"))
    samples = Measurement("latency", "s", tuple(0.001 * (i + 1) for i in range(40)))
    return Result("run", case.id, case, Status.PASS, Phase.DONE, None, measurements=(samples,))


def main() -> None:
    """Append ``COUNT`` results in batches of ``BATCH``, numbered from ``FIRST``."""
    path, first, count, batch = sys.argv[1], *map(int, sys.argv[2:5])
    with Journal.open(path) as journal:
        print("open", flush=True)
        for start in range(first, first + count, batch):
            journal.append(Kind.RESULT, [result_of(i) for i in range(start, start + batch)])
            print(*range(start, start + batch), flush=True)


if __name__ == "__main__":
    main()
