"""What is said of a whole comparison, and the exit code of it: one table for every command that gates.

Why one: ``ab``, ``gate`` and ``ci gate`` see the same facts, so a job must not be green by one of them and
red by another. ``docs/comparison.md`` has the table, and a test holds both together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing.policy import STEP_TIMES
from torchgauge.results.comparing.verdict_words import BETTER, CHANGED, SILENT, WORSE, alarms

LATENCY = "latency"


class GateVerdict(str, Enum):
    """What a gate says, the worst first; only ``pass`` is green."""

    REGRESSION = "regression"
    INCOMPLETE = "incomplete"
    UNDECIDED = "undecided"
    PASS = "pass"


EXIT_CODES: Mapping[GateVerdict, int] = {
    GateVerdict.REGRESSION: 1,
    GateVerdict.INCOMPLETE: 3,
    GateVerdict.UNDECIDED: 3,
    GateVerdict.PASS: 0,
}
"""1 for what is worse, 3 for what is not known, 0 for what was decided."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, whatever was found by then: 128 and the number of the signal, as shells have it."""


class Headline(str, Enum):
    """What is said of a whole comparison: the first that holds."""

    REGRESSION = "regression"
    NOTHING_COMPARED = "nothing_compared"
    INCOMPLETE = "incomplete"
    IN_DOUBT = "in_doubt"
    NOTHING_GATES = "nothing_gates"
    UNDECIDED = "undecided"
    REPORTED = "reported"
    IMPROVEMENT = "improvement"
    UNCHANGED = "unchanged"


GATE_VERDICTS: Mapping[Headline, GateVerdict] = {
    Headline.REGRESSION: GateVerdict.REGRESSION,
    Headline.NOTHING_COMPARED: GateVerdict.INCOMPLETE,
    Headline.INCOMPLETE: GateVerdict.INCOMPLETE,
    Headline.IN_DOUBT: GateVerdict.UNDECIDED,
    Headline.NOTHING_GATES: GateVerdict.UNDECIDED,
    Headline.UNDECIDED: GateVerdict.UNDECIDED,
    Headline.REPORTED: GateVerdict.PASS,
    Headline.IMPROVEMENT: GateVerdict.PASS,
    Headline.UNCHANGED: GateVerdict.PASS,
}


def headline(verdicts: Sequence[MetricVerdict], *, incomplete: bool) -> Headline:
    """What ``verdicts`` say together; ``incomplete`` where the run was cut short or a pair has none.

    A/A pairs are left out, since they are about the rule; one that changed puts all of it in doubt.
    """
    judged = [each for each in verdicts if not each.control]
    gating = [each for each in judged if each.action is Action.GATE]
    told = [each for each in judged if each.action is not Action.IGNORE]
    holds = {
        Headline.REGRESSION: any(each.verdict in WORSE for each in gating),
        Headline.NOTHING_COMPARED: not any(map(_compared, told)),
        Headline.INCOMPLETE: incomplete,
        Headline.IN_DOUBT: bool(alarms(verdicts)),
        Headline.NOTHING_GATES: not gating,
        Headline.UNDECIDED: any(each.verdict in SILENT for each in gating),
        Headline.REPORTED: any(
            each.verdict in WORSE or (each.verdict is Verdict.UNDECIDED and is_missed(each)) for each in told
        ),
        Headline.IMPROVEMENT: any(each.verdict in BETTER for each in told),
    }
    return next((each for each, held in holds.items() if held), Headline.UNCHANGED)


def exit_code(verdicts: Sequence[MetricVerdict], *, incomplete: bool) -> int:
    """The exit code of a comparison with ``verdicts``."""
    return EXIT_CODES[GATE_VERDICTS[headline(verdicts, incomplete=incomplete)]]


def control_exit_code(verdicts: Sequence[MetricVerdict], *, incomplete: bool) -> int:
    """The exit code of an A/A run: it gates nothing, but may have compared nothing, or raised an alarm."""
    holds = {
        Headline.NOTHING_COMPARED: not any(map(_compared, verdicts)),
        Headline.INCOMPLETE: incomplete,
        Headline.IN_DOUBT: bool(alarms(verdicts)),
    }
    found = [GateVerdict.PASS, *(GATE_VERDICTS[each] for each, held in holds.items() if held)]
    return EXIT_CODES[worst(found)]


def worst(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    """The worst of ``verdicts``; nothing at all is incomplete."""
    found: Collection[GateVerdict] = set(verdicts)
    return next((each for each in GateVerdict if each in found), GateVerdict.INCOMPLETE)


def is_missed(verdict: MetricVerdict) -> bool:
    """Whether silence on its metric is the pair's: what gates, and the latency unless the policy ignores it.

    Wall time beside another estimator is watched for harm only and stays undecided without a loss.
    """
    return verdict.action is Action.GATE or (verdict.action is Action.REPORT and verdict.metric == LATENCY)


def _compared(verdict: MetricVerdict) -> bool:
    """Whether something was found out: a step time that was compared, or any metric that changed."""
    timed = bool(verdict.pair_key) and verdict.metric in STEP_TIMES
    return verdict.verdict in CHANGED or (timed and verdict.verdict is not Verdict.NOT_COMPARABLE)
