"""Overrides that apply to nothing: a misspelt one is no override, and nothing else would say so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from torchgauge import registry
from torchgauge.counted import counted
from torchgauge.results.comparing.policy import Policy

MOST = 5
"""Entries that are named one by one."""


def unused_notes(policy: Policy, case_ids: Iterable[str]) -> list[str]:
    """One line for each entry of ``policy`` that applies to none of ``case_ids``, with what to try.

    A suite that is installed is spelt right, and is for other runs. Without any case there is nothing to say.
    """
    suites = {case: case.partition("/")[0] for case in case_ids if case}
    if not suites:
        return []
    installed = {f"suites.{name}" for name in registry.names(registry.SUITES)}
    unused = [entry for entry in policy.unused(suites) if entry not in installed]
    lines = [
        f"{policy.source}: {entry} applies to none of the judged cases ({len(suites)}): "
        f"{_try(entry, suites, installed)}"
        for entry in unused[:MOST]
    ]
    if len(unused) > MOST:
        lines.append(
            f"{policy.source}: "
            f"{counted(len(unused) - MOST, 'more entry applies', 'more entries apply')} to no judged case"
        )
    return lines


def _try(entry: str, suites: dict[str, str], installed: set[str]) -> str:
    """What to try: the name that was probably meant, where one is near."""
    section, _, name = entry.partition(".")
    known = suites if section == "cases" else {each.partition(".")[2] for each in installed}
    alike = 0.8 if section == "cases" else 0.6  # ids of cases have much in common
    close = [] if section == "patterns" else difflib.get_close_matches(name, sorted(known), 1, alike)
    return f"did you mean {close[0]}?" if close else "correct the entry if it is misspelt"
