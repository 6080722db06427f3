"""Backend ``executorch``: the model exported, lowered to a program of ExecuTorch, loaded and run in process.

Only through ``executorch.runtime``, as its users do. Each stage is a measurement of its own, and is named
where it fails. What a delegate was given of the program is counted, and timed by the runtime's own trace.

Of a model that generates text, the program is one token's step, which keeps its cache in buffers of its own:
a program takes inputs of one shape, and no cache. So it reads a prompt token by token too.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torchgauge.counted import counted
from torchgauge.errors import NotOfferedError, TorchgaugeError, add_note
from torchgauge.harness.backends import executorch_delegates as delegates
from torchgauge.harness.backends.backend import BackendDescriptor, options_of
from torchgauge.harness.backends.executorch_program import Program, refusal
from torchgauge.harness.backends.executorch_trace import delegated_time
from torchgauge.harness.backends.prepared import (
    ATTRIBUTES,
    GRADIENT,
    MEMORY,
    BackendSession,
    Prepared,
    program_dtypes,
    timed_call,
)
from torchgauge.harness.compile_cache import folder_name
from torchgauge.harness.scenarios.scenario import RemadeCall
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Configuration, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.suite import HOST

ANY = "any"
PROGRAM, TREES = "model.pte", "trees.json"
UNPROMISED = frozenset({ATTRIBUTES, MEMORY, GRADIENT})
"""What a program does without: it has no attributes, and hands out copies."""


@dataclass(frozen=True)
class ExecutorchOptions:
    """``delegate`` is the name of one in the runtime's registry, "" for none.

    ``any`` is the first one that serves the model, ``apart_from`` one of them. ``int8`` is the delegate whose
    quantizer makes 8 bits of the model, "" for none, ``any`` for the program's own.
    """

    delegate: str = ""
    apart_from: str = ""
    int8: str = ""

    def __post_init__(self) -> None:
        """Refuse an exception from nothing."""
        if self.apart_from and self.delegate != ANY:
            raise ValueError(f"apart_from: {self.apart_from!r} requires `delegate: {ANY}`")


@dataclass(frozen=True)
class _Executorch(BackendDescriptor):
    def cannot_run(self, workload: Workload, configuration: Configuration, device: Any) -> str | None:
        """A program has no way back."""
        return "an ExecuTorch program has no backward pass" if LOSS in wanted(workload) else None


BACKEND = _Executorch(
    name="executorch",
    doc="torch.export and ExecuTorch: a program that is lowered for a delegate, loaded and run on the host",
    implementation=__name__,
    packages=("executorch",),
    install_hint="pip install 'torchgauge[executorch]'",
    options=ExecutorchOptions,
)


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Source:
    """What is exported, and arguments of calls of it.

    It is exported with those of the first, and made in 8 bits with those of all; ``built`` is the model.
    ``prompt`` is how many tokens a generation reads one by one; 0 for a model that generates nothing.
    """

    module: Any
    calls: list[Arguments]
    autocast: Any
    built: Any
    prompt: int = 0

    @classmethod
    def of(cls, subject: Any, session: BackendSession) -> Source:
        """The model, or the step of one token where the scenario's step generates."""
        decoder = _decoder(subject, session)
        if decoder is None:
            return cls(subject.module, [(subject.args, subject.kwargs)], subject.autocast, subject.module)
        with _named("export", session):
            module, calls = decoder.exportable()
        prompt = subject.kwargs["input_ids"].shape[1]
        return cls(module.eval(), [((), each) for each in calls], subject.autocast, subject.module, prompt)

    @property
    def strict(self) -> bool:
        """Whether it is exported by dynamo: only that sees that a cache beside the module is its buffers."""
        return self.prompt > 0

    @property
    def how(self) -> str:
        """What exports it."""
        return f"torch.export.export, {'' if self.strict else 'not '}strict"


def _decoder(subject: Any, session: BackendSession) -> Any:
    """What the scenario's step generates with; None for another step."""
    return getattr(session.step(subject.module), "decoder", None)


def _called(program: Program, built: Any, *, generates: bool) -> Callable[..., Any]:
    """What takes the module's place."""
    return RemadeCall(program.loaded(), built, keeps_cache=True) if generates else program.loaded()


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The loaded program; what its stages took. A fresh process loads the one that is there.

    Raises :class:`NotOfferedError` where ExecuTorch refuses the model, or computes elsewhere than the device.
    """
    options = options_of(BACKEND, configuration)
    folder = Path(session.cache) / f"{folder_name(configuration)}-program"
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), session.alone() if session.cold else nullcontext():
        warnings.simplefilter("ignore")  # of its own old ways; those of the model are eager's too
        if session.fresh and (folder / TREES).is_file():
            session.stage("load")
            program = Program.reopened(folder / PROGRAM, json.loads((folder / TREES).read_text("utf-8")))
            session.stage("run")
            generates = bool(_decoder(subject, session))
            return Prepared(_called(program, subject.module, generates=generates), unpromised=UNPROMISED)
        source = Source.of(subject, session)
        # Lower for the requested delegate, or for the first registered one that works.
        if options.delegate != ANY:
            return _built(source, options.delegate, options.int8, session, folder)
        said: dict[str, str] = {}
        for name in delegates.registered():
            if name == options.apart_from:
                continue
            try:
                prepared = _built(source, name, options.int8 and name, session, folder)
            except Exception as error:  # noqa: BLE001  whatever it needs and does not find, another may do
                said[name] = first_line(error)
                continue
            if said:
                prepared.evidence["delegates_unusable"] = _told(said)
            return prepared
        raise NotOfferedError(_told(said) or "the runtime has no other delegate")


def _told(said: dict[str, str]) -> str:
    return "; ".join(f"{name}: {words}" for name, words in said.items())


def _built(source: Source, delegate: str, int8: str, session: BackendSession, folder: Path) -> Prepared:
    partitioner = delegates.partitioner(delegate) if delegate else None
    _refuse_other_devices(partitioner, folder, session)
    threads = delegates.set_threads()
    prepared = Prepared(source.built, unpromised=UNPROMISED)
    program = Program(folder / PROGRAM, partitioner)
    for name in _int8().LIBRARY if int8 else ():  # as for programs: charged to no stage
        import_module(name)
    modules = [source.module]
    quantise = ("quantise", "quantise_time", "PT2E", lambda: modules.append(_quantised(int8, source)))

    def export() -> None:
        program.export(modules[-1], *source.calls[0], source.autocast, strict=source.strict)

    for stage, metric, said, work in (
        *((quantise,) if int8 else ()),
        ("export", "export_time", source.how, export),
        ("lower", "lower_time", "to_edge_transform_and_lower and to_executorch", program.lower),
        ("load", "package_load", "load_program and load_method in the lowering process", program.load),
    ):
        with _named(stage, session):
            seconds = timed_call(work, session.device)
        prepared.measurements.append(single(metric, seconds, said))
    size = program.path.stat().st_size
    prepared.measurements.append(single("package_size", size, "size of the program file with its weights"))
    eager = session.step(source.built) if source.autocast else None
    prepared.evidence.update(
        program_dtypes=program_dtypes(program.dtypes, eager),
        executorch_threads=threads,
        executorch_operators=sum((program.delegated + program.kept).values()),
    )
    if program.copied:
        prepared.evidence["inputs_copied"] = (
            f"{program.copied} per call, because the runtime does not support their strides"
        )
    if source.prompt:
        prepared.evidence["prefill"] = f"{source.prompt} calls of the program with one token each"
    call = _called(program, source.built, generates=bool(source.prompt))
    with _named("run", session):
        session.first_call(call)
    prepared.call = call
    if int8:
        prepared.evidence["quantizer"] = int8
        prepared.rule = _int8().rule(prepared)
    if delegate:
        with _named("trace", session):
            _judge_delegation(prepared, program, delegate)
        session.stage("run")
    (folder / TREES).write_text(json.dumps(program.trees()), encoding="utf-8")
    return prepared


def _int8() -> Any:
    """The part that imports torch, which whoever asks for the descriptor does without."""
    return import_module("torchgauge.harness.backends.executorch_int8")


def _quantised(int8: str, source: Source) -> Any:
    if source.autocast is not None:
        raise NotOfferedError("8-bit quantisation requires a float32 model without autocast")
    return _int8().quantised(int8, source.module, source.calls, strict=source.strict)


def _judge_delegation(prepared: Prepared, program: Program, delegate: str) -> None:
    """How much of the program its delegate has, by operators and by time."""
    given, kept = sum(program.delegated.values()), sum(program.kept.values())
    share = given / (given + kept) if given + kept else 0.0
    prepared.evidence.update(
        delegate=delegate,
        delegated_operators=f"{given} of {given + kept} in {counted(program.subgraphs, 'subgraph')}",
        not_delegated=", ".join(f"{name} x{count}" for name, count in program.kept.most_common(8)) or "none",
    )
    prepared.measurements.append(single("delegated_share", share, "get_delegation_info, without getitem"))
    if not given:
        said = f"{delegate} was requested, but 0 of {counted(kept, 'operator')} were delegated to it"
        prepared.degraded.append(said)
    prepared.measurements.append(delegated_time(program))


@contextmanager
def _named(stage: str, session: BackendSession) -> Iterator[None]:
    """Say in which stage something failed; what the library refuses is unsupported, in its own words."""
    session.stage(stage)
    try:
        yield
    except TorchgaugeError:
        raise
    except Exception as error:
        if said := refusal(error):
            raise NotOfferedError(f"ExecuTorch, stage {stage}: {said}") from error
        add_note(error, f"in stage {stage}")
        raise


def _refuse_other_devices(partitioner: Any, folder: Path, session: BackendSession) -> None:
    """Raise :class:`NotOfferedError` where a small program, lowered the same way, computes elsewhere.

    It is asked for its result and not given the device's memory, which the runtime might take for the host's.
    """
    import torch

    device = session.device.torch_device
    if device.type == HOST:
        return

    class Sum(torch.nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
        def forward(self, x: Any) -> Any:
            return x + x

    ones = torch.ones(4)
    probe = Program(folder / "probe.pte", partitioner)
    with _named("probe", session):
        probe.export(Sum(), (ones,), {})
        probe.lower()
        probe.load()
        found = probe.loaded()(ones)
    if found.device.type != device.type:
        said = f"the program returned its result on {found.device}, but {session.device.name} was requested"
        raise NotOfferedError(f"the installed ExecuTorch runtime runs on the host: {said}")
