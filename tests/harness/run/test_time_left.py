"""How long the rest of a run takes: what is under way counts, and what the plan expects of each group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.harness.run.time_left import ENOUGH, TimeLeft
from torchgauge.records import Plan, Schedule
from torchgauge.testing import make_case, make_plan

GROUPS = 12


def plan(*seconds: float, known: int = 0) -> Plan:
    """Groups that are expected to take ``seconds``."""
    made = make_plan(*(make_case(f"m{number}") for number in range(len(seconds))))
    expected = tuple(zip((group.id for group in made.groups), seconds, strict=True))
    return replace(made, schedule=Schedule("longest", expected, known))


def test_what_a_device_took_says_most_of_the_rest_of_it() -> None:
    """A device that compiles nothing took 5 s where the one before it took 60: nobody waits for a minute."""
    names = [f"{device}{number}" for device in ("slow", "fast") for number in range(3)]
    ends = dict(zip(names, (60.0, 120.0, 180.0, 185.0, 190.0, 195.0), strict=True))
    devices = {name: name[:4] for name in names}
    left, blind = (
        TimeLeft(dict.fromkeys(names, 1.0), devices=known) for known in (devices, dict.fromkeys(names, ""))
    )
    for each in (left, blind):
        at = 0.0
        for name in names[:4]:
            each._begun[name], at = at, ends[name]
            each.ended(name, at)
    said = [each.seconds(0.0, 185.0) for each in (left, blind)]
    assert said[0] == pytest.approx(10.0, rel=0.1)
    assert said[1] == pytest.approx(92.5, rel=0.1)


def _errors(durations: list[float], at_once: int, expected: list[float]) -> list[float]:
    """Said over true time left after each row but the last, where ``at_once`` groups share two cores.

    Each runs alone on a core at most, so that more of them at once are each slower; the run starts at 20 s.
    """
    made = plan(*expected)
    left, now = TimeLeft.of_plan(made), 20.0
    waiting, running, ends = list(range(len(durations))), {}, []
    said: list[tuple[float, float]] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            number = waiting.pop(0)
            running[number] = durations[number]
            left.heard(made.groups[number], now)
        speed = min(1.0, 2 / len(running))
        number = min(running, key=lambda each: running[each])
        step = running[number] / speed
        now += step
        running = {each: rest - step * speed for each, rest in running.items() if each != number}
        left.ended(made.groups[number].id, now)
        ends.append(now)
        seconds = left.seconds(0.0, now)
        assert (seconds is None) is (len(ends) < min(ENOUGH, -(-len(durations) // 2)))
        said += [] if seconds is None else [(now, seconds)]
    return [seconds / (ends[-1] - at) for at, seconds in said if at < ends[-1]]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_it_is_within_thirty_percent_from_the_first_answer_on(at_once: int) -> None:
    """Three groups prepared at once made it three times too high; the last row is seconds from the end."""
    durations = [35.0 + 5 * (number % 3) for number in range(GROUPS)]
    errors = _errors(durations, at_once, [60.0] * GROUPS)[:-1]
    assert errors
    assert all(0.7 < error < 1.3 for error in errors), errors
