"""The best order in which to implement operators, where a model runs only once it has all that it needs.

This is no plain set cover, in which one of several sets is enough: a model that lacks two operators gains
nothing from the first of them. Which order makes the sum over all models of "operators implemented until it
runs" smallest is the minimum latency set cover problem (Hassin and Levin, ESA 2005) and NP-hard. It is the
scheduling problem 1|prec|sum w_j C_j with operators as jobs and models as their successors, for which the
greedy of Sidney (Operations Research 23, 1975) is used: take the bundle of operators that unlocks the most
models per operator, then the densest bundle of what is left, and so on. Any order of that kind is at most
twice the best one (Chekuri and Motwani, Discrete Applied Mathematics 98, 1999; Margot, Queyranne and Wang,
Operations Research 51, 2003). The densest bundle is found exactly, as a maximum closure by a minimum cut
(Picard, Management Science 22, 1976) whose price per operator is raised as in Dinkelbach's method.

Within a bundle, where any order keeps that bound, a step is what some model still lacks and no other model
lacks only a part of: it always unlocks something, and no part of it would. Of those the one with the most
models per operator is next. Ties go to fewer operators, then to names: the order depends on its input only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Needs = Mapping[str, frozenset[str]]
"""By model: the operators that it still lacks, at least one."""


@dataclass(frozen=True)
class Step:
    """Operators to implement together, and the models that run from then on, both sorted."""

    operators: tuple[str, ...]
    unlocked: tuple[str, ...]


def best_order(needs: Needs) -> list[Step]:
    """Steps until every model of ``needs`` runs; raises ``ValueError`` for a model that lacks nothing."""
    if not all(needs.values()):
        raise ValueError(
            f"models without a missing operator: {sorted(m for m, lacks in needs.items() if not lacks)}"
        )
    left, steps = dict(needs), list[Step]()
    while left:
        bundle = densest(left)
        inside = {model: lacks for model, lacks in left.items() if lacks <= bundle}
        steps += _within(inside)
        left = {model: lacks - bundle for model, lacks in left.items() if not lacks <= bundle}
    return steps


def densest(needs: Needs) -> frozenset[str]:
    """The operators that unlock the most models per operator, found exactly; ``needs`` is not empty."""
    counts = _counted(needs)
    bundle = frozenset().union(*counts)
    density = Fraction(sum(counts.values()), len(bundle))
    while True:
        denser = _worth_more(counts, density)
        if not denser:
            return bundle
        bundle = denser
        density = Fraction(_unlocked(counts, bundle), len(bundle))


def _within(needs: Needs) -> list[Step]:
    """Steps through one bundle, by smallest residual sets of single models."""
    left, steps = dict(needs), list[Step]()
    while left:
        counts = _counted(left)
        smallest = [lacks for lacks in counts if not any(other < lacks for other in counts)]
        chosen = min(smallest, key=lambda lacks: _rank(counts, lacks))
        unlocked = sorted(model for model, lacks in left.items() if lacks <= chosen)
        steps.append(Step(tuple(sorted(chosen)), tuple(unlocked)))
        left = {model: lacks - chosen for model, lacks in left.items() if not lacks <= chosen}
    return steps


def _rank(counts: Mapping[frozenset[str], int], chosen: frozenset[str]) -> tuple[Fraction, int, list[str]]:
    return -Fraction(_unlocked(counts, chosen), len(chosen)), len(chosen), sorted(chosen)


def _counted(needs: Needs) -> dict[frozenset[str], int]:
    """Number of models by what they lack, in an order that depends on nothing else."""
    counts: dict[frozenset[str], int] = {}
    for lacks in sorted(needs.values(), key=sorted):
        counts[lacks] = counts.get(lacks, 0) + 1
    return counts


def _unlocked(counts: Mapping[frozenset[str], int], operators: Collection[str]) -> int:
    return sum(number for lacks, number in counts.items() if lacks <= set(operators))


def _worth_more(counts: Mapping[frozenset[str], int], price: Fraction) -> frozenset[str]:
    """The operators that maximise models unlocked less ``price`` per operator; empty where none gains.

    Source -> models (their number) -> operators that they lack (no limit) -> sink (price): what stays with
    the source is the closure. All capacities are multiplied by the price's denominator, so they are whole.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    operators = sorted(frozenset().union(*counts))
    place = {name: 1 + len(counts) + number for number, name in enumerate(operators)}
    sink = 1 + len(counts) + len(operators)
    worth = price.denominator * sum(counts.values())
    edges = []
    for number, (lacks, models) in enumerate(counts.items(), 1):
        edges.append((0, number, price.denominator * models))
        edges += [(number, place[name], worth + 1) for name in sorted(lacks)]
    edges += [(place[name], sink, price.numerator) for name in operators]
    start, end, capacity = (np.array(column, dtype=np.int32) for column in zip(*edges, strict=True))
    graph = csr_array((capacity, (start, end)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, 0, sink)
    if flow.flow_value >= worth:
        return frozenset()
    residual = graph - flow.flow
    residual.data[residual.data < 0] = 0
    residual.eliminate_zeros()
    reached = set(breadth_first_order(residual, 0, return_predecessors=False).tolist())
    return frozenset(name for name in operators if place[name] in reached)
