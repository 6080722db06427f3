"""Whether inductor did what its settings ask: they are read back in its code and its counters.

Most are dropped without a word where they cannot be had: a width that the processor lacks becomes scalar
code, freezing that dynamo is not told of folds nothing, max-autotune without a choice tunes nothing.
What was made is read in the generated code, which inductor hands out whether it is new or from a cache; which
vectors ``at::vec`` stands for there, inductor decides once for the settings, and for the compiler's flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from torchgauge.counted import counted
from torchgauge.harness.backends.prepared import BackendSession, Entries
from torchgauge.harness.worker.captured_graphs import Graph, captured
from torchgauge.records import Configuration, Scalar
from torchgauge.suites.suite import HOST

WIDTH, FREEZING, AUTOTUNE = "cpp.simdlen", "freezing", "max_autotune"
DEVICE_GRAPHS = "triton.cudagraphs"
TUNED, TEMPLATES = "select_algorithm_autotune", "cpp_templated_kernel_counter"
"""Inductor's own counters: operators whose candidates were timed, and those that a C++ template won."""
TELL = "get_algorithm_selector_cache"
"""Inductor's function for what chooses kernels, which tells functions in a list of each choice."""
INDUCTOR = "inductor"
HAND_OUT = "save_output_code"
"""Where inductor hands out its code, to a function that is called with the text."""
KERNEL = re.compile(r'extern "C"[^{;]*\bvoid\b[^{;]*\)\s*\{')
VECTORS = "at::vec::"
WRAPPER, CPP_ENTRY = "cpp_wrapper", "CppWrapperCodeCache"
"""The setting of calling code in C++, and what loads that where it was generated."""
DISPATCHED = re.compile(r'(?:aoti_torch_call_dispatcher|findSchemaOrThrow)\("([^"]+)", "([^"]*)"')
"""Operators that C++ calling code calls by their name and overload: there is no function of C for them."""
BY_PYTHON = re.compile(r'PyTuple_SetItem\(\w+, 0, PyUnicode_FromString\("([^"]+)"\)\)')
"""Those that it calls through Python, whoever computes them, because of the types of their arguments."""
OF_ALL_DEVICES = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The dispatcher's keys of kernels that serve any device."""
CHOOSABLE = re.compile(r"\baten\.(?:mm|addmm|bmm|baddbmm|_int_mm|_scaled_mm|convolution)\b")
"""Operators of which max-autotune compares kernels, as the comments of generated code name them."""


@dataclass
class Knobs:
    """The settings of one case, and what was seen of them while it was compiled.

    ``mode`` is torch.compile's, ``device_type`` torch's name of the kind of device. ``folded`` counts what
    freezing made constants of the code, None where nothing was frozen; those of a ``packaged`` program are
    constants before. ``code`` are the generated texts, ``lowered`` counts the graphs that inductor lowers,
    ``choices`` what had several kernels to choose from, ``graphs`` what dynamo handed over to be frozen.
    """

    settings: Mapping[str, Scalar]
    mode: str = ""
    device_type: str = HOST
    packaged: bool = False
    folded: int | None = None
    code: list[str] = field(default_factory=list)
    choices: int = 0
    lowered: int = 0
    graphs: list[Graph] = field(default_factory=list)

    def forget(self) -> None:
        """Begin anew, after an attempt that failed."""
        self.folded, self.choices = None, 0
        self.code.clear()
        self.graphs.clear()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """What is generated inside is kept as text, frozen where that is asked for, and counted."""
        lowering: Any = import_module("torch._inductor.graph").GraphLowering
        before, begin = getattr(lowering, HAND_OUT, None), lowering.__init__

        def begin_counted(graph: Any, *args: Any, **kwargs: Any) -> None:
            self.lowered += 1
            begin(graph, *args, **kwargs)

        setattr(lowering, HAND_OUT, self.code.append)
        lowering.__init__ = begin_counted
        try:
            with self.frozen(), self._handed_over(), self._choosing():
                yield
        finally:
            setattr(lowering, HAND_OUT, before)
            lowering.__init__ = begin

    def graphs_taken(self) -> int:
        """Return a number that grows whenever inductor lowers a graph, or takes its code from a cache."""
        return self.lowered + len(self.code)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """What is compiled inside is frozen, and what that folds is counted.

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

    def _handed_over(self) -> AbstractContextManager[None]:
        return captured(Entries(), INDUCTOR, self.graphs) if self.settings.get(FREEZING) else nullcontext()

    @contextmanager
    def _choosing(self) -> Iterator[None]:
        """Choices that are made inside are counted, by times that inductor kept of another model as well."""
        select: Any = import_module("torch._inductor.select_algorithm") if self._tunes() else None
        if not hasattr(select, TELL):
            yield
            return
        told: list[Any] = select.get_algorithm_selector_cache().feedback_saver_fns
        told.append(self._chose)
        try:
            yield
        finally:
            told.remove(self._chose)

    def _chose(self, *_: Any) -> None:
        self.choices += 1

    def _tunes(self) -> bool:
        return bool(self.settings.get(AUTOTUNE)) or self.mode.startswith("max-autotune")

    def seen(self) -> tuple[dict[str, Scalar], list[str]]:
        """Facts of the row, and what the case is degraded by; of the last compilation in this process."""
        facts: dict[str, Scalar] = {}
        missed: list[str] = []
        for fact, said in (self._width(), self._frozen(), self._tuned(), self._graphs(), self._wrapper()):
            facts.update(fact)
            missed += [said] if said else []
        return facts, missed

    def _width(self) -> tuple[dict[str, Scalar], str]:
        """The vector instructions that inductor's C++ code is made of: of this processor, for this width."""
        if self.device_type != HOST:
            return {}, ""
        kernels = sum(len(KERNEL.findall(text)) for text in self.code)
        if not kernels:
            return {"simd": "no C++ kernel was generated"} if self.code else {}, ""
        settings = import_module("torch._inductor.config")
        try:
            isas: Any = import_module("torch._inductor.cpu_vec_isa")
        except ImportError:
            return {"simd_unknown": "this torch does not report the vector instructions that it uses"}, ""
        asked = self.settings.get(WIDTH)
        with settings.patch({WIDTH: asked} if WIDTH in self.settings else {}):
            picked = isas.pick_vec_isa()
        vectors = bool(picked) and any(VECTORS in text for text in self.code)
        width = picked.bit_width() if vectors else 1
        facts: dict[str, Scalar] = {
            "cpp_kernels": kernels,
            "simd_width": width,
            "simd": str(picked) if vectors else "none",
        }
        if asked is None or asked == width:
            return facts, ""
        said = f"SIMD width {asked!r} was requested"
        if picked:
            return facts, f"{said}, but none of {kernels} C++ kernels has vectors"
        widths = " and ".join(map(str, sorted({each.bit_width() for each in isas.valid_vec_isa_list()})))
        return facts, f"{said}, but the code has no vectors: torch supports {widths or 'none'} here"

    def _frozen(self) -> tuple[dict[str, Scalar], str]:
        if not self.settings.get(FREEZING):
            return {}, ""
        folded = self.folded or 0
        nothing_there = self.graphs and not any(graph.parameters for graph in self.graphs)
        done = self.folded is not None if self.packaged else folded > 0 or nothing_there
        said = "" if done else "freezing folded no parameter into the code"
        return ({} if self.packaged else {"folded_parameters": folded}), said

    def _tuned(self) -> tuple[dict[str, Scalar], str]:
        if not self._tunes():
            return {}, ""
        counts = import_module("torch._dynamo.utils").counters["inductor"]
        tuned, won = int(counts[TUNED]), int(counts[TEMPLATES])
        kept = max(0, self.choices - tuned)  # by times that another compilation has left
        facts: dict[str, Scalar] = {"autotune_kept": kept} if kept else {}
        if tuned or not kept:
            facts["autotuned"] = tuned
        facts["cpp_templates"] = won
        nothing_there = self.code and not any(CHOOSABLE.search(text) for text in self.code)
        said = "max-autotune tuned nothing: no operator had a choice of kernels"
        return facts, "" if tuned or self.choices or nothing_there else said

    def _graphs(self) -> tuple[dict[str, Scalar], str]:
        if self.mode != "reduce-overhead" and not self.settings.get(DEVICE_GRAPHS):
            return {}, ""
        skips = int(import_module("torch._dynamo.utils").counters["inductor"]["cudagraph_skips"])
        said = f"device graphs were requested, but inductor skipped them in {skips} graphs" if skips else ""
        return {"device_graph_skips": skips}, said

    def _wrapper(self) -> tuple[dict[str, Scalar], str]:
        """The language of the code that calls the kernels; a package has no other than C++.

        C++ that calls an operator which is written in Python goes back to Python all the same.
        """
        if not self.settings.get(WRAPPER) or self.packaged or not self.code:
            return {}, ""
        others = sum(CPP_ENTRY not in text for text in self.code)
        if others:
            said = (
                f"a C++ wrapper was requested, but {others} of "
                f"{counted(len(self.code), 'graph')} have a Python wrapper"
            )
            return {"calling_code": "Python"}, said
        facts: dict[str, Scalar] = {"calling_code": "C++"}
        called = sorted({each for text in self.code for each in DISPATCHED.findall(text)})
        found = [name for name, overload in called if in_python(name, overload, self.device_type)]
        found += sorted({each for text in self.code for each in BY_PYTHON.findall(text)})
        if not found:
            return facts, ""
        facts["python_operators"] = ", ".join(found)
        return facts, f"a C++ wrapper was requested, but it calls Python for {', '.join(found)}"


def in_python(name: str, overload: str, device_type: str) -> bool:
    """Whether the kernel that torch calls for the operator ``name`` on a device is a function of Python.

    One of the device goes before those of all devices. Torch keeps a list of what Python registered.
    """
    import torch

    registered: set[str] = getattr(import_module("torch.library"), "_impls", set())
    whole = f"{name}.{overload}" if overload else name
    for key in (torch._C._dispatch_key_for_device(device_type), *OF_ALL_DEVICES):
        if torch._C._dispatch_has_kernel_for_dispatch_key(whole, key):
            return f"{whole.replace('::', '/')}/{key}" in registered
    return False


def knobs_of(session: BackendSession, configuration: Configuration, settings: Mapping[str, Scalar]) -> Knobs:
    """The knobs of a case that inductor compiles with ``settings`` on the device of ``session``."""
    kind = getattr(getattr(session.device, "torch_device", None), "type", HOST)
    return Knobs(settings, configuration.compile_mode, kind)
