"""How much of a model's step compiled code took over from eager: read from profiled steps, after timing.

Why a share and not a number of graphs: one small graph beside a body that dynamo skipped is a capture, and
nearly all of the step runs as if nobody had compiled it. An operator is *outside* where the profiler sees it
in no compiled graph. Compiled graphs are marked for the one step: dynamo's bytecode calls each by a global
name, ``__compiled_fn_...``, whose value is wrapped meanwhile. What autograd runs for an operator of a graph
belongs to the graph, and what a graph hands to PyTorch's own kernels (``extern`` kernels, all of
``aot_eager``) is inside of it. Not so what an operator of Python's (``torch.library.custom_op``)
calls: it is no kernel, and Python runs its operators one by one, whatever graph it stands in. What another
thread than the model's own runs meanwhile is the model's, and outside unless that thread runs a graph.

Only what the model itself runs counts, and its way back: no loss and no optimizer, which no configuration
compiles.

The share is 1 - t(outside) / t(eager). Each operator counts with the time that its like (same name, same
shapes) takes in a profiled eager step, so the share says how much of eager's work is gone. It does not depend
on how fast that is which replaced it, and hardly on how busy the machine is.

Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

import gc
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torchgauge.counted import counted
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.captured_graphs import OTHER
from torchgauge.harness.worker.profiled_step import OPERATOR, Event, profiled
from torchgauge.harness.worker.verdicts import first_line

UNKNOWN = "compiled_share_unknown"
"""The fact that says why nothing is known."""
LEAST = 0.5
"""The share below which a case is degraded: most of eager's work is still eager's."""
LEAST_BACKWARD = 0.1
"""The share of the backward pass up to which a case is degraded too: forward passes that train nothing may be
most of the work."""
LOOKS, MOST_LOOKS = 3, 8
"""An operator that was interrupted looks longer: where a share would accuse, eager is looked at again.
Where it still does, so are both ways of a short step, up to the second number of times."""
SHORT_S = 0.1
"""So is a step of fewer seconds: one interruption is most of it, and may make a share look larger as well."""
WRAPPER = "_dynamo/eval_frame.py"
"""The end of the name of the file through whose functions a compiled module calls its original."""
GRAPH, MODEL = "torchgauge: compiled graph", "torchgauge: model"
Times = dict[tuple[str, str, bool], list[int]]
"""Name and shapes of operators, and whether they run backward -> nanoseconds of each, in their order."""

_NAME = "__compiled_fn"
_BACKWARD = "CompiledFunctionBackward"
_ENGINE = "autograd::engine::evaluate_function: "
_LEFT_OUT = (f"{_ENGINE}torch::autograd::AccumulateGrad", "Optimizer.")


def look(
    step: Callable[[], Any], eager_step: Callable[[], Any], session: DeviceSession
) -> tuple[float, str] | str:
    """Return the share of ``step``, 0 to 1, and what the case is degraded by, empty where nothing is.

    Returns the reason alone if the share is unknown, and never raises.
    """

    def compiled() -> tuple[list[Event], float]:
        with marked_graphs():
            return profiled(step, session)

    try:
        step()  # compiles what the remembered state asks for: a compilation is no part of a step
        events, compiled_s = compiled()
        pythons = _written_in_python()  # some are defined by the step
        left = [_times(outside(events, pythons))]
        events, seconds = profiled(eager_step, session)
        times = [_times(outside(events, pythons))]
        if not times[0]:
            return "the profiler saw no operator in eager's step"
        short = min(seconds, compiled_s) < SHORT_S
        if complaint(left, times) or short:  # an interrupted one of eager is not short
            more = [profiled(eager_step, session)[0] for _ in range(LOOKS - 1)]
            times += [_times(outside(each, pythons)) for each in more]
        while complaint(left, times) and short and len(times) < MOST_LOOKS:
            left.append(_times(outside(compiled()[0], pythons)))
            times.append(_times(outside(profiled(eager_step, session)[0], pythons)))
    except Exception as error:  # noqa: BLE001  what cannot be looked at is a fact of the row, not a status
        return first_line(error)
    return taken_over(left, times), complaint(left, times)


def eager_calls(step: Callable[[], Any], module: Any) -> int:
    """Return how often ``step`` calls ``module`` itself, as through another reference.

    A call by the compiled module does not count: dynamo may leave that frame to Python, and compile the
    functions that it calls.
    """
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    count = 0

    def note(frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        if event == "call" and frame.f_code is code:
            callers = (each.f_code.co_filename for each, _ in traceback.walk_stack(frame.f_back))
            itself = frame.f_locals.get(code.co_varnames[0]) is module
            count += itself and not any(name.endswith(WRAPPER) for name in callers)

    former = sys.getprofile()
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(former)
    return count


def taken_over(left: Sequence[Times], looks: Sequence[Times]) -> float:
    """The share of eager's time that is not in the operators ``left``, by the fastest look at each."""
    eager = _fastest(looks)
    whole = sum(map(sum, eager.values()))
    rest = 0.0
    for kind, took in _fastest(left).items():
        known = eager.get(kind)
        rest += min(len(took) / len(known), 1.0) * sum(known) if known else sum(took)
    return max(0.0, 1.0 - rest / whole) if whole else 0.0


def _fastest(looks: Sequence[Times]) -> Times:
    """Each operator of the first look, as fast as in any look with as many of its kind."""
    return {
        kind: [min(each) for each in zip(*(_like(took, look.get(kind, ())) for look in looks), strict=True)]
        for kind, took in looks[0].items()
    }


def _like(took: Sequence[int], others: Sequence[int]) -> Sequence[int]:
    return others if len(others) == len(took) else took


def _times(events: Sequence[Event]) -> Times:
    """How long each operator takes, by kind."""
    found: Times = {}
    for each in events:
        kind = (each.name, each.span.shapes, _undoes(each))
        found.setdefault(kind, []).append(each.end - each.start)
    return found


def complaint(left: Sequence[Times], looks: Sequence[Times]) -> str:
    """Return what a case is degraded by; empty if enough of its step and backward pass is compiled."""
    share = round(taken_over(left, looks), 4)  # as in the fact
    if share < LEAST:
        return f"{share:.0%} of the step ran in compiled code, the rest operator by operator as in eager"
    mine, eager = (
        [{kind: took for kind, took in one.items() if kind[2]} for one in each] for each in (left, looks)
    )
    share = taken_over(mine, eager)
    if share > LEAST_BACKWARD or not any(eager):
        return ""
    return f"{share:.0%} of the backward pass ran in compiled code, the rest operator by operator as in eager"


def outside(events: Sequence[Event], pythons: Collection[str] = ()) -> list[Event]:
    """The outermost operators of the model that no compiled graph holds, forward and backward.

    Operators called ``pythons`` are written in Python: what they call counts, and they do not.
    """
    models = [each for each in events if each.name == MODEL]
    whole = not models
    closures = {id(outer) for each in events if _undoes(each) for outer in each.inside() if _steps(outer)}
    forward = {each.span.link: each for each in events if each.span.link[1] >= 0 and not _undoes(each)}
    found = []
    for each in events:
        if not OPERATOR.fullmatch(each.name) or each.name in pythons:
            continue
        differentiates = each.span.link[1] >= 0 or _undoes(each)
        around, python = _until(each, pythons, closures if differentiates else ())
        if any(OPERATOR.fullmatch(name) or name.startswith(_LEFT_OUT) for name in around):
            continue
        if python or any(model.span.thread != each.span.thread and _during(each, model) for model in models):
            around.append(MODEL)
        way_back = next((outer for outer in each.inside() if outer.name.startswith(_ENGINE)), None)
        origin = forward.get(way_back.span.link, each) if way_back is not None else each
        names = {MODEL if whole else "", *around, *_until(origin, pythons, closures)[0]}
        if MODEL in names and GRAPH not in names and not any(name.endswith(_BACKWARD) for name in names):
            found.append(each)
    return found


def _until(event: Event, pythons: Collection[str], closures: Collection[int]) -> tuple[list[str], bool]:
    """Return the names around ``event`` up to an operator of Python's, and whether there is one.

    Steps of optimizers whose ids are in ``closures``, as of LBFGS, call the model: their names are left out.
    """
    names: list[str] = []
    for outer in event.inside():
        if outer.name in pythons:
            return names, True
        if id(outer) not in closures:
            names.append(outer.name)
    return names, False


def _steps(event: Event) -> bool:
    """Whether ``event`` is the step of an optimizer."""
    return event.name.startswith("Optimizer.")


def _during(event: Event, model: Event) -> bool:
    """Whether ``event``, of another thread, runs while ``model`` does, and not on autograd's way back."""
    return model.start <= event.start and event.end <= model.end and not _undoes(event)


def _written_in_python() -> frozenset[str]:
    """The operators of this process whose kernel is a function of Python."""
    try:
        from torch._library.custom_ops import OPDEFS
    except ImportError:  # torch before 2.4, or one that keeps them elsewhere: nobody is accused
        return frozenset()
    return frozenset(OPDEFS)


def _undoes(event: Event) -> bool:
    """Whether ``event`` belongs to autograd's way back."""
    return event.name.startswith(_ENGINE) or any(outer.name.startswith(_ENGINE) for outer in event.inside())


@contextmanager
def marked_graphs() -> Iterator[None]:
    """Mark in the profile what compiled graphs run; raises ``LookupError`` where they are not found."""
    places = _graphs()
    try:
        for table, name, graph in places:
            table[name] = marked(graph, GRAPH)
        yield
    finally:
        for table, name, graph in places:
            table[name] = graph


def marked(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``call`` as an event called ``name``, which dynamo leaves alone."""
    import torch

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.autograd.profiler.record_function(name):
            return call(*args, **kwargs)

    return torch.compiler.disable(run, recursive=False)  # type: ignore[no-any-return]


def _graphs() -> list[tuple[dict[str, Any], str, Any]]:
    """Tables of globals with the compiled graphs in them."""
    from torch._dynamo import convert_frame

    codes = [reference() for reference in convert_frame.output_codes.seen]
    wanted = {name for code in codes if code is not None for name in code.co_names if name.startswith(_NAME)}
    tables = {id(vars(module)): vars(module) for module in list(sys.modules.values()) if _has_table(module)}
    found = [(table, name) for table in tables.values() for name in wanted & table.keys()]
    if wanted - {name for _, name in found}:  # code that was made at run time has globals of its own
        more = [each for each in gc.get_objects() if type(each) is dict and id(each) not in tables]
        found += [(table, name) for table in more for name in wanted & table.keys()]
    missing = wanted - {name for _, name in found}
    if missing:
        raise LookupError(
            f"{counted(len(missing), 'compiled graph was', 'compiled graphs were')} "
            "not found in any module's globals"
        )
    graphs = [(table, name, table[name]) for table, name in found if callable(table[name])]
    return [each for each in graphs if not hasattr(each[2], OTHER)]


def _has_table(module: Any) -> bool:
    return isinstance(getattr(module, "__dict__", None), dict)
