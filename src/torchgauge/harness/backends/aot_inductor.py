"""Backend ``aot_inductor``: the model exported, compiled ahead of time into a package, loaded and run.

Each stage is a measurement of its own: who ships packages pays for export and compilation once, and for the
load in every process.
"""

from __future__ import annotations

import inspect
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor, options_of, passed_on
from torchgauge.harness.backends.compiler_start import compiler_start
from torchgauge.harness.backends.inductor_knobs import knobs_of
from torchgauge.harness.backends.prepared import (
    ATTRIBUTES,
    GRADIENT,
    MEMORY,
    BackendSession,
    Look,
    Prepared,
    exported,
    program_dtypes,
)
from torchgauge.harness.compile_cache import folder_name
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Configuration, Scalar, Workload
from torchgauge.suites.capabilities import GENERATE, LOSS, wanted

LOADED = "aoti_load_package in the process that compiled and had already probed the vector instructions"
DTYPE = re.compile(r"\bcached_torch_dtype_(\w+)")
"""How a package's code names the dtype of a tensor that it makes."""
MARK, NAMES = "_record_function", 5
"""How the calls begin that mark a step in a profile, and how many others a row names."""


@dataclass(frozen=True)
class PackageOptions:
    """Inductor's own settings of these names; so is every other option, which torch judges."""

    max_autotune: bool = False
    freezing: bool = False


@dataclass(frozen=True)
class _AotInductor(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """Inductor, of which a device is asked."""
        return "inductor"

    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """A package has no way back, and takes no other arguments than those that it was exported with."""
        needed = wanted(workload)
        if LOSS in needed:
            return "an AOTInductor package has no backward pass"
        if GENERATE in needed:
            return (
                "an AOTInductor package is exported for a whole prompt, but generation "
                "calls it once per token"
            )
        return None


BACKEND = _AotInductor(
    name="aot_inductor",
    doc="torch.export and AOTInductor: a package that is compiled ahead of time, loaded and run",
    implementation=__name__,
    options=PackageOptions,
    passes_on=True,
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The loaded package; what its stages took. A fresh process loads the one that is there.

    Raises :class:`NotOfferedError` for a torch whose AOTInductor takes no exported program alone.
    """
    import torch._inductor

    folder = Path(session.cache) / f"{folder_name(configuration)}-package"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.pt2"
    # a package is C++: it has no attributes, and hands out weights as tensors of its own
    unpromised = frozenset({ATTRIBUTES, MEMORY, GRADIENT})
    prepared = Prepared(subject.module, evidence=dict(compilation.BEFORE_FORK), unpromised=unpromised)
    there = session.fresh and path.is_file()
    if not there:
        compiler_start(session)
    with session.alone() if session.cold else nullcontext():
        if not there:
            _build(subject, configuration, session, prepared, path)
        load = getattr(torch._inductor, "aoti_load_package", None)
        if load is None:
            raise NotOfferedError(f"torch {torch.__version__} has no aoti_load_package")
        prepared.call, seconds = _timed(lambda: load(str(path)), session)
    prepared.look = Look("python_calls_unknown", lambda step, _: _look(step))
    if not session.fresh:
        prepared.measurements.append(single("package_load", seconds, LOADED))
        prepared.measurements.append(single("package_size", path.stat().st_size, "size of the package file"))
    return prepared


def _build(
    subject: Any, configuration: Configuration, session: BackendSession, prepared: Prepared, path: Path
) -> None:
    """Export and compile into the package at ``path``."""
    import torch
    import torch._inductor

    package = getattr(torch._inductor, "aoti_compile_and_package", None)
    if package is None or "args" in inspect.signature(package).parameters:
        raise NotOfferedError(f"torch {torch.__version__} cannot package an exported program")
    compilation.use_cache(session.cache, configuration)
    compilation.reset(code=not session.foreign)
    program, export_seconds = _timed(
        lambda: exported(subject.module, subject.args, subject.kwargs, subject.autocast), session
    )
    settings = {**asdict(options_of(BACKEND, configuration)), **passed_on(BACKEND, configuration)}
    knobs = knobs_of(session, configuration, settings)
    knobs.packaged = True
    with knobs.watched():
        _, compiled = _timed(
            lambda: package(program, package_path=str(path), inductor_configs=settings), session
        )
    with ZipFile(path) as packed:
        sources = [name for name in packed.namelist() if name.endswith(".cpp")]
        knobs.code += [packed.read(name).decode(errors="replace") for name in sources]
    dtypes = {name for text in knobs.code for name in DTYPE.findall(text)}
    eager = session.step(subject.module) if subject.autocast else None
    prepared.evidence["program_dtypes"] = program_dtypes(dtypes, eager)
    facts, missed = knobs.seen()
    prepared.evidence.update(facts)
    prepared.degraded += missed
    prepared.measurements += [
        single("export_time", export_seconds, "torch.export.export, not strict"),
        single("package_compile", compiled + compiler_start(session)[0], "aoti_compile_and_package"),
    ]
    operators = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    prepared.evidence["exported_operators"] = len(operators)


def _look(step: Callable[[], Any]) -> tuple[dict[str, Scalar], str]:
    """How often one step goes back to Python, which a package is to do without."""
    from torch.overrides import TorchFunctionMode

    calls: Counter[str] = Counter()

    class Watch(TorchFunctionMode):  # type: ignore[misc]  # torch is not seen by mypy
        def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = str(getattr(function, "__name__", function))
            calls[name] += not name.startswith(MARK)
            return function(*args, **(kwargs or {}))

    with Watch():
        step()
    names = ", ".join(f"{name} x{count}" for name, count in calls.most_common(NAMES) if count)
    text = f"Python called {calls.total()} torch functions in a step of the package: {names}" if names else ""
    return {"python_calls": calls.total()}, text


def _timed(stage: Callable[[], Any], session: BackendSession) -> tuple[Any, float]:
    """What ``stage`` returns, and its seconds."""
    began = time.perf_counter()
    made = stage()
    session.device.synchronize()
    return made, time.perf_counter() - began
