"""What implementing operators would bring on a device: models that run, added up in the best order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pictures.picture import Numbers, Picture, dated, nothing
from torchgauge.dashboard.pictures.unblocking_drawing import Step, draw_unblocking

if TYPE_CHECKING:
    from torchgauge.dashboard.blocking import Blocking
    from torchgauge.dashboard.context import SiteContext

KIND = "unblocking"
MOST = 4
"""Devices that are drawn."""

METHOD = (
    "Each row is the next operator to implement, or several that help only together, in the order of "
    "torchgauge ops blockers. Its bar is the number of additional models that run, and begins where the "
    "previous bar ends. The full part counts models that failed because these operators are missing. The "
    "pale part is predicted from the census of operators that models call. Models with a possible "
    "second cause are not counted."
)


def pictures(context: SiteContext) -> Iterator[Picture]:
    """One for each device of which something is known to block models, or why there is none."""
    drawn = 0
    problem = "No known operator blocks a model. Try: torchgauge ops"
    for each in context.blocking:
        steps = steps_of(each)
        if steps and drawn < MOST:
            drawn += 1
            yield _picture(context, each.device, steps)
        problem = f"{each.device}: {each.problem}." if each.problem else problem
    if not drawn:
        yield nothing(KIND, "Operators that unblock models", problem)


def steps_of(blocking: Blocking) -> tuple[Step, ...]:
    """The steps that bring a model, with how many run after each."""
    found: list[Step] = []
    done = 0
    for step in blocking.found.steps if blocking.found else ():
        if step.unblocks:
            seen = len(step.observed)
            found.append(Step(step.operators, done, seen, len(step.unblocks) - seen, step.unblocks))
            done += len(step.unblocks)
    return tuple(found)


def _picture(context: SiteContext, device: str, steps: tuple[Step, ...]) -> Picture:
    operators = sum(len(step.operators) for step in steps)
    seen, predicted = sum(step.observed for step in steps), sum(step.predicted for step in steps)
    title = f"Operators that unblock models, {device}"
    verb = "unblocks" if operators == 1 else "unblock"
    brought = f"{_count(operators, 'operator')} {verb} {_count(seen + predicted, 'model')} on {device}"
    says = f"{brought}: {seen} seen to fail, {predicted} predicted."
    text = f"Cumulative number of models that run, with the operators in the best order. {says}"
    if len(steps) > 1:
        text += f" The first, {', '.join(steps[0].operators)}, brings {len(steps[0].models)}."
    footer = dated(context).replace("95 % intervals, ", "")
    columns = ("operators", "seen to fail", "predicted", "models so far", "models")
    numbers = Numbers(columns, tuple(_row(step) for step in steps))
    draw = partial(draw_unblocking, steps, (title, says, footer), description=text)
    return Picture(KIND, f"{KIND}-{device_id(device)}", title, says, text, METHOD, numbers, draw)


def _row(step: Step) -> tuple[str, ...]:
    counts = (str(count) for count in (step.observed, step.predicted, step.after))
    return (", ".join(step.operators), *counts, ", ".join(step.models))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
