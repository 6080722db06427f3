"""What the worst reports of a pull request cost the job that comments: CPU seconds for each MB, peak memory.

Every report is built for one weakness and has a right manifest. A process of its own reads the zips of all
pools, judges them and writes the comment, as ``torchgauge ci report comment`` does with its downloads. MB,
CPU and limits are those of ``ingest_cost.py``. ``--out FILE`` writes the table as Markdown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from child_run import run_child
from ingest_cost import MB, nested, peak_kib, table

from torchgauge.records import to_plain
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.reports.report import ComparisonReport
from torchgauge.workflows.comment import comment_text
from torchgauge.workflows.gate_plan import GatePlan
from torchgauge.workflows.gate_received import gather
from torchgauge.workflows.gate_set import (
    ARTIFACT_PREFIX,
    MOST_VERDICTS,
    REPORT,
    Origin,
    nothing_measured,
    write_gate_set,
)
from torchgauge.workflows.workflow_event import GateRun

ORIGIN = Origin("owner/project", "a" * 40, 77, 1)
RUN = GateRun(ORIGIN.repository, ORIGIN.run_id, ORIGIN.attempt, ORIGIN.head_sha, "topic", "o/fork", "success")
BYTES = 6 * 1024 * 1024 - 2_000
"""A report may have 6 MiB."""
SIDES = ("torch==2.12.0", "torch==2.13.0")


def verdicts(text: str, size: int = BYTES, most: int = MOST_VERDICTS) -> Callable[[dict[str, Any]], None]:
    """As many regressions with ``text`` as fit into ``size`` bytes, and ``most`` of them."""

    def fill(report: dict[str, Any]) -> None:
        one = MetricVerdict(
            "0" * 16, "x", "x", "x", "latency", "s", "e", Verdict.REGRESSION, text, 1.0, 2.0, 2.0
        )
        each = to_plain(one)
        count = min(most, size // (len(json.dumps(each, separators=(",", ":"))) + 1))
        report["verdicts"] = [{**each, "pair_key": f"{number:016x}"} for number in range(count)]

    return fill


def many(field: str, item: object, most: int) -> Callable[[dict[str, Any]], None]:
    """``item`` in the list ``field`` until it has the bytes, or ``most`` of them."""
    size = len(json.dumps(item, separators=(",", ":"))) + 1
    return lambda report: report.update({field: [item] * min(most, BYTES // size)})


def environments(report: dict[str, Any]) -> None:
    """Facts of devices on both sides."""
    for side in ("base", "head"):
        facts = [[f"{number:x}", "x"] for number in range(100_000)]
        report[side]["environments"] = [[f"d{place}", facts] for place in range(2)]


def within(text: str) -> Callable[[dict[str, Any]], None]:
    """``text`` of JSON where a text belongs."""
    return lambda report: report.update(policy=text)


REPORTS: dict[str, tuple[int, Callable[[dict[str, Any]], object]]] = {
    "start: one verdict": (1, verdicts("", 600)),
    "verdicts": (1, verdicts("")),
    "more verdicts than allowed": (1, verdicts("", most=100_000)),
    "verdicts of 16 pools": (16, verdicts("")),
    "verdicts with words of 16 pools": (16, verdicts("x" * 390)),
    "long reasons": (1, verdicts("x" * 60_000)),
    "reasons of escapes": (1, verdicts("`|@<\\" * 6_000)),
    "reasons of foreign letters": (1, verdicts("\u4e2d" * 10_000)),
    "marks upon one letter": (1, verdicts("a" + "\u0301" * 10_000)),
    "pairs that were not run": (1, many("not_run", ["a", "b"], 100_000)),
    "facts of environments": (1, environments),
    "facts of environments of 16 pools": (16, environments),
    "words of a command": (1, many("command", "", 100_000)),
    "more than a list may have": (1, many("command", "", 10_000_000)),
    "nesting": (1, within("NESTED")),
    "a report above the limit": (1, verdicts("x" * 60_000, 2 * BYTES)),
}


def zipped(folder: Path, pool: str, fill: Callable[[dict[str, Any]], object]) -> int:
    """Write the artifact of ``pool`` with a report as ``fill`` leaves it; its bytes, unpacked."""
    aside = folder / "aside"
    nothing: ComparisonReport = nothing_measured(SIDES)
    write_gate_set(aside / pool, ORIGIN, pool, SIDES, nothing)
    report = to_plain(nothing)
    fill(report)
    data = json.dumps(report, separators=(",", ":")).encode().replace(b'"NESTED"', nested(1_000_000))
    manifest = json.loads((aside / pool / "manifest.json").read_bytes())
    manifest["files"] = [{"name": REPORT, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}]
    told = json.dumps(manifest).encode()
    (folder / "in").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "in" / f"{ARTIFACT_PREFIX}{pool}.zip", "w") as archive:
        archive.writestr("manifest.json", told)
        archive.writestr(REPORT, data)
    return len(data) + len(told)


def child(folder: Path) -> None:
    """Read what is in ``folder``, write the comment, and print what that took."""
    begun = time.process_time()
    pools = tuple(sorted(each.stem.removeprefix(ARTIFACT_PREFIX) for each in folder.iterdir()))
    found = gather(folder, RUN, GatePlan(pools))
    comment_text(found, name="gate", server="https://example.org")
    word = found.received[0].trouble.partition("(")[2].partition(")")[0]
    said = {
        "cpu_s": time.process_time() - begun,
        "peak_mb": peak_kib() * 1024 / MB,
        "answer": f"refused: {word}" if word else "shown",
    }
    print(json.dumps(said))


def figures(name: str) -> dict[str, Any]:
    """The cost of the reports called ``name``."""
    count, fill = REPORTS[name]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        size = sum(zipped(folder, f"pool-{number}", fill) for number in range(count))
        words = [sys.executable, __file__, "--child", str(folder / "in")]
        found = run_child(words, json.loads).results
    return {"set": name, "mb": size / MB, **found}


def main() -> None:
    """Print a line for each report, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    found = []
    for name in REPORTS:
        found.append(figures(name))
        print(json.dumps(found[-1]), flush=True)
    text = table(found)
    if given.out:
        given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
