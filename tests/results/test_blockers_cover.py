"""The order of operators: valid, exact in its first bundle, and no worse than twice the best."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, permutations

import pytest

from torchgauge.results.blockers.cover import best_order, densest

SEEDS = range(40)


def drawn(seed: int, operators: int = 6, models: int = 8) -> dict[str, frozenset[str]]:
    """Models that lack one to four operators, drawn so that a few operators are in many of them."""
    dice = random.Random(seed)
    names = [f"aten::{letter}" for letter in "abcdefghij"[:operators]]
    weights = [1 / (1 + place) for place in range(operators)]
    return {
        f"m{number}": frozenset(dice.choices(names, weights, k=dice.randint(1, 4)))
        for number in range(dice.randint(1, models))
    }


def unlocked(needs: dict[str, frozenset[str]], operators: frozenset[str]) -> set[str]:
    return {model for model, lacks in needs.items() if lacks <= operators}


def latency(needs: dict[str, frozenset[str]], order: list[str]) -> int:
    """Sum over the models of the number of operators that are there when it first runs."""
    return sum(max(order.index(name) + 1 for name in lacks) for lacks in needs.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_every_step_unlocks_what_a_recount_says_and_nothing_sooner(seed: int) -> None:
    """After each step the models so far are exactly those that lack nothing any more."""
    needs = drawn(seed, operators=10, models=30)
    done: frozenset[str] = frozenset()
    told: list[str] = []
    for step in best_order(needs):
        assert step.unlocked, "a step that brings nothing"
        for name in step.operators:
            part = done | frozenset(step.operators) - {name}
            assert unlocked(needs, part) == set(told), "a part of the step would do"
        assert not done & set(step.operators), "an operator twice"
        done |= frozenset(step.operators)
        told += step.unlocked
        assert len(told) == len(set(told))
        assert set(told) == unlocked(needs, done)
    assert set(told) == set(needs)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_bundle_is_the_densest_of_all(seed: int) -> None:
    """Brute force over all sets of operators finds no more models per operator."""
    needs = drawn(seed)
    names = sorted(frozenset().union(*needs.values()))
    best = max(
        Fraction(len(unlocked(needs, frozenset(chosen))), size)
        for size in range(1, len(names) + 1)
        for chosen in combinations(names, size)
    )
    bundle = densest(needs)
    assert Fraction(len(unlocked(needs, bundle)), len(bundle)) == best


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_is_at_most_twice_the_best(seed: int) -> None:
    """The guarantee that the module names, against every order of up to six operators."""
    needs = drawn(seed)
    order = [name for step in best_order(needs) for name in step.operators]
    best = min(latency(needs, list(each)) for each in permutations(sorted(order)))
    assert latency(needs, order) <= 2 * best


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_does_not_depend_on_the_order_of_models(seed: int) -> None:
    """Shuffled input gives equal steps."""
    needs = drawn(seed, operators=8, models=20)
    items = list(needs.items())
    random.Random(seed + 1).shuffle(items)
    assert best_order(dict(items)) == best_order(needs)
