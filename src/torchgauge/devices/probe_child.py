"""Runs in the target interpreter, by its path: says what torch and its devices answer there.

Usage: ``python probe_child.py [--deep] [--libraries] [--import-only] [REPORT]``.
``--hide`` makes packages invisible first, ``--unanswered=NAME,NAME`` leaves out questions in which an earlier
child hung. Each stage appends one line of JSON to
REPORT (or prints it), so that whatever ends this process leaves behind how far it came. Standard library and
torch only; torchgauge need not be installed. Read by :mod:`torchgauge.devices.probe`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
import types
import warnings
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
PACKAGE = "_torchgauge_probe"
FORK_DEADLINE_S = 20.0
UNANSWERED = "it timed out"


class Questions:
    """Asks a device, one thing after another, and says in the report which one is open."""

    def __init__(self, report: IO[str], unanswered: list[str]) -> None:
        self.report, self.unanswered = report, unanswered

    def ask(self, name: str, function: Any, *arguments: Any, otherwise: Any = None) -> Any:
        """What ``function`` answers; ``otherwise`` where an earlier child did not come back from it."""
        if name in self.unanswered:
            return otherwise
        _write(self.report, "question", name)
        return function(*arguments)


def main(arguments: list[str]) -> int:
    """Write the stages in order; an exception ends in a stage of its own."""
    options = {argument for argument in arguments if argument.startswith("--")}
    paths = [argument for argument in arguments if not argument.startswith("--")]
    with contextlib.ExitStack() as stack:
        report = stack.enter_context(Path(paths[0]).open("a", encoding="utf-8")) if paths else sys.stdout
        try:
            _run(report, options)
        except BaseException as error:  # noqa: BLE001 - the top of the child: an extension may raise anything
            _write(report, "raised", _trouble(error))
            return 1
    return 0


def _run(report: IO[str], options: set[str]) -> None:
    installed, hooks = _sibling("installed"), _sibling("hooks")
    hidden = next((each.partition("=")[2] for each in options if each.startswith("--hide=")), "")
    if hidden:
        _sibling("hiding").hide(hidden.split(","))
    _write(report, "interpreter", _interpreter(installed))
    _write(report, "begin", "import torch")
    began = time.perf_counter()
    import torch

    _write(report, "torch", _torch_build(torch, time.perf_counter() - began))
    if "--import-only" in options:
        _write(report, "begin", "add two numbers on the host")
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0], "1 + 1 on the host was not 2"
        _write(report, "done", None)
        return
    hung = next((each.partition("=")[2] for each in options if each.startswith("--unanswered=")), "")
    questions = Questions(report, hung.split(",") if hung else [])
    accelerator = questions.ask("the current accelerator", _accelerator, hooks)
    fork: tuple[bool | None, str] = (True, "")
    if accelerator is not None:
        _write(report, "begin", f"use {accelerator} in a forked process")
        fork = _fork_works(torch, accelerator)
    _write(report, "begin", "examine the CPU")
    facts = [_device_facts(hooks, "cpu", (True, ""), Questions(report, []))]
    _write(report, "device", facts[0])
    if accelerator is not None:
        _write(report, "begin", f"query the device {accelerator}")
        facts.append(_device_facts(hooks, accelerator, fork, questions))
        _write(report, "device", facts[1])
    _write(report, "begin", "list the devices for which torch is built")
    _write(report, "availabilities", _availabilities(accelerator))
    if "--deep" in options:
        _compile(report, installed, [str(fact["torch_type"]) for fact in facts])
    if "--libraries" in options and importlib.util.find_spec("torchvision") is not None:
        _write(report, "begin", "import torchvision")
        _write(report, "torchvision", _torchvision_problem())
    _write(report, "done", None)


def _accelerator(hooks: Any) -> str | None:
    """The accelerator of this torch; an older torch does not call every type with devices one."""
    types = _sibling("availability").IN_TREE
    return hooks.current_accelerator() or next((each for each in types if hooks.device_count(each)), None)


def _availabilities(accelerator: str | None) -> list[dict[str, Any]]:
    """What each accelerator type is in this torch; the one in use has its facts as well."""
    module = _sibling("availability")
    types = dict.fromkeys([*module.IN_TREE, *([accelerator] if accelerator else [])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [dataclasses.asdict(module.availability(torch_type)) for torch_type in types]


def _compile(report: IO[str], installed: Any, torch_types: list[str]) -> None:
    compilers = _sibling("compilers")
    _write(report, "begin", "list the working backends of torch.compile")
    vendors = [point["name"] for point in installed.extensions(installed.COMPILE_GROUP)]
    for torch_type in torch_types:
        backends = ["inductor", "aot_eager", *vendors]
        refusals = {backend: compilers.compile_refusal(torch_type, backend) or "" for backend in backends}
        _write(report, "compile", {"torch_type": torch_type, "refusals": refusals})


def _interpreter(installed: Any) -> dict[str, Any]:
    return {
        "executable": sys.executable,
        "version": sys.version.split()[0],
        "extensions": installed.extensions(),
        "packages": installed.versions(),
        "silent": installed.silent_packages(),
    }


def _torch_build(torch: Any, import_s: float) -> dict[str, Any]:
    version = torch.version
    flavours = ((name, getattr(version, name, None)) for name in ("cuda", "hip", "xpu"))
    return {
        "version": str(torch.__version__),
        "git_commit": str(getattr(version, "git_version", "") or ""),
        "flavour": next((f"{name} {value}" for name, value in flavours if value), "cpu"),
        "debug": bool(getattr(version, "debug", False)),
        "import_s": import_s,
        "privateuse1": str(torch._C._get_privateuse1_backend_name()),
    }


def _device_facts(
    hooks: Any, torch_type: str, fork: tuple[bool | None, str], questions: Questions
) -> dict[str, Any]:
    ask = questions.ask
    count = 1 if torch_type == "cpu" else ask("device count", hooks.device_count, torch_type, otherwise=0)
    facts: dict[str, Any] = {
        "torch_type": torch_type,
        "count": count,
        "fork_safe": fork[0],
        "fork_problem": fork[1],
    }
    if count:
        if torch_type != "cpu":
            facts.update(_accelerator_facts(hooks, torch_type, count, questions))
        activity = ask("profiler", hooks.profiler_activity, torch_type, otherwise=(None, UNANSWERED))
        backend, problem = ask(
            "collectives", hooks.distributed_backend, torch_type, otherwise=(None, UNANSWERED)
        )
        autocast = _sibling("autocast").autocast_dtypes
        facts.update(
            profiler=activity[0] or "",
            autocast_dtypes=list(ask("autocast", autocast, torch_type, otherwise=())),
            distributed_backend=backend,
            distributed_problem=problem,
        )
    tried = [each["name"] for each in facts.get("hooks", [])]
    silent = [each for each in questions.unanswered if each not in tried]
    facts["hooks"] = [
        *facts.get("hooks", []),
        *({"name": name, "source": "", "problem": UNANSWERED} for name in silent),
    ]
    return facts


def _accelerator_facts(hooks: Any, torch_type: str, count: int, questions: Questions) -> dict[str, Any]:
    """What only an accelerator has; the CPU needs none of these hooks."""
    ask, none = questions.ask, hooks.Hook(None, "", UNANSWERED)
    wait = ask("synchronize", hooks.synchronize, torch_type, 0, otherwise=none)
    tried = {"synchronize": wait}
    if wait.call is not None:
        tried["events"] = ask("events", hooks.event_pair, torch_type, 0, wait.call, otherwise=none)
        tried["peak memory"] = ask("peak memory", hooks.peak_memory, torch_type, 0, wait.call, otherwise=none)
    tried["model name"] = ask("model name", hooks.model_name, torch_type, 0, otherwise=none)
    tried["memory"] = ask("memory", hooks.free_and_total_memory, torch_type, 0, otherwise=none)
    readings = ask("telemetry", hooks.telemetry, torch_type, 0, otherwise=({}, UNANSWERED))
    asked = [name for name in ("model name", "memory") if tried[name] is not none]
    return {
        "units": [_unit(hooks, torch_type, index, asked) for index in range(count)],
        "driver": ask("driver", _driver, hooks, torch_type, otherwise=""),
        "telemetry": sorted(readings[0]),
        "hooks": [
            {"name": name, "source": hook.source, "problem": hook.problem} for name, hook in tried.items()
        ],
    }


def _unit(hooks: Any, torch_type: str, index: int, asked: list[str]) -> dict[str, Any]:
    """One device, without what the first one did not answer."""
    memory = hooks.free_and_total_memory(torch_type, index).call if "memory" in asked else None
    return {
        "index": index,
        "model": (hooks.model_name(torch_type, index).call or "") if "model name" in asked else "",
        "memory_bytes": memory[1] if memory is not None else None,
    }


def _driver(hooks: Any, torch_type: str) -> str:
    try:
        properties = hooks.device_module(torch_type).get_device_properties(0)
        return str(getattr(properties, "driver_version", "") or "")
    except hooks.HOOK_ERRORS:
        return ""


def _fork_works(torch: Any, torch_type: str) -> tuple[bool, str]:
    """Whether a child forked now, with the device untouched, can run one operator; and why not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(BaseException):
            block = torch.ones(4, device=torch_type)
            status = 0 if (block + block).cpu().tolist() == [2.0] * 4 else 2
        os._exit(status)
    deadline = time.monotonic() + FORK_DEADLINE_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            if status == 0:
                return True, ""
            return False, f"one operator in a fork ended with {_ending(status)}"
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False, f"one operator in a fork did not end within {FORK_DEADLINE_S:.0f} s"


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return {1: "an exception", 2: "a wrong result"}.get(os.WEXITSTATUS(status), str(os.WEXITSTATUS(status)))


def _torchvision_problem() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch
            import torchvision  # noqa: F401 - importing registers the operators

            torch.ops.torchvision.nms  # noqa: B018 - raises where its schema is missing
    except Exception as error:  # noqa: BLE001 - whatever a mismatched build raises is the answer
        lines = str(error).splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"
    return ""


def _trouble(error: BaseException) -> dict[str, Any]:
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 20:
        chain.append(f"{type(current).__name__}: {current}".strip().rstrip(":"))
        hidden = None if current.__suppress_context__ else current.__context__
        current = current.__cause__ if current.__cause__ is not None else hidden
    missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
    return {"chain": chain, "no_torch": missing, "traceback": "".join(traceback.format_exception_only(error))}


def _write(report: IO[str], stage: str, data: Any) -> None:
    report.write(json.dumps({"stage": stage, "data": data}) + "\n")
    report.flush()


def _sibling(name: str) -> Any:
    """The module next to this file, in a package that exists only here: torchgauge may be absent."""
    if PACKAGE not in sys.modules:
        package = types.ModuleType(PACKAGE)
        package.__path__ = [str(HERE)]
        sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.{name}")


if __name__ == "__main__":
    # Our siblings must not answer to plain names such as "cpu" or "session".
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    # SystemExit is an answer as well; the report holds it.
    sys.exit(main(sys.argv[1:]))
