"""Launches of pairs whose ratios and spreads are known, and a judge for them."""

from __future__ import annotations

import math
import random

from torchgauge.records import Case, Configuration, DeviceTarget, Outcome, Phase, Realised, Status, Workload
from torchgauge.records.comparison import Block, Launch, Pair, Side
from torchgauge.results.comparing.judgement import Judge
from torchgauge.results.comparing.noise import NoiseHistory
from torchgauge.results.comparing.policy import Policy

STEPS, ABBA_BLOCKS, MANY = 2, 8, 80


def pair(model="linear", control=False) -> Pair:
    """A toy pair, eager against inductor; a control has the same case twice."""
    workload, device = Workload("toy", model), DeviceTarget("fake")
    head = Case(workload, Configuration("inductor", "inductor"), device)
    return Pair(head if control else Case(workload, Configuration("eager", "eager"), device), head, control)


class Machine:
    """Makes launches of pairs whose ratios and spreads are known."""

    def __init__(self, seed=0, spread=0.01, cost_s=10.0):
        self.rng, self.spread, self.cost_s = random.Random(seed), spread, cost_s

    def launch(
        self, of: Pair, ratio=1.0, *, number=1, confirms=False, asleep=0.0, rare=None, wait=2e-3, **changes
    ) -> Launch:
        """A launch that waits for cores, so that CPU time decides; ``asleep`` adds wall time to the head.

        ``rare`` are for each side chance and length, in usual steps, of a slow one.
        """
        factor = ratio * math.exp(self.rng.gauss(0, self.spread))
        blocks = []
        for abba_block in range(ABBA_BLOCKS if rare is None else MANY):
            for position, letter in enumerate(self.rng.choice(("ABBA", "BAAB"))):
                side = Side.BASE if letter == "A" else Side.HEAD
                length = 1e-3 * (factor if side is Side.HEAD else 1.0)
                chance, times = (rare or {}).get(side, (0.0, 1.0))
                cpu = tuple(
                    length
                    * math.exp(self.rng.gauss(0, 0.002))
                    * (times if chance and self.rng.random() < chance else 1.0)
                    for _ in range(STEPS)
                )
                wall = tuple(wait + each + (asleep if side is Side.HEAD else 0) for each in cpu)
                blocks.append(Block(side, abba_block, position, wall, cpu))
        fields = {
            "base": outcome(of.base),
            "head": outcome(of.head),
            "blocks": tuple(blocks),
            "setup_s": 0.8 * self.cost_s,
            "measure_s": 0.2 * self.cost_s,
            **changes,
        }
        return Launch(of.key, of.id, number, Side.BASE, confirms=confirms, control=of.control, **fields)

    def run(self, judge: Judge, pairs, ratio=lambda pair, confirms: 1.0, most=60, **changes) -> int:
        """Launch what the judge wants until it wants nothing; how many times that was."""
        for number in range(1, most):
            wanted = judge.wanted()
            if not wanted:
                return number - 1
            for each in wanted:
                of = next(pair for pair in pairs if pair.key == each.pair_key)
                slower = ratio(of, each.confirms)
                judge.add(self.launch(of, slower, number=number, confirms=each.confirms, **changes))
        raise AssertionError("the judge never has enough")


def outcome(case: Case, status=Status.PASS, reason="", hash_="aa" * 8) -> Outcome:
    """How one side ended."""
    realised = Realised(hash_, 72, 0, "float32[8, 16]") if status is Status.PASS else None
    phase = Phase.DONE if status is Status.PASS else Phase.BUILD
    return Outcome(case.key, status, phase, reason=reason, realised=realised)


def judge_of(pairs, history=None, **changes) -> Judge:
    """A judge with the built-in policy."""
    return Judge(Policy.default(), history or NoiseHistory.empty(), pairs, **changes)


def verdict(judge: Judge, of: Pair, metric="latency"):
    """The verdict on one metric of one pair."""
    return next(each for each in judge.verdicts() if (each.pair_key, each.metric) == (of.key, metric))
