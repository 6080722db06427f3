"""How long a bringup of the simulated device takes: until the ten answers, and in all.

``python benchmarks/bringup_time.py --work DIR [--budget 30m] [--kernel-us 200]``: one bringup of `npusim`,
whose kernels occupy the device, in a new folder below DIR. Prints one JSON object: seconds of each part, and
answers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from child_run import run_child

ANSWERS = 10


def main() -> None:
    """Run the command and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--budget", default="30m")
    parser.add_argument("--kernel-us", type=int, default=200)
    options = parser.parse_args()
    out = options.work / f"bringup-{int(time.time())}"
    words = ("bringup", "--device", "npusim", "--out", str(out), "--budget", options.budget, "--json")
    load = os.getloadavg()[0]
    fault = f"kernel_us={options.kernel_us},events=right"

    def answered(text: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(text)
        if len(report["answers"]) != ANSWERS:
            raise ValueError(f"{len(report['answers'])} answers of {ANSWERS}")
        return report

    ended = run_child(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        answered,
        good=(0, 1, 3),
        log=sys.stderr.buffer,
        env={**os.environ, "TORCHGAUGE_NPUSIM_FAULT": fault},
    )
    report = ended.results
    state = report["state"]
    found = {
        "ten_answers_s": round(state["answered_s"], 1),
        "total_s": round(ended.seconds, 1),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "exit_code": ended.code,
        "parts_s": {each["part"]: [each["state"], round(each["seconds"], 1)] for each in state["parts"]},
        "answers": {each["question"]["key"]: each["word"] for each in report["answers"]},
        "report": str(out / "report.html"),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
