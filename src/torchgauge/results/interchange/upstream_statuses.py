"""The verdicts of PyTorch's dynamo runner as our statuses, and back.

Upstream has no word for a broken machine or a process that died: a crash has no row there. What one side
cannot say is mapped to the nearest thing the other can, and the row says in words what stood in the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchgauge.records import Cause, Phase, Status

FACT = "dynamo_status"
"""The fact of an imported row that keeps upstream's own word."""


@dataclass(frozen=True)
class Ending:
    """How a case ended: status, the last phase that it reached, the cause and a reason in words."""

    status: Status
    phase: Phase
    cause: Cause | None = None
    reason: str = ""


PASSED = Ending(Status.PASS, Phase.DONE)
NO_SPEEDUP = Ending(
    Status.ERROR,
    Phase.MEASURE,
    reason="the file has a speed-up of zero: upstream failed or timed out, and does not record which",
)

_ENDINGS: Mapping[str, Ending] = {
    "pass": PASSED,
    "pass_due_to_skip": PASSED,
    "fail_accuracy": Ending(Status.FAIL_ACCURACY, Phase.ACCURACY, Cause.TOLERANCE),
    "not_bitwise_equivalent": Ending(Status.FAIL_ACCURACY, Phase.ACCURACY, Cause.TOLERANCE),
    "eager_two_runs_differ": Ending(Status.FAIL_ACCURACY, Phase.EAGER, Cause.NONDETERMINISTIC_EAGER),
    "eager_variation": Ending(Status.FAIL_ACCURACY, Phase.EAGER, Cause.NONDETERMINISTIC_EAGER),
    "fail_to_run": Ending(Status.ERROR, Phase.COMPILE),
    "OOM": Ending(Status.OOM, Phase.COMPILE, Cause.DEVICE),
    "eager_1st_run_fail": Ending(Status.ERROR, Phase.EAGER),
    "eager_2nd_run_fail": Ending(Status.ERROR, Phase.EAGER),
    "eager_1st_run_OOM": Ending(Status.OOM, Phase.EAGER, Cause.DEVICE),
    "eager_2nd_run_OOM": Ending(Status.OOM, Phase.EAGER, Cause.DEVICE),
    "eager_fail_to_run": Ending(Status.ERROR, Phase.BUILD),
    "model_fail_to_load": Ending(Status.UNSUPPORTED, Phase.BUILD),
    "timeout": Ending(Status.TIMEOUT, Phase.START),
    "warmup_failed": Ending(Status.ERROR, Phase.WARMUP),
    "worker_fail": Ending(Status.CRASH, Phase.START),
    "infra_error": Ending(Status.INFRA, Phase.START),
    "0.0000": NO_SPEEDUP,
}
_NUMBERED = (
    (re.compile(r"fail_batch_invariance_at_\d+"), _ENDINGS["fail_accuracy"]),
    (re.compile(r"fail_to_run_at_batch_\d+"), _ENDINGS["fail_to_run"]),
)
KNOWN = tuple(_ENDINGS)


def ending_of(word: str) -> Ending | None:
    """How a case ended that upstream calls ``word``; None for a word that it does not use."""
    ending = _ENDINGS.get(word) or next((end for form, end in _NUMBERED if form.fullmatch(word)), None)
    if ending is None or word == "pass" or ending.reason:
        return ending
    return Ending(ending.status, ending.phase, ending.cause, f"PyTorch's runner reports {word}")


def meant(word: str) -> str:
    """The end of a sentence that refuses ``word``: which words of upstream's look like it."""
    close = difflib.get_close_matches(word, KNOWN, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def upstream_word(row: Mapping[str, Any], facts: Mapping[str, Any]) -> str | None:
    """What upstream would call the ending of a row of ``results``; None where it would have no row."""
    if FACT in facts:
        return str(facts[FACT])
    status, phase = Status(row["status"]), Phase(row["phase"])
    if status in (Status.SKIPPED, Status.NOT_RUN):
        return None
    if status is Status.PASS:
        return "pass" if row.get("accuracy_reference") else "pass_due_to_skip"
    if status is Status.FAIL_ACCURACY:
        differs = row.get("cause") == Cause.NONDETERMINISTIC_EAGER.value
        return "eager_two_runs_differ" if differs else "fail_accuracy"
    early = {Phase.START, Phase.IMPORT, Phase.BUILD}
    return {
        Status.TIMEOUT: "timeout",
        Status.INFRA: "infra_error",
        Status.UNSUPPORTED: "model_fail_to_load",
        Status.OOM: "eager_1st_run_OOM" if phase in early | {Phase.EAGER} else "OOM",
    }.get(
        status,
        "eager_fail_to_run"
        if phase in early
        else "eager_1st_run_fail"
        if phase is Phase.EAGER
        else "fail_to_run",
    )
