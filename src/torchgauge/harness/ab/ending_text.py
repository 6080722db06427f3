"""The last words of an A/B run: for people on a terminal, and for machines."""

from __future__ import annotations

import json
from collections import Counter

from torchgauge.harness.ab.run_comparison import ComparisonEnding
from torchgauge.harness.ab.verdict_text import headline, verdict_lines
from torchgauge.records import to_plain
from torchgauge.results.comparing.verdict_words import alarms


def ending_lines(ending: ComparisonEnding) -> list[str]:
    """The verdict first, then pair by pair, and where everything is."""
    lines = verdict_lines(ending.verdicts, ending.state)
    if ending.interrupted:
        lines.append(f"interrupted. Continue with: torchgauge ab --resume {ending.folder}")
    elif ending.out_of_time:
        lines.append(f"the time limit was reached. Continue with: torchgauge ab --resume {ending.folder}")
    store = ending.folder.parent.parent
    lines += [f"comparison {ending.run_id} in {store}", f"logs in {ending.folder / 'logs'}"]
    return lines


def ending_as_json(ending: ComparisonEnding) -> str:
    """The machine output of ``torchgauge ab --json``."""
    data = {
        "run_id": ending.run_id,
        "headline": headline(ending.verdicts, ending.state),
        "counts": dict(Counter(each.verdict.value for each in ending.verdicts if not each.control)),
        "alarms": [to_plain(each) for each in alarms(ending.verdicts)],
        "verdicts": [to_plain(each) for each in ending.verdicts],
        "interrupted": ending.interrupted,
        "out_of_time": ending.out_of_time,
        "exit_code": ending.exit_code,
    }
    return json.dumps(data, indent=1, allow_nan=False)
