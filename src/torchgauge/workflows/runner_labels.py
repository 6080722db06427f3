"""Runner labels: a job with a label that no runner has waits a day and is then dropped, without an error.

So a label must be one of GitHub's own runners, or belong to a runner of one's own and be declared: by the
prefix ``tg-`` or in the list ``labels`` of ``torchgauge.yml``.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

HOSTED = (
    "ubuntu-latest",
    "ubuntu-26.04",
    "ubuntu-24.04",
    "ubuntu-22.04",
    "ubuntu-24.04-arm",
    "ubuntu-22.04-arm",
    "ubuntu-slim",
    "windows-latest",
    "windows-2025",
    "windows-2022",
    "windows-11-arm",
    "macos-latest",
    "macos-26",
    "macos-15",
    "macos-15-intel",
    "macos-14",
)
"""Labels of GitHub's hosted runners."""
SELF_HOSTED = "self-hosted"
AUTOMATIC = ("linux", "windows", "macos", "x64", "arm64", "arm")
"""Labels that every runner of one's own has by itself; compared without regard to case."""
OWN_PREFIX = "tg-"


@dataclass(frozen=True)
class LabelProblem:
    """What is wrong with the labels of a pool, and what to try."""

    problem: str
    hint: str


def problem_of(labels: Sequence[str], declared: Sequence[str] = ()) -> LabelProblem | None:
    """Why no runner would take a job with ``labels``; None where one may."""
    own = [label for label in labels if label.startswith(OWN_PREFIX) or label in declared]
    if SELF_HOSTED in labels:
        rest = [label for label in labels if label != SELF_HOSTED and label.lower() not in AUTOMATIC]
        if not rest:
            return LabelProblem(
                "these labels match every self-hosted runner, so results of unlike machines would be mixed",
                f"add a label that only this pool's runners have, such as {OWN_PREFIX}POOL",
            )
        unknown = [label for label in rest if label not in own]
    else:
        unknown = [label for label in labels if label not in HOSTED and label not in own]
    if not unknown:
        return None
    close = difflib.get_close_matches(unknown[0], (*HOSTED, SELF_HOSTED, *declared), n=2, cutoff=0.6)
    meant = f"; did you mean {' or '.join(close)}?" if close else ""
    return LabelProblem(
        f"unknown runner label {unknown[0]!r}{meant}",
        f"a hosted runner such as {HOSTED[0]}, or [{SELF_HOSTED}, {OWN_PREFIX}NAME];"
        " add other labels to the list `labels` of torchgauge.yml",
    )


def is_hosted(labels: Sequence[str]) -> bool:
    """Whether only GitHub's own runners, which are thrown away after each job, take a job with ``labels``."""
    return bool(labels) and all(label in HOSTED for label in labels)
