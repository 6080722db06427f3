"""Compiling one case with ``torch.compile``: caches, cold and warm time, counters, and what shows the path.

Worker side. What is compiled, and how, is the backend's: the whole model, or block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.harness.backends.backend import compiler_of
from torchgauge.harness.backends.compiler_start import compiler_start
from torchgauge.harness.backends.inductor_knobs import DEVICE_GRAPHS, INDUCTOR, Knobs
from torchgauge.harness.backends.prepared import REUSE, BackendSession, Entries, Look, Prepared, Step
from torchgauge.harness.cold_sampling import NOT_SAMPLED
from torchgauge.harness.compile_cache import EMPTY, FACT, KEPT, NEW, PARTS, UNTOLD, folder_name, of_parts
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.captured_graphs import Graph, captured
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.compiler_parts import UntellableError, compiler_parts
from torchgauge.harness.worker.cpu_time import CpuTime, spent_in
from torchgauge.records import Configuration, Measurement, Scalar, absent


@dataclass
class CompileStage:
    """The compilation of one case; ``make`` gives the callable, the compiler having forgotten all others.

    ``judge`` says what the case is degraded by as far as the compiler's counts show it, "" for nothing;
    ``knobs`` are the settings of inductor, where it compiles. ``around`` makes a context of whatever runs of
    it. ``graphs`` is told what dynamo captures, and ``count`` adds what only this way of compiling counts.
    """

    make: Callable[[], Callable[..., Any]]
    configuration: Configuration
    session: BackendSession
    judge: Callable[[compilation.CompileCounters], str] = lambda _: ""
    knobs: Knobs | None = None
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    graphs: list[Graph] | None = None
    count: Callable[[Prepared], None] | None = None

    def prepare(self) -> Prepared:
        """Compile with the kept cache or an empty one.

        What fails with code from the kept cache is compiled again into an empty one before it is believed.
        """
        session = self.session
        if session.fresh:
            return self._attempt(session.kept or session.cache, "")
        if not session.kept or session.cold:
            return self._attempt(session.cache, EMPTY)
        facts = self._parts()
        kept = of_parts(session.kept, facts)
        if not kept:
            return self._attempt(session.cache, f"{EMPTY}: compiler parts {facts[PARTS]}")
        if not (Path(kept) / folder_name(self.configuration)).is_dir():
            prepared = self._attempt(kept, NEW)
        else:
            prepared = self._from_kept(kept)
        if prepared.evidence.get(PARTS, "") != facts.get(PARTS, ""):
            return self._again("third-party code registered with the compiler during compilation")
        return prepared

    def _from_kept(self, kept: str) -> Prepared:
        """Compile with the code in the folder ``kept``, or into an empty cache if that fails."""
        try:
            prepared = self._attempt(kept, KEPT)
        except Exception as error:  # noqa: BLE001  whatever it is, the cache may be to blame
            return self._again(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        if compilation.counters().cache_hits:  # else all code is of this attempt
            prepared.retry = self._again
        return prepared

    def _parts(self) -> dict[str, Scalar]:
        """Return the fact that names the third-party packages in a compilation; empty if there are none."""
        try:
            parts = compiler_parts(compiler_of(self.configuration))
        except UntellableError as error:
            parts = f"{UNTOLD}{error}"
        return {PARTS: parts} if parts else {}

    def _again(self, trouble: str) -> Prepared:
        return self._attempt(self.session.cache, f"{EMPTY}, after the kept cache failed: {trouble}")

    def _attempt(self, cache: str, origin: str) -> Prepared:
        """Compile with the caches in the folder ``cache``; ``origin`` is where the code comes from."""
        session = self.session
        start = compiler_start(session) if self._starts_cold() else None
        compilation.use_cache(cache, self.configuration)
        if not session.fresh:
            compilation.reset(code=not session.foreign)
        if self.knobs is not None:
            self.knobs.forget()
        if self.graphs is not None:
            self.graphs.clear()
        call = self.make()
        evidence: dict[str, Scalar] = {**compilation.BEFORE_FORK, **({FACT: origin} if origin else {})}
        unpromised = frozenset({REUSE} if self._replays() else ())
        entries = Entries()
        prepared = Prepared(call, settled=False, evidence=evidence, entries=entries, unpromised=unpromised)
        prepared.context = lambda: self._running(cache, prepared, entries)
        with prepared.context():
            seconds, cpu = spent_in(lambda: session.first_call(call))
        if start is not None:
            seconds, cpu = seconds + start[0], cpu + start[1]
            prepared.evidence["compiler_start"] = round(start[0], 3)
        prepared.measurements += self._timed(seconds, cpu)
        if session.fresh:
            self._judge_cache(prepared)
        else:
            prepared.evidence.update(self._parts())
            prepared.judged = lambda: self._judged(prepared)
            prepared.look = Look("compiled_share_unknown", self._look)
        return prepared

    def _starts_cold(self) -> bool:
        """Whether its first call is timed with an empty cache, and what inductor does once with it."""
        session = self.session
        empty = session.cold and not session.fresh and not session.filled
        return empty and compiler_of(self.configuration) == INDUCTOR

    def _replays(self) -> bool:
        """Return whether device graphs are asked for, which write each result into one memory."""
        one = self.configuration
        by_name = one.backend == "cudagraphs" or one.compile_mode in {"reduce-overhead", "max-autotune"}
        return by_name or bool(dict(one.options).get(DEVICE_GRAPHS))

    @contextmanager
    def _running(self, cache: str, prepared: Prepared, entries: Entries) -> Iterator[None]:
        """What runs inside finds its caches, and is charged with the compiler's warnings."""
        compilation.use_cache(cache, self.configuration)  # another case's may have been in use
        knobs, graphs = self.knobs, self.graphs
        fresh = self.session.fresh  # a warm start is timed with its imports: nothing is looked at there
        with ExitStack() as inside:
            inside.enter_context(compilation.fallback_watch().charging(prepared.degraded))
            if knobs is not None:
                inside.enter_context(knobs.frozen() if fresh else knobs.watched())
            if not fresh:
                taken = None if knobs is None else knobs.graphs_taken
                inside.enter_context(captured(entries, compiler_of(self.configuration), graphs, taken))
            inside.enter_context(self.around())
            yield

    def _timed(self, seconds: float, cpu: CpuTime) -> list[Measurement]:
        if self.session.fresh:
            counts = compilation.counters()
            return [
                *_warm(seconds, cpu),
                single("cache_hits", counts.cache_hits, "fxgraph and autograd cache"),
                single("fx_cache_hits", counts.fx_cache_hits, "inductor fxgraph_cache_hit"),
                single("autograd_cache_hits", counts.autograd_cache_hits, "aot_autograd autograd_cache_hit"),
            ]
        if self.session.filled:
            return _warm(seconds, cpu)
        if self.session.cold:
            return _first_call("compile_cold", "first call, empty cache", seconds, cpu)
        return [absent("compile_cold", NOT_SAMPLED)]

    def _judge_cache(self, prepared: Prepared) -> None:
        """Say by what a start that should have been warm was none."""
        counts = compilation.counters()
        if counts.cache_hits or not counts.graphs or not compilation.caches(compiler_of(self.configuration)):
            return
        if counts.cache_bypasses:
            prepared.evidence["compile_cache_bypassed"] = counts.cache_bypasses
        else:
            said = "the filled compile cache had no hit: there was no warm start"
            prepared.degraded.append(said)

    def _judged(self, prepared: Prepared) -> None:
        """Say what was counted and what was done of the settings, before another case is compiled."""
        _count(prepared, self.judge)
        if self.knobs is not None:
            facts, missed = self.knobs.seen()
            prepared.evidence.update(facts)
            prepared.degraded += missed
        if self.count is not None:
            self.count(prepared)

    def _look(self, step: Step, eager_step: Step) -> tuple[dict[str, Scalar], str] | str:
        from torchgauge.harness.worker import compiled_share

        found = compiled_share.look(step, eager_step, self.session.device)
        if isinstance(found, str):
            return found
        share, complaint = found
        return {"compiled_share": round(share, 4)}, complaint


def _warm(seconds: float, cpu: CpuTime) -> list[Measurement]:
    return _first_call("compile_warm", "first call, filled cache", seconds, cpu)


def _first_call(metric: str, provenance: str, seconds: float, cpu: CpuTime) -> list[Measurement]:
    """How long a first call took, by the wall, on all cores, and on those of the compiler's own processes."""
    return [
        single(metric, seconds, provenance),
        single(f"{metric}_cpu", cpu.whole, f"{provenance}; CPU time of the process and its children"),
        single(f"{metric}_children", cpu.others, f"{provenance}; CPU time of the child processes"),
    ]


def _count(prepared: Prepared, judge: Callable[[compilation.CompileCounters], str]) -> None:
    """Say what the compiler counted since it last forgot: only until the next case does it count this one."""
    counts = compilation.counters()
    if prepared.evidence.get(FACT) == KEPT and counts.graphs and not counts.cache_hits:
        prepared.evidence[FACT] = NEW
    prepared.measurements += [
        single("graph_count", counts.graphs, "dynamo unique_graphs"),
        single("graph_breaks", counts.breaks, "dynamo graph_break"),
        single("recompiles", counts.recompiles, "dynamo frame compilations beyond the first"),
    ]
    if counts.break_reasons:
        prepared.evidence["graph_break_reasons"] = " | ".join(counts.break_reasons)
    if counts.recompile_reasons:
        prepared.evidence["recompile_reasons"] = " | ".join(counts.recompile_reasons)
    if counts.graphs == 0:
        prepared.degraded.append("dynamo captured no graph: every step runs eager")
    elif said := judge(counts):
        prepared.degraded.append(said)
