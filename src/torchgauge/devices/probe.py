"""The parent's only way to torch: a child process in the target interpreter that may die as it likes.

Why: with some vendors' packages ``import torch`` raises, hangs or ends the interpreter where their stack is
absent. The probe says which, with the innermost cause, and tries again without the extensions, so that the
other devices stay usable.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from torchgauge.devices.availability import Availability
from torchgauge.devices.declared_variables import declared_variables
from torchgauge.devices.probe_questions import DONE, EXIT_S, QUESTION, Watched
from torchgauge.processes.kept_process import scratch, start_apart
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.records import RecordError, from_plain

AUTOLOAD_VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"
CHILD = Path(__file__).with_name("probe_child.py")
TIMEOUT_S = 120.0
DETAIL_LINES = 12


class ProbeState(str, Enum):
    """How a probe ended."""

    OK = "ok"
    BROKEN = "broken"
    NO_TORCH = "no_torch"
    NO_INTERPRETER = "no_interpreter"


@dataclass(frozen=True)
class Extension:
    """A package that ``import torch`` loads by itself (entry point of the group ``torch.backends``)."""

    name: str
    value: str
    package: str
    version: str


@dataclass(frozen=True)
class TorchBuild:
    """The torch of the target interpreter; ``privateuse1`` is the name of the out-of-tree device."""

    version: str
    git_commit: str
    flavour: str
    debug: bool
    import_s: float
    privateuse1: str


@dataclass(frozen=True)
class HookFact:
    """A hook of a device: where it was found (empty where absent) and what failed before that."""

    name: str
    source: str
    problem: str


@dataclass(frozen=True)
class Unit:
    """One device of a type: index among the visible ones, model, bytes (None where unknown)."""

    index: int
    model: str
    memory_bytes: int | None


@dataclass(frozen=True)
class DeviceFacts:
    """What a device answered; ``compile`` pairs backends with the reason of their refusal (empty: none)."""

    torch_type: str
    count: int
    fork_safe: bool | None
    fork_problem: str
    units: tuple[Unit, ...] = ()
    driver: str = ""
    profiler: str = ""
    autocast_dtypes: tuple[str, ...] = ()
    distributed_backend: str | None = None
    distributed_problem: str = ""
    telemetry: tuple[str, ...] = ()
    hooks: tuple[HookFact, ...] = ()
    compile: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Trouble:
    """Why a probe failed: root cause, activity, exceptions (outermost first), output, what to type."""

    cause: str
    doing: str
    chain: tuple[str, ...]
    detail: str
    fix: str


@dataclass(frozen=True)
class ProbeReport:
    """Everything that a probe learnt, also when it did not reach the end.

    ``silent`` pairs each package that names nothing for ``import torch`` to load with its version.
    ``exit_problem`` says how the process ended that had answered everything, where it did not end well.
    """

    python: str
    autoload: bool
    state: ProbeState
    wall_s: float
    version: str = ""
    extensions: tuple[Extension, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    silent: tuple[tuple[str, str], ...] = ()
    torch: TorchBuild | None = None
    devices: tuple[DeviceFacts, ...] = ()
    availabilities: tuple[Availability, ...] = ()
    torchvision_problem: str | None = None
    trouble: Trouble | None = None
    without_autoload: ProbeReport | None = None
    exit_problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether torch imported and every device answered."""
        return self.state is ProbeState.OK

    @property
    def usable(self) -> ProbeReport | None:
        """This report, or the one without extensions, whichever reached the end; None where neither did."""
        if self.ok:
            return self
        return self.without_autoload.usable if self.without_autoload is not None else None

    def device(self, torch_type: str) -> DeviceFacts | None:
        """What the device of this type answered, None where torch has none."""
        return next((facts for facts in self.devices if facts.torch_type == torch_type), None)

    def availability(self, torch_type: str) -> Availability | None:
        """Whether torch is built for this type and what it counts, None where it was not asked."""
        return next((found for found in self.availabilities if found.torch_type == torch_type), None)

    @property
    def accelerator(self) -> DeviceFacts | None:
        """The one accelerator of this torch that is no CPU."""
        return next((facts for facts in self.devices if facts.torch_type != "cpu"), None)


def probe(
    python: str,
    autoload: bool = True,
    timeout: float = TIMEOUT_S,
    *,
    deep: bool = False,
    libraries: bool = False,
    environment: Mapping[str, str] | None = None,
) -> ProbeReport:
    """What ``python`` and its torch answer; a failure with extensions is tried again without them.

    ``deep`` also asks for compile support and ``libraries`` imports torchvision (seconds more each).
    ``environment`` is set on top of this process's own. Raises nothing: a failure is a report with a
    :class:`Trouble`.
    """
    options = (*(["--deep"] if deep else []), *(["--libraries"] if libraries else []))
    report = probe_once(python, autoload, timeout, options, environment or {})
    if report.state is ProbeState.BROKEN and autoload and report.extensions:
        second = probe_once(python, False, timeout, options, environment or {})
        report = replace(report, without_autoload=second)
        assert report.trouble is not None
        report = replace(report, trouble=replace(report.trouble, fix=_fix(report)))
    return report


@dataclass(frozen=True)
class Ending:
    """How the child process ended; ``returncode`` is None where it was killed for its time."""

    returncode: int | None
    timeout_s: float
    output: str


def probe_once(
    python: str, autoload: bool, timeout: float, options: tuple[str, ...], environment: Mapping[str, str]
) -> ProbeReport:
    """Children with the ``options`` of their command line; like :func:`probe`, but nothing is tried again.

    A question that hangs costs its child; the next one leaves it out. ``timeout`` is for each.
    """
    began = time.perf_counter()
    variables = {
        **passed(declared=declared_variables()),
        **environment,
        AUTOLOAD_VARIABLE: "1" if autoload else "0",
    }
    empty = ProbeReport(python=python, autoload=autoload, state=ProbeState.NO_INTERPRETER, wall_s=0.0)
    unanswered: list[str] = []
    while True:
        left_out = (f"--unanswered={','.join(unanswered)}",) if unanswered else ()
        try:
            stages, ending, hanging = _child(python, (*options, *left_out), variables, timeout)
        except OSError as error:
            cause = f"{python}: {error.strerror or error}"
            return replace(
                empty,
                wall_s=time.perf_counter() - began,
                trouble=Trouble(
                    cause, "start the interpreter", (), "", "pass --python PATH of a working Python"
                ),
            )
        if not hanging or hanging in unanswered:
            return replace(_report_of(empty, stages, ending), wall_s=time.perf_counter() - began)
        unanswered.append(hanging)


def _child(
    python: str, options: tuple[str, ...], variables: Mapping[str, str], timeout: float
) -> tuple[list[tuple[str, Any]], Ending, str]:
    """What one child said, how it ended, and the question that it hung in."""
    with scratch("probe") as folder:
        path = folder / "report.jsonl"
        watched = Watched(path)
        command = [python, str(CHILD), *options, str(path)]
        ending = spawn(command, variables, timeout, folder / "output", watched)
        return read_stages(path), ending, watched.hanging if ending.returncode is None else ""


def spawn(
    command: list[str],
    variables: Mapping[str, str],
    timeout: float,
    output: Path,
    watched: Watched | None = None,
) -> Ending:
    """Run the child, apart from our terminal; it is killed when time is up, with all that it started.

    Time is ``timeout`` seconds, or what ``watched`` allows for a question and for the exit.
    """
    with output.open("wb") as sink:
        returncode: int | None
        child = start_apart(command, variables, sink)
        try:
            returncode = watched.wait(child, timeout) if watched is not None else child.wait(timeout)
        except subprocess.TimeoutExpired:
            returncode = None
        finally:
            child.end()
    output.write_bytes(known_secrets().hide_bytes(output.read_bytes()))
    lines = output.read_bytes()[-8192:].decode(errors="replace").strip().splitlines()
    return Ending(returncode, timeout, "\n".join(lines[-DETAIL_LINES:]))


def read_stages(path: Path) -> list[tuple[str, Any]]:
    """Stage and data of each whole line; a torn last line is dropped."""
    stages: list[tuple[str, Any]] = []
    if not path.exists():
        return stages
    secrets = known_secrets()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found = secrets.hide_in(json.loads(line))
            stages.append((found["stage"], found["data"]))
        except (ValueError, KeyError, TypeError):
            continue
    return stages


def _report_of(report: ProbeReport, stages: list[tuple[str, Any]], ending: Ending) -> ProbeReport:
    doing = "start the interpreter"
    raised: dict[str, Any] | None = None
    done = False
    for stage, data in stages:
        if stage == "begin":
            doing = data
        elif stage == "raised":
            raised = data
        elif stage == QUESTION:
            doing = f"ask for {data}"
        elif stage == DONE:
            done = True
        else:
            report = _absorb(report, stage, data)
    if done and raised is None:
        problem = "" if ending.returncode == 0 else _exit_problem(ending)
        return replace(report, state=ProbeState.OK, exit_problem=problem)
    if not stages:
        return replace(report, trouble=_no_python(report, ending))
    state = ProbeState.NO_TORCH if raised is not None and raised["no_torch"] else ProbeState.BROKEN
    report = replace(report, state=state)
    if raised is not None:
        chain = tuple(raised["chain"])
        cause = chain[-1].splitlines()[0] if chain else "an exception without a message"
    else:
        chain = ()
        cause = f"the interpreter {how_it_ended(ending)} during: {doing}"
    return replace(report, trouble=Trouble(cause, doing, chain, ending.output, _fix(report)))


def _absorb(report: ProbeReport, stage: str, data: Any) -> ProbeReport:
    """``report`` with what one stage adds."""
    try:
        if stage == "interpreter":
            extensions = tuple(from_plain(Extension, item) for item in data["extensions"])
            packages = tuple(sorted(data["packages"].items()))
            silent = tuple(sorted(data["silent"].items()))
            return replace(
                report, version=data["version"], extensions=extensions, packages=packages, silent=silent
            )
        if stage == "torch":
            return replace(report, torch=from_plain(TorchBuild, data))
        if stage == "device":
            return replace(report, devices=(*report.devices, from_plain(DeviceFacts, data)))
        if stage == "availabilities":
            return replace(report, availabilities=tuple(from_plain(Availability, item) for item in data))
        if stage == "torchvision":
            return replace(report, torchvision_problem=data)
        if stage == "compile":
            pairs = tuple(data["refusals"].items())
            devices = tuple(
                replace(facts, compile=pairs) if facts.torch_type == data["torch_type"] else facts
                for facts in report.devices
            )
            return replace(report, devices=devices)
    except (RecordError, KeyError, TypeError):
        return report  # something else wrote into the report; what is missing shows as missing
    return report


def _no_python(report: ProbeReport, ending: Ending) -> Trouble:
    how = how_it_ended(ending)
    fix = "pass --python PATH of a Python 3.10 or later"
    return Trouble(
        f"{report.python} could not run the device probe, which {how}",
        "start the interpreter",
        (),
        ending.output,
        fix,
    )


def _exit_problem(ending: Ending) -> str:
    """How the process ended after its last word, in words."""
    if ending.returncode is None:
        return f"the process printed its result, but did not exit within {EXIT_S:g} s"
    return f"the process printed its result and {how_it_ended(ending).removesuffix(' without an exception')}"


def how_it_ended(ending: Ending) -> str:
    """``was killed by SIGSEGV`` and the like."""
    if ending.returncode is None:
        return f"did not end within {ending.timeout_s:g} s"
    if ending.returncode < 0:
        try:
            name = signal.Signals(-ending.returncode).name
        except ValueError:
            name = f"signal {-ending.returncode}"
        return f"was killed by {name}"
    return f"exited with status {ending.returncode} without an exception"


def _fix(report: ProbeReport) -> str:
    if report.state is ProbeState.NO_TORCH:
        return f"{report.python} -m pip install torch"
    if not (report.autoload and report.extensions):
        return f'{report.python} -c "import torch" shows the full error; reinstall torch'
    packages = " ".join(sorted({item.package for item in report.extensions if item.package}))
    remove = f", or {report.python} -m pip uninstall {packages}" if packages else ""
    second = report.without_autoload
    if second is not None and not second.ok:
        return f'{report.python} -c "import torch" fails even with {AUTOLOAD_VARIABLE}=0; reinstall torch'
    names = ", ".join(item.name for item in report.extensions)
    return f"set {AUTOLOAD_VARIABLE}=0 to run the other devices without {names}{remove}"
