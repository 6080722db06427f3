"""Cold-compile sampling: which groups compile into an empty cache, alone, and are timed at it.

Standard library and records only: the plan decides, so that a run that is resumed chooses as it did before.
"""

from __future__ import annotations

import re

from torchgauge.clock import DAY_S
from torchgauge.errors import UsageError
from torchgauge.harness.backends.backend import compiler_of
from torchgauge.records import Group, Plan

ALL, NONE = "all", "none"
NIGHTLY = "1/14"
"""What campaigns use unless they are told: every case every two weeks. A sampled case has the machine to
itself: with each case once a week, a second night took over a fifth of its peer (docs/measurements.yaml)."""
NOT_SAMPLED = "not sampled today: compiled while other cases ran; --cold-compile all samples every case"


def checked(text: str) -> str:
    """``text`` where it says which cases compile cold; raises :class:`UsageError` where it does not."""
    if text in (ALL, NONE) or re.fullmatch(r"1/[1-9][0-9]{0,3}", text):
        return text
    raise UsageError(
        f"--cold-compile {text}: no such choice",
        hint="all, none, or 1/14 to sample each case every two weeks",
    )


def is_cold_sampled(group: Group, plan: Plan) -> bool:
    """Whether the compiled cases of ``group`` compile cold in the run of ``plan``.

    Of ``1/n``, each group is sampled once in ``n`` days (UTC, of the plan), whatever else is selected.
    """
    wanted = plan.settings.cold_compile
    if wanted in (ALL, NONE):
        return wanted == ALL
    if group.cold:
        return True
    every = int(wanted.partition("/")[2])
    return (int(group.id, 16) + int(plan.created_at // DAY_S)) % every == 0


def cold_count(plan: Plan) -> tuple[int, int]:
    """How many compiled cases compile cold, and how many there are, of those that are tried."""
    tried = [
        (group, planned)
        for group in plan.groups
        for planned in group.cases
        if compiler_of(planned.case.configuration) and planned.declined is None
    ]
    return sum(is_cold_sampled(group, plan) for group, _ in tried), len(tried)
