"""The catalogue of faults: its page in the docs, and the tests that ``make faults`` runs."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: begin -->\n", "<!-- faults: end -->\n"


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """One fault: what was seen where it was injected, the tests that do so, and what none does.

    ``section`` is the heading of the table that begins with the fault.
    """

    number: int
    fault: str
    tests: list[str]
    seen: str = ""
    missing: str = ""
    section: str = ""


def faults() -> list[Fault]:
    """All of them, in their order."""
    return msgspec.yaml.decode((HERE / "catalogue.yaml").read_bytes(), type=list[Fault])


def tables() -> str:
    """A table for each section of the page, and a list of what no test does, as Markdown."""
    lines, missing = [], []
    for fault in faults():
        if fault.section:
            lines += ["", f"## {fault.section}", "", "| number | fault | result |", "|---|---|---|"]
        lines.append(f"| {fault.number} | {fault.fault} | {fault.seen} |")
        if fault.missing:
            missing.append(f"- {fault.fault} ({fault.number}): {fault.missing}")
    return "\n".join([*lines, "", "## Not tested", "", *missing]) + "\n"


def written() -> str:
    """The page with the table as it is now."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{head}{BEGIN}{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(written(), encoding="utf-8")
    else:
        print(" ".join(dict.fromkeys(test for fault in faults() for test in fault.tests)))
