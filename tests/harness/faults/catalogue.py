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
    """One fault: what was seen where it was injected, the tests that do so, and what none does."""

    number: int
    fault: str
    tests: list[str]
    seen: str = ""
    missing: str = ""


def faults() -> list[Fault]:
    """All of them, in their order."""
    return msgspec.yaml.decode((HERE / "catalogue.yaml").read_bytes(), type=list[Fault])


def table() -> str:
    """The table of the page, as Markdown."""
    lines = ["| number | fault | result |", "|---|---|---|"]
    for fault in faults():
        missing = f"not tested: {fault.missing}" if fault.missing else ""
        result = "; ".join(filter(None, [fault.seen, missing]))
        lines.append(f"| {fault.number} | {fault.fault} | {result} |")
    return "\n".join(lines) + "\n"


def written() -> str:
    """The page with the table as it is now."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(written(), encoding="utf-8")
    else:
        print(" ".join(dict.fromkeys(test for fault in faults() for test in fault.tests)))
