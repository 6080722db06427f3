"""Measuring a model of the calling process in several configurations, checked and sampled as in a run."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.planning.configurations import configuration
from torchgauge.live.isolated import run_by_name
from torchgauge.live.own_process import device_of, open_session, put_back, require_torch
from torchgauge.live.result import LiveResult, keep
from torchgauge.records import (
    Case,
    Cause,
    DeviceTarget,
    Group,
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    RunSettings,
    Status,
    Workload,
)
from torchgauge.results.run_id import new_run_id
from torchgauge.suites.suite import HOST, ModelEntry
from torchgauge.suites.tolerances import DTYPES, tolerance_for

if TYPE_CHECKING:
    from torchgauge.suites.suite import BuiltWorkload

LIVE = "live"
"""The suite of what is measured in the calling process."""
MODES = ("inference", "training")
IN_PLACE = "measured_in_place"
"""The fact that says why no copy of the caller's object was measured."""


def measure(
    model: Any,
    inputs: Any = (),
    *,
    configs: Sequence[str] = ("eager", "inductor"),
    mode: str = "inference",
    device: str | None = None,
    dtype: str | None = None,
    loss: Callable[[Any], Any] | None = None,
    name: str = "",
    seconds: float = 3.0,
    accuracy: bool = True,
    isolated: bool = False,
    store: str | Path | None = None,
    progress: bool | None = None,
) -> LiveResult:
    """Check and time ``model`` with ``inputs`` in each of ``configs``, in this process.

    - ``model``: a module or any callable. It is copied, and your object stays as it is.
    - ``inputs``: a tensor, a tuple of positional inputs or a dict of keyword inputs.
    - ``configs``: names of configurations, such as ``eager`` or ``inductor``.
    - ``mode``: ``inference`` or ``training``.
    - ``loss``: for training, a function of the output (default: the output itself or its ``loss``).
    - ``device`` and ``dtype``: those of the model by default.
    - ``name``: name of the model in results.
    - ``seconds``: measuring time of each configuration.
    - ``accuracy``: whether results are checked before they are timed.
    - ``store``: folder in which the results are stored (default: not stored).
    - ``progress``: whether phases are printed to stderr.

    Float32 products are computed in full precision (no TF32).

    With ``isolated``, each configuration runs in a process of its own, on ``cpu`` by default. ``model`` is
    then a name that ``torchgauge run`` accepts, such as ``"mine.py::model"`` or ``"timm:resnet18"``.

    If the model fails, the result has the error, and no exception is raised. Raises :class:`UsageError` for
    unknown names.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    if isolated:
        if not isinstance(model, (str, Path)):
            raise UsageError(
                f"measure: a {type(model).__name__} cannot be isolated: workers build models by name",
                hint='measure("mine.py::model", isolated=True), with a function model() in mine.py',
            )
        _check(lambda: model, mode, configs, dtype)
        if loss is not None or name or not (isinstance(inputs, tuple) and inputs == ()):
            raise UsageError(
                f"measure: {model} defines its inputs, loss and name itself",
                hint="leave out inputs, loss and name",
            )
        words = [str(model), "--device", device or HOST, "--mode", mode, "--config", ",".join(configs)]
        words += [*(["--dtype", dtype] if dtype else []), *([] if accuracy else ["--no-accuracy"])]
        return run_by_name([*words, "--measure-seconds", str(seconds)], store, shown)
    require_torch("torchgauge.measure")
    _check(model, mode, configs, dtype)
    from torchgauge.suites.called import as_module

    args, kwargs = _as_inputs(inputs)
    module = as_module(model)
    workload = Workload(LIVE, _name_of(model, name), mode, dtype or _dtype_of(module, args, kwargs))
    with put_back():
        session = open_session(device or device_of(module, args, kwargs))
    with put_back(session):
        built = _copied(module, args, kwargs, session, workload)
        result = _measured(
            built,
            workload,
            [configuration(each, None) for each in configs],
            session,
            replace(RunSettings(), measure_budget_s=seconds, accuracy=accuracy),
            loss,
            _Progress(shown),
        )
    if store is not None:
        keep(store, [result])
    return result


def _check(model: Any, mode: str, configs: Sequence[str], dtype: str | None) -> None:
    """Raise :class:`UsageError` for what cannot be measured by anyone."""
    if isinstance(model, (str, Path)):
        raise UsageError(
            f"measure: {str(model)!r} is the name of a model, not a module or function",
            hint=f"pass isolated=True, or use torchgauge run {model}",
        )
    if not callable(model):
        raise UsageError(
            f"measure: a {type(model).__name__} cannot be called", hint="pass a module or a function"
        )
    if isinstance(configs, str) or not configs:
        raise UsageError(f"measure: configs={configs!r} is not a list of names", hint='configs=["eager"]')
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    if dtype is not None and dtype not in DTYPES:
        raise UnknownNameError("dtype", dtype, DTYPES)


def _as_inputs(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


def _name_of(model: Any, name: str) -> str:
    """Return the name of the model in case ids: letters, digits and ``_.+-``."""
    called = getattr(model, "_orig_mod", getattr(model, "func", model))
    shown = name or getattr(called, "__name__", type(called).__name__)
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", shown).strip("-.") or "model"


def _dtype_of(module: Any, args: Any, kwargs: Any) -> str:
    """Return the dtype of the module's weights, else of the inputs; float32 where there are several."""
    from torchgauge.suites.placing import CASTABLE, tensors

    held = {each.dtype for each in (*module.parameters(), *module.buffers())} & {*CASTABLE}
    held = held or {each.dtype for _, each in tensors((args, kwargs), "")} & {*CASTABLE}
    return str(held.pop()).removeprefix("torch.") if len(held) == 1 else "float32"


def _copied(module: Any, args: Any, kwargs: Any, session: DeviceSession, workload: Workload) -> BuiltWorkload:
    """Return a copy of the model and its inputs; the originals where they cannot be copied.

    Raises :class:`UsageError` where the original would have to be changed.
    """
    import torch

    from torchgauge.harness.worker.subjects import weight_dtype
    from torchgauge.suites.called import set_mode, without_compiled_parts
    from torchgauge.suites.placing import materialised, placed, tensors
    from torchgauge.suites.suite import BuiltWorkload

    device, dtype = session.torch_device, weight_dtype(workload)
    training = workload.mode == "training"
    try:
        copied = placed(module, args, kwargs, device, dtype, apart=True)
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        held = [*module.parameters(), *module.buffers(), *(each for _, each in tensors((args, kwargs), ""))]
        here = torch.empty(0, device=device).device
        moved = any(
            each.device != here or (each.is_floating_point() and each.dtype != dtype) for each in held
        )
        if training or moved or any(part.training for part in module.modules()):
            raise UsageError(
                f"measure: {type(module).__name__} cannot be copied, so measuring would change it: {why}",
                hint="move the model to its device and dtype, call model.eval() and measure inference; "
                "or define __deepcopy__",
            ) from error
        return BuiltWorkload(module, args, kwargs, facts={IN_PLACE: why})
    without_compiled_parts(copied.module)
    set_mode(copied.module, training)
    return materialised(BuiltWorkload(copied.module, copied.args, copied.kwargs))


def _measured(  # noqa: PLR0917  a workload with how it is measured
    built: BuiltWorkload,
    workload: Workload,
    configurations: Sequence[Any],
    session: DeviceSession,
    settings: RunSettings,
    loss: Callable[[Any], Any] | None,
    progress: _Progress,
) -> LiveResult:
    from torchgauge.devices.fingerprint import environment
    from torchgauge.harness.job import MEASURE, Job
    from torchgauge.harness.run.rows import RowContext, row
    from torchgauge.harness.scenarios.scenario import implementation_for
    from torchgauge.live.live_run import KeptOutcomes, LiveRun, loss_of

    if workload.mode == "training":
        built.loss = loss or loss_of
    target = DeviceTarget(session.name, session.index)
    entry = ModelEntry(workload.model, (), {workload.mode: workload.batch})
    cases = tuple(
        PlannedCase(Case(workload, each, target), tolerance_for(workload, entry, each.backend, each.name))
        for each in configurations
    )
    group, began = Group(f"{workload.declared_hash}@{target}", cases), SYSTEM_CLOCK.now()
    plan = Plan(new_run_id(), began, ("torchgauge.measure",), settings, (group,))
    events, where = KeptOutcomes(progress.phase), environment(session)
    lost = Outcome("", Status.NOT_RUN, Phase.START, Cause.CANCELLED, "interrupted")
    with tempfile.TemporaryDirectory(prefix="torchgauge-") as cache:
        job = Job(
            *(MEASURE, target, "", settings, "", ""),
            cache=cache,
            group=group,
            builder="live:model",
            scenario=implementation_for(workload.mode, None),
            cold=False,
        )
        try:
            LiveRun(job, session, events, built).run()
        except KeyboardInterrupt:
            progress.phase("interrupted")
        except SystemExit as end:
            lost = Outcome(
                "", Status.CRASH, events.last, Cause.EXIT, f"the model called sys.exit({end.code!r})"
            )
        finally:
            progress.end()
    context = RowContext(where.id, began, SYSTEM_CLOCK.now() - began)
    rows = [
        row(plan, each, events.by_case.get(each.case.key) or replace(lost, case_key=each.case.key), context)
        for each in cases
    ]
    return LiveResult(plan, tuple(replace(each, reproduce="") for each in rows), where)


class _Progress:
    """A line on stderr with the present phase; silent where it is not ``shown``."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown

    def phase(self, name: str) -> None:
        """Show the phase ``name``."""
        if self._shown:
            print(f"\r\x1b[Ktorchgauge: {name}", end="", file=sys.stderr, flush=True)  # noqa: T201

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201
