"""Do two builds compute the same? Their results, of equal weights and inputs, by the distance from float64.

A build may round otherwise, so nothing here asks for equal bits. Each tensor of the head may lie ``TIMES`` as
far from float64 as the base's does, or as base's tensors of its kind do at the median, and ``FLOOR`` of the
size of the tensor beside. A model without float64 has eager with other rounding as its reference. A size that
base's own error does not show to be more than rounding counts as a tenth of the median of its kind at least:
a gradient that is zero but for rounding has no size of its own. References are compared by sums: what changed
in every precision is found too. Tensors of a kind whose paths differ are paired in order, because parameters
may be renamed. Except of state, both builds must have equally many.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from statistics import median_low

from torchgauge.records import Modifier, OutputError, Status
from torchgauge.records.comparison import START, UNSEEN, Launch, Side

TIMES = 10.0
FLOOR = 1e-5
SAME_START = 1e-5
"""How far the numbers of two starts from one seed may be apart, where it is drawn with other instructions."""
JUMP = 5e-3
"""The floor of what depends on gradients, such as changes by a step: rounding may turn an activation off."""
JUMPING = (".grad", ".input_grad", ".change")
STEADY = ("state.buffer",)
"""Kinds of tensors of a TorchBench step that depend on no gradient; its other kinds have the floor JUMP."""
TIES = 1e-2
"""The floor of integers and booleans: indices of equal numbers may be exchanged."""
STATE = "after."
"""Prefix of state. An observation contains only changed state, and rounding may decide whether it changes."""
ROUNDED = "rounded"
"""The fact of a side whose tensors are beyond the tolerance, as rounding explains."""
SMALL = 0.1
"""Share of the median size of its kind that a tensor counts as at least, unless its own size is sure."""
SURE = 1e-3
"""Error of base below which a tensor's size is its own, as a share of that size."""


def outputs_differ(launch: Launch) -> str:
    """Return which tensor of head differs from base's, with the errors of both; empty where none does."""
    if not_seen(launch):
        return ""
    base, head = ({each.path: each for each in side.outputs} for side in (launch.base, launch.head))
    sizes, errors = _usual(base.values())
    worst, most = "", 1.0
    pairs, alone = _paired(base, head)
    if alone:
        return alone
    for path, other in pairs.items():
        ours, theirs, kind = base[path], head[other], _kind(path)
        sure = ours.error < SURE * ours.size
        size = ours.size if sure else max(ours.size, SMALL * sizes.get(kind, 0.0))
        apart = math.dist((ours.size, *ours.sums), (theirs.size, *theirs.sums))
        found = math.hypot(theirs.error, apart)
        may_jump = kind.endswith(JUMPING) or (kind.startswith("state.") and kind not in STEADY)
        floor = TIES if ours.whole else JUMP if may_jump else FLOOR
        limit = TIMES * max(ours.error, errors.get(kind, 0.0) * size) + floor * size
        if found > most * limit:
            most = found / limit if limit else math.inf
            what = f"head's {other} differs by about {_share(found, size)} from base's reference"
            worst = f"{what} (limit {_share(limit, size)})"
            if not ours.whole:
                worst += f"; base's own result differs by {_share(ours.error, size)}"
    return worst


def _paired(base: Collection[str], head: Collection[str]) -> tuple[Mapping[str, str], str]:
    """Return head's path for each of base's, and a sentence about a tensor without a partner, or "".

    State needs no partner if others of its kind have one: rounding may change it in one of the builds only.
    """
    pairs = {path: path for path in base if path in head}
    kinds: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for number, paths in enumerate((base, head)):
        for path in paths:
            if path not in pairs:
                kinds[_kind(path)][number].append(path)
    for kind, (lost, new) in kinds.items():
        pairs.update(zip(lost, new, strict=False))
        rest = [*lost[len(new) :], *new[len(lost) :]]
        if rest and not (kind.startswith(STATE) and any(_kind(path) == kind for path in pairs)):
            has, lacks = ("base", "head") if len(lost) > len(new) else ("head", "base")
            return pairs, f"{lacks} has no {rest[0]}, which {has} has"
    return pairs, ""


def not_seen(launch: Launch) -> str:
    """Return why outputs of ``launch`` are compared with nobody's; empty where they are, or it failed."""
    sides = ((Side.BASE, launch.base), (Side.HEAD, launch.head))
    if any(outcome.status is not Status.PASS for _, outcome in sides):
        return "base or head did not pass"
    starts = [dict(outcome.facts).get(START) for _, outcome in sides]
    if starts == [None, None]:  # a run of a store, or a model without tensors
        return ""
    base, head = (each if isinstance(each, float) else math.inf for each in starts)
    if not abs(base - head) <= SAME_START:
        return "base and head begin with different weights or inputs"
    for name, words in ((UNSEEN, ""), (ROUNDED, "rounding explains "), (Modifier.TIES.value, "")):
        for side, outcome in sides:
            if why := dict(outcome.facts).get(name):
                return f"{side.value}: {words}{why}"
    return ""


def _usual(tensors: Iterable[OutputError]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the median size of each kind of tensor, and the median error as a share of it."""
    sizes, shares = defaultdict(list), defaultdict(list)
    for each in tensors:
        kind = _kind(each.path)
        sizes[kind].append(each.size)
        if each.error < each.size:
            shares[kind].append(each.error / each.size)
    usual = [{kind: median_low(values) for kind, values in found.items()} for found in (sizes, shares)]
    return usual[0], usual[1]


def _kind(path: str) -> str:
    """Return the kind of a tensor: ``iteration0.grad`` for ``iteration0.grad.head.weight``."""
    return ".".join(path.split(".")[:2])


def _share(value: float, size: float) -> str:
    return f"{value / size:.2g}" if size else f"{value:.2g} (of nothing)"
