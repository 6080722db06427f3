"""Whether inductor did what its settings ask: SIMD width, freezing and max-autotune are read back.

Each of the three is dropped without a word where it cannot be had: a width that the processor lacks becomes
scalar code, freezing that dynamo is not told of folds nothing, max-autotune without a choice tunes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from torchgauge.harness.backends.prepared import BackendSession
from torchgauge.records import Configuration, Scalar
from torchgauge.suites.suite import HOST

WIDTH, FREEZING, AUTOTUNE = "cpp.simdlen", "freezing", "max_autotune"
DEVICE_GRAPHS = "triton.cudagraphs"
TUNED, TEMPLATES = "select_algorithm_autotune", "cpp_templated_kernel_counter"
"""Inductor's own counters: operators whose candidates were timed, and those that a C++ template won."""
INDUCTOR = "inductor"


@dataclass
class Knobs:
    """The settings of one case, and what was seen of them while it was compiled.

    ``mode`` is torch.compile's, ``device_type`` torch's name of the kind of device. ``folded`` counts what
    freezing made constants of the code, None where nothing was frozen; those of a ``packaged`` program are
    constants before.
    """

    settings: Mapping[str, Scalar]
    mode: str = ""
    device_type: str = HOST
    packaged: bool = False
    folded: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """What is compiled inside is frozen where that is asked for, and counted.

        Dynamo decides by the setting of the process whether parameters may become constants; in
        torch.compile's ``options`` alone, freezing is silently none (torch 2.13).
        """
        if not self.settings.get(FREEZING):
            yield
            return
        settings = import_module("torch._inductor.config")
        freezing: Any = import_module("torch._inductor.freezing")
        freeze = freezing.freeze

        def counted(dynamo_graph: Any, graph: Any, inputs: Any) -> Any:
            frozen, kept = freeze(dynamo_graph, graph, inputs)
            self.folded = (self.folded or 0) + len(inputs) - len(kept)
            return frozen, kept

        freezing.freeze = counted
        try:
            with settings.patch({FREEZING: True}):
                yield
        finally:
            freezing.freeze = freeze

    def seen(self) -> tuple[dict[str, Scalar], list[str]]:
        """Facts of the row, and what the case is degraded by; of the last compilation in this process."""
        facts: dict[str, Scalar] = {}
        missed: list[str] = []
        for fact, said in (self._width(), self._frozen(), self._tuned(), self._graphs()):
            facts.update(fact)
            missed += [said] if said else []
        return facts, missed

    def _width(self) -> tuple[dict[str, Scalar], str]:
        """The vector instructions that inductor's C++ code is made of: of this processor, for this width."""
        if self.device_type != HOST:
            return {}, ""
        settings = import_module("torch._inductor.config")
        try:
            pick = import_module("torch._inductor.cpu_vec_isa").pick_vec_isa
        except ImportError:
            return {"simd_unknown": "this torch does not say which vector instructions it picks"}, ""
        asked = self.settings.get(WIDTH)
        with settings.patch({WIDTH: asked} if WIDTH in self.settings else {}):
            picked = pick()
        width = picked.bit_width() if picked else 1
        facts: dict[str, Scalar] = {"simd_width": width, "simd": str(picked) if picked else "none"}
        if asked is None or asked == width:
            return facts, ""
        return facts, f"asked for SIMD width {asked}, the code has {width}: this processor has no such width"

    def _frozen(self) -> tuple[dict[str, Scalar], str]:
        if not self.settings.get(FREEZING):
            return {}, ""
        folded = self.folded or 0
        done = self.folded is not None if self.packaged else folded > 0
        said = "" if done else "freezing folded no parameter into the code"
        return ({} if self.packaged else {"folded_parameters": folded}), said

    def _tuned(self) -> tuple[dict[str, Scalar], str]:
        if not (self.settings.get(AUTOTUNE) or self.mode.startswith("max-autotune")):
            return {}, ""
        counts = import_module("torch._dynamo.utils").counters["inductor"]
        tuned, won = int(counts[TUNED]), int(counts[TEMPLATES])
        facts: dict[str, Scalar] = {"autotuned": tuned, "cpp_templates": won}
        return facts, "" if tuned else "max-autotune tuned nothing: no operator had a choice of kernels"

    def _graphs(self) -> tuple[dict[str, Scalar], str]:
        if self.mode != "reduce-overhead" and not self.settings.get(DEVICE_GRAPHS):
            return {}, ""
        skips = int(import_module("torch._dynamo.utils").counters["inductor"]["cudagraph_skips"])
        said = f"device graphs were asked for, and inductor skipped them in {skips} graphs" if skips else ""
        return {"device_graph_skips": skips}, said


def knobs_of(session: BackendSession, configuration: Configuration, settings: Mapping[str, Scalar]) -> Knobs:
    """The knobs of a case that inductor compiles with ``settings`` on the device of ``session``."""
    kind = getattr(getattr(session.device, "torch_device", None), "type", HOST)
    return Knobs(settings, configuration.compile_mode, kind)
