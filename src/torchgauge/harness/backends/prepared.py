"""The worker side of a backend: what it is given, what it hands back, and what is said of one that errs.

Standard library only at import: a host imports it before anything has touched torch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torchgauge import registry
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import MissingPackageError, NotRunError, PluginError, add_note, note_on
from torchgauge.harness.backends.backend import Backend
from torchgauge.harness.scenarios.scenario import RemadeCall, Subject
from torchgauge.records import Configuration, Measurement, Scalar

Step = Callable[[], Any]
SHARED = {
    "the default dtype": ("get_default_dtype", "set_default_dtype"),
    "the number of threads": ("get_num_threads", "set_num_threads"),
    "the gradient mode": ("is_grad_enabled", "set_grad_enabled"),
    "deterministic algorithms": ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    "float32 precision": ("get_float32_matmul_precision", "set_float32_matmul_precision"),
}
"""What a process of torch has once, with the functions of ``torch`` that tell and set it."""

STRUCTURE, DEVICE, GRADIENT = "structure", "device", "requires_grad"
STRIDES, MEMORY, REUSE, ATTRIBUTES = "strides", "memory", "reuse", "attributes"
"""Aspects of eager's contract, which results of every back end keep unless it documents something else."""

HALF = {"bfloat16", "float16"}
"""The dtypes to which autocast casts."""


def _silent(_: str) -> None:
    """Nobody asks."""


def timed_call(call: Step, session: DeviceSession) -> float:
    """Seconds of one synchronised call."""
    session.synchronize()
    start = time.perf_counter()
    call()
    session.synchronize()
    return time.perf_counter() - start


@dataclass
class BackendSession:
    """What a backend may use while it prepares one case.

    ``step`` makes the scenario's step with a call in its place. ``cache`` is a folder of this group's
    processes and ``kept`` one that outlives the run ("" for none). ``cold`` says that what is compiled is
    timed, with an empty cache and the machine to itself (``alone``). A ``fresh`` process runs this case only,
    to find what no other one can tell. ``filled`` says that an earlier process of the case has left its code
    in ``cache``. ``stage`` is told by name what comes next of what may end the process, or never end. Where
    the process has ``foreign`` compiled code, the compiler must not forget it.
    """

    device: DeviceSession
    step: Callable[[Callable[..., Any]], Step]
    cache: str = ""
    kept: str = ""
    cold: bool = True
    fresh: bool = False
    filled: bool = False
    alone: Callable[[], AbstractContextManager[Any]] = nullcontext
    stage: Callable[[str], None] = _silent
    foreign: bool = False
    called: bool = False

    def first_call(self, call: Callable[..., Any]) -> float:
        """Seconds of the first step that runs ``call``, synchronised; raises what the step raises."""
        step = self.step(call)
        with self.alone() if self.cold else nullcontext():
            seconds = timed_call(step, self.device)
        self.called = True
        return seconds


def exported(
    module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], autocast: Any, *, strict: bool = False
) -> Any:
    """Return the ``torch.export.ExportedProgram`` of ``module``; raises what torch.export raises.

    ``autocast`` makes the region of a step, None without. torch.export ignores it, and whoever lowers the
    program may trace it several times. So the casts become operators of the program here, once.
    """
    import torch

    with (autocast or nullcontext)():
        program = torch.export.export(module, args, dict(kwargs), strict=strict)
        return program.run_decompositions({}) if autocast else program


def program_dtypes(names: Iterable[str], eager: Step | None) -> str:
    """Return, as evidence, the ``names`` of all dtypes in a lowered program, such as ``float32, int64``.

    ``eager`` is eager's step under autocast, None without autocast. Raises :class:`NotRunError` if that step
    has results in a dtype of 16 bits and the program has none.
    """
    program, low = {*names}, set[str]()
    if eager is not None:
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves

        class Watch(TorchDispatchMode):  # type: ignore[misc]  # torch is not seen by mypy
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = func(*args, **(kwargs or {}))
                low.update(
                    str(getattr(each, "dtype", "")).removeprefix("torch.") for each in tree_leaves(result)
                )
                return result

        with Watch():
            eager()
        low &= HALF
    if low and program and not low & program:
        raise NotRunError(
            f"the configuration did not run: eager has results in {', '.join(sorted(low))} under autocast, "
            f"but the program has only {', '.join(sorted(program))}"
        )
    return ", ".join(sorted(program))


@dataclass(frozen=True)
class Look:
    """One more step, when all is measured and reported: by which path it really ran.

    ``take(step, eager_step)`` gives facts and what the case is degraded by ("" for nothing), or the reason
    why nothing can be said. ``unknown`` is the fact that holds such a reason.
    """

    unknown: str
    take: Callable[[Step, Step], tuple[Mapping[str, Scalar], str] | str]


def _nothing() -> None:
    """Nothing is to be done."""


class Entries:
    """Counts how often code that a backend made for one case is entered: evidence that the case ran.

    ``watched`` says whether every entry is counted; torch that lets nobody count is not ``watched``.
    ``skipped()`` returns the number of frames that dynamo has left to eager while the case ran. ``others`` is
    the number of graphs that another compiler than the case's has taken.
    """

    def __init__(self) -> None:
        self.count, self.watched, self.others = 0, False, 0
        self.skipped: Callable[[], int] = int

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts itself and runs ``call``.

        Dynamo's wrapper of ``call`` is left out, because dynamo wraps the result.
        """
        call = getattr(call, "_torchdynamo_orig_callable", call)

        def entered(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return call(*args, **kwargs)

        entered.__wrapped__ = call  # type: ignore[attr-defined]
        return entered


class CountedCall:
    """A back end's call that counts itself; it has the attributes of ``call``, such as its own optimizer."""

    def __init__(self, call: Callable[..., Any], entries: Entries) -> None:
        self.__wrapped__, self._entries = call, entries

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        self._entries.count += 1
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)


@dataclass
class Prepared:
    """A workload made ready to run by a backend.

    ``call`` takes the module's place. ``context`` is entered around whatever runs of it: a block of steps, an
    observation, a profiled step. ``measurements`` are those of its stages, ``evidence`` says what really ran,
    ``degraded`` by what it is another path than was asked for; all three are read when the case ends.
    ``judged`` is called when the result has been compared, before another configuration is prepared.
    ``settled`` says that its next step compiles nothing. ``retry`` prepares once more in another way, where
    what was kept from earlier runs may be to blame for a wrong result; it is told what was wrong.
    ``rule`` judges a result where a tolerance is not what it has to keep: given what eager showed, what it
    shows, and what the tolerance would say, it returns another verdict (a ``worker.accuracy.Verdict``).
    ``stranger`` says whose code it is where it is not ours. ``entries`` counts how often code that the
    backend made is entered; without it, calls of ``call`` are counted. A plugin's ``call`` is the module
    itself only beside a ``context`` or ``entries``. ``unpromised`` are aspects of eager's contract
    that the back end documents not to keep: a difference in them is a fact, not a fault.
    """

    call: Callable[..., Any]
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    measurements: list[Measurement] = field(default_factory=list)
    evidence: dict[str, Scalar] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    settled: bool = True
    judged: Callable[[], None] = _nothing
    look: Look | None = None
    retry: Callable[[str], Prepared] | None = None
    rule: Callable[[Any, Any, Any], Any] | None = None
    close: Callable[[], None] = _nothing
    stranger: str = ""
    entries: Entries | None = None
    unpromised: frozenset[str] = frozenset()


def prepare(
    backend: Backend, subject: Subject, configuration: Configuration, session: BackendSession
) -> Prepared:
    """``subject`` made ready by ``backend``.

    Raises what its ``prepare`` raises, :class:`MissingPackageError` and, where it breaks the rules of the
    seam, :class:`PluginError`.
    """
    for package in backend.packages:
        if find_spec(package) is None:
            raise MissingPackageError(
                f"backend {backend.name!r} needs {package!r}, which is not installed",
                hint=getattr(backend, "install_hint", "") or f"pip install {package}",
            )

    def made_by_backend() -> Prepared:
        found = import_module(backend.implementation).prepare(subject, configuration, session)
        return checked(found, backend, subject)

    if backend.implementation.startswith("torchgauge."):  # ours say it by their frame
        return made_by_backend()
    changed: list[str] = []
    stranger = f"backend {backend.name!r}"
    with _blamed(f"while {stranger} prepared it"), restored(changed):
        made = made_by_backend()
    refuse_changes(stranger, changed)
    made.context, made.stranger = partial(_entered, made.context, f"in {stranger}"), stranger
    return made


@contextmanager
def _blamed(said: str) -> Iterator[None]:
    """Attach ``said`` to what is raised inside."""
    try:
        yield
    except Exception as error:
        add_note(error, note_on(error) or said)
        raise


@contextmanager
def _entered(context: Callable[[], AbstractContextManager[Any]], said: str) -> Iterator[None]:
    with _blamed(said), context():
        yield


@contextmanager
def restored(changed: list[str]) -> Iterator[None]:
    """Put back what the whole process shares: the other cases of the group are measured in it.

    ``changed`` is told what that was.
    """
    torch = sys.modules.get("torch")
    shared = {"the working directory": (os.getcwd, os.chdir)} | {
        what: (getattr(torch, get), getattr(torch, put)) for what, (get, put) in SHARED.items() if torch
    }
    shared |= {"the active function and dispatch modes": (_modes, _leave_modes)} if torch else {}
    before = {what: get() for what, (get, _) in shared.items()}
    try:
        yield
    finally:
        for what, (get, put) in shared.items():
            if get() != before[what]:
                put(before[what])
                changed += [] if what in changed else [what]


def _modes() -> list[Any]:
    """Return the active modes: each sees, and may replace, all functions and operators that PyTorch runs."""
    return [mode for active, _ in _stacks() for mode in active()]


def _leave_modes(before: list[Any]) -> None:
    """Leave the modes that were not active ``before``, last first."""
    for active, leave in _stacks():
        while (modes := active()) and not any(modes[-1] is mode for mode in before):
            leave()


def _stacks() -> Iterator[tuple[Callable[[], list[Any]], Callable[[], Any]]]:
    """Yield, for each of PyTorch's stacks of modes, functions that return it and that leave its last mode."""
    for module, name in (("torch.overrides", "function"), ("torch.utils._python_dispatch", "dispatch")):
        found = import_module(module)
        yield getattr(found, f"_get_current_{name}_mode_stack"), found._pop_mode


def refuse_changes(said: str, changed: Iterable[str]) -> None:
    """Raise :class:`PluginError` where ``said`` has ``changed`` what :func:`restored` put back."""
    if changed:
        raise PluginError(f"{said} changes {', '.join(changed)} for the whole process")


def checked(made: Any, backend: Backend, subject: Subject) -> Prepared:
    """Return ``made`` by ``backend`` of ``subject``, its calls counted.

    Raises :class:`PluginError`, and :class:`NotRunError` for a module that a plugin returns unchanged.
    """
    said = f"backend {backend.name!r}"
    if not isinstance(made, Prepared) or not callable(made.call) or not callable(made.context):
        raise PluginError(
            f"{said}: prepare() must return a Prepared with a call and a context, not {made!r:.80}"
        )
    plain = isinstance(made.degraded, list) and isinstance(made.evidence, dict)
    if not plain or not all(isinstance(each, str) for each in (*made.degraded, *made.evidence)):
        raise PluginError(
            f"{said}: `evidence` must be a dict with strings as keys, `degraded` a list of strings"
        )
    check_measurements(said, made.measurements)
    ours = backend.implementation.startswith("torchgauge.")
    if not ours and made.call is subject.module and made.context is nullcontext and made.entries is None:
        raise NotRunError(
            f"{said} returned the module as it was built: the configuration did not run",
            hint="return another call, or set the context or the entries of Prepared",
        )
    call, wrappable = made.call, getattr(subject.built, "wrappable", True)
    if made.entries is None and call is not subject.module:
        made.entries = Entries()
        made.entries.watched = True
        if isinstance(call, RemadeCall):
            made.call = replace(call, call=made.entries.counted(call.call))
        elif not wrappable and hasattr(call, "forward"):  # upstream's step takes the module of a backend
            call.forward = made.entries.counted(call.forward)
        else:
            made.call = CountedCall(call, made.entries)
    return made


def check_measurements(said: str, found: Any) -> None:
    """Raise :class:`PluginError` for what is no measurement of a declared metric of the plugin ``said``."""
    for each in found if isinstance(found, Iterable) else [found]:
        if not isinstance(each, Measurement):
            raise PluginError(f"{said} reports a {type(each).__name__} instead of a Measurement")
        if each.metric not in registry.metrics():
            raise PluginError(
                f"{said} reports the metric {each.metric!r}, which is not declared",
                hint="declare it in the entry-point group torchgauge.metrics",
            )
        if (least := min(each.samples, default=0.0)) < registry.metrics()[each.metric].least:
            raise PluginError(
                f"{said} reports {least:g} {each.unit} of {each.metric!r}, which is never below 0",
                hint="declare it signed",
            )
