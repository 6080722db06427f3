"""``torch.compile`` with its counters: what was captured, what broke, and what fell back silently."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import logging
import os
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.harness.compile_cache import folder_name
from torchgauge.harness.worker.failure import TRACEBACK
from torchgauge.records import Configuration, Scalar

_LIMIT = "hit config."
SKIPPED = "dynamo skipped "
"""Beginning of the reason that a case is degraded by which runs eager because dynamo has left it frames."""
SUPPRESSED = "WON'T CONVERT"
"""Mark of the warning that dynamo runs eager after an error; it does not warn of frames that it skips."""
_FALLBACK_MARKS = (_LIMIT, SUPPRESSED, "falling back to eager")

CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""The variable that tells inductor where its caches are."""
COMPILER_MODULES = (
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.async_compile",
    "torch._inductor.bounds",
    "torch._inductor.compiler_bisector",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.post_grad",
    "torch._inductor.fx_passes.pre_grad",
    "torch._inductor.lowering",
    "torch._inductor.mkldnn_lowerings",
    "torch._export.db",
    "torch._higher_order_ops.passes",
    "torch.export._trace",
    "torch.export._unlift",
    "sympy.combinatorics",
    "sympy.physics.units",
)
"""What the first compilation of a process imports (seen with torch 2.13); a missing one is no loss."""
BEFORE_FORK: dict[str, Scalar] = {}
"""Seconds that the host spent, before it forked, on the import of the compiler and the vector probe."""
_BEFORE: dict[str, int] = {}
"""What was counted before the last :func:`reset` that kept compiled code."""


@dataclass
class CompileCounters:
    """Dynamo's and inductor's own counts since the last compiler reset."""

    graphs: int = 0
    breaks: int = 0
    recompiles: int = 0
    fx_cache_hits: int = 0
    autograd_cache_hits: int = 0
    cache_bypasses: int = 0
    autograd_captures: int = 0
    break_reasons: tuple[str, ...] = ()
    recompile_reasons: tuple[str, ...] = ()

    @property
    def cache_hits(self) -> int:
        """Those of both caches."""
        return self.fx_cache_hits + self.autograd_cache_hits


class FallbackWatch(logging.Handler):
    """Charges the compiler's warnings that it runs eager instead to the case that runs now."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._account: list[str] = []

    @contextlib.contextmanager
    def charging(self, account: list[str]) -> Iterator[None]:
        """Write what is announced inside into ``account``, each text once."""
        before, self._account = self._account, account
        try:
            yield
        finally:
            self._account = before

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the beginning of a warning that announces a fallback, without a traceback."""
        text = " ".join(TRACEBACK.sub("", record.getMessage()).split())[:400]
        if any(mark in text for mark in _FALLBACK_MARKS) and text not in self._account:
            self._account.append(text)


@functools.cache
def fallback_watch() -> FallbackWatch:
    """The one of this process; it listens to the compiler's loggers, which do not always propagate."""
    watch = FallbackWatch()
    for name in ("torch._dynamo", "torch._inductor"):
        logging.getLogger(name).addHandler(watch)
    return watch


def use_cache(cache: str, configuration: Configuration) -> None:
    """Make the compiler keep its caches in the folder of ``configuration`` below ``cache``."""
    folder = f"{cache}/{folder_name(configuration)}"
    os.environ[CACHE] = folder
    os.environ["TRITON_CACHE_DIR"] = f"{folder}/triton"


def probe_vector_isa() -> None:
    """Let inductor find this machine's vector instructions once, before workers are forked.

    It compiles and loads a test program for each instruction set and keeps the answer in the process, so
    every fork would pay for it again inside its cold compilation; the answer is the machine's, not the
    case's.
    """
    try:
        from torch._inductor.cpu_vec_isa import pick_vec_isa
    except ImportError:
        return
    pick_vec_isa()


def prepare_machine() -> None:
    """Do what inductor does once for a machine, before any case can be charged for it.

    Imports what it would import while it compiles, finds the vector instructions
    (:func:`probe_vector_isa`), and builds the precompiled headers that torch keeps for all processes: ten
    seconds and more on a small machine, which the first compiled case would pay. The headers depend on the
    flags of a real compilation, so a forked child does one, in a cache of its own; a mark beside the headers
    says that it was done for this torch and compiler.
    """
    began = time.perf_counter()
    for name in COMPILER_MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    imported = time.perf_counter()
    probe_vector_isa()
    BEFORE_FORK["compiler_import"] = round(imported - began, 3)
    BEFORE_FORK["vector_isa_probe"] = round(time.perf_counter() - imported, 3)
    try:
        from torch._inductor import codecache, cpp_builder

        folder = Path(codecache._HEADER_DIR)
        known = (torch_build(), cpp_builder.get_cpp_compiler())
    except (ImportError, AttributeError, RuntimeError):
        return  # an older torch has no such headers, a machine without a compiler builds none
    mark = folder / f"torchgauge-{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}"
    if mark.exists() and any(folder.glob("*.gch")):
        return
    pid = os.fork()
    if pid == 0:
        _compile_once_and_exit()
    os.waitpid(pid, 0)
    if any(folder.glob("*.gch")):
        mark.touch()


def torch_build() -> str:
    """Version and place of this torch."""
    import torch

    return f"{torch.__version__} {torch.__file__}"


def _compile_once_and_exit() -> None:
    """In a child: compile one operator with a cache that is thrown away."""
    code = 1
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ[CACHE] = folder
            import torch
            import torch._inductor.config as settings

            settings.compile_threads = 1
            torch.compile(torch.sin)(torch.ones(64))
        code = 0
    finally:
        os._exit(code)


def reset(*, code: bool = True) -> None:
    """Forget all compiled ``code`` of this process, and what was counted; caches on disk stay."""
    import torch._dynamo.utils
    from torch._inductor import utils

    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    if not code:
        _BEFORE["recompiles"] = _recompiles()
        return
    torch._dynamo.reset()
    _BEFORE.clear()
    clear = getattr(utils, "clear_caches", None) or utils.clear_inductor_caches  # renamed after torch 2.5
    clear()


@contextlib.contextmanager
def own_code() -> Iterator[None]:
    """Give code that dynamo compiles inside a region of its own, with a recompile limit of its own.

    Without regions, dynamo counts the codes of a function over all cases. Torch before 2.13 has no regions.
    """
    import torch._dynamo

    frames = getattr(torch._dynamo, "eval_frame", None)
    numbers = getattr(frames, "_next_isolate_recompiles_id", None)
    if numbers is None:
        yield
        return
    context, number = getattr(frames, "_TorchDynamoContext"), next(numbers)  # noqa: B009
    begin = context.__init__

    def begin_apart(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        self._isolate_recompiles_id = number

    context.__init__ = begin_apart
    try:
        yield
    finally:
        context.__init__ = begin


def gave_up(degraded: Iterable[str]) -> bool:
    """Return whether a case runs eager because dynamo reached its limit, or skipped its frames."""
    return any(_LIMIT in why or why.startswith(SKIPPED) for why in degraded)


def skipped_frames() -> int:
    """Return how many frames dynamo has found that it cannot compile, since the last :func:`reset`."""
    from torch._dynamo.utils import counters as table

    return int(table["frames"]["total"] - table["frames"]["ok"])


def arguments(configuration: Configuration, backend: str) -> dict[str, Any]:
    """What ``torch.compile`` is told of ``configuration``, to compile with ``backend``."""
    return {
        "backend": backend,
        "mode": configuration.compile_mode or None,
        "dynamic": configuration.dynamic,
        "fullgraph": configuration.fullgraph,
    }


def own_frame(module: Any) -> Callable[..., Any]:
    """Return a function that calls ``module``, with a code object that nobody has compiled.

    Dynamo keeps what it compiles by code object, so a module of an equal class that the process has compiled
    would lend its code.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(), call.__globals__, "call", None, call.__closure__)


def compiled(module: Any, configuration: Configuration) -> Callable[..., Any]:
    """The callable that ``torch.compile`` makes of ``module`` under ``configuration``."""
    import torch

    options: dict[str, Scalar] = dict(configuration.options)
    return torch.compile(  # type: ignore[no-any-return]
        module, options=options or None, **arguments(configuration, configuration.backend)
    )


def _recompile_reasons() -> tuple[str, ...]:
    """Why frames were compiled again, in the compiler's words, each once; an older torch does not say it."""
    from torch._dynamo.utils import get_compilation_metrics

    said = [getattr(each, "recompile_reason", None) for each in get_compilation_metrics()]
    return tuple(dict.fromkeys(" ".join(str(reason).split())[:300] for reason in said if reason))[:5]


def caches(compiler: str) -> bool:
    """Whether ``compiler`` keeps its code in caches unless told otherwise: inductor, from torch 2.6 on."""
    import torch

    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return compiler == "inductor" and (major, minor) >= (2, 6)


def _recompiles() -> int:
    """Return how often frames were compiled beyond their first time, since dynamo forgot its code."""
    from torch._dynamo import convert_frame

    return sum(max(0, count - 1) for count in getattr(convert_frame, "FRAME_COMPILE_COUNTER", {}).values())


def counters() -> CompileCounters:
    """What the compiler counted since the last :func:`reset`."""
    from torch._dynamo.utils import counters as table

    breaks = table.get("graph_break", {})
    inductor, autograd = table["inductor"], table["aot_autograd"]
    return CompileCounters(
        graphs=int(table["stats"]["unique_graphs"]),
        breaks=int(sum(breaks.values())),
        recompiles=_recompiles() - _BEFORE.get("recompiles", 0),
        fx_cache_hits=int(inductor["fxgraph_cache_hit"]),
        autograd_cache_hits=int(autograd["autograd_cache_hit"]),
        cache_bypasses=int(inductor["fxgraph_cache_bypass"]),
        autograd_captures=int(table["compiled_autograd"]["captures"]),
        break_reasons=tuple(" ".join(str(reason).split())[:300] for reason in list(breaks)[:5]),
        recompile_reasons=_recompile_reasons(),
    )
