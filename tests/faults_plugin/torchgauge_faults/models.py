"""The worker's half: one tiny module per fault."""

from __future__ import annotations

import atexit
import ctypes
import functools
import mmap
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

FEATURES = 8
FLOOD_BYTES = int(os.environ.get("TORCHGAUGE_FAULTS_FLOOD_BYTES", "1000"))


class Healthy(torch.nn.Module):
    """A linear layer; every fault is a variation of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(FEATURES, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Raises(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError(f"this model is broken, at {id(x):#x}")


class RaisesInTraining(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            raise ValueError("this model does not train")
        return self.linear(x)


class RaisesWhileMeasured(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and round_number() is not None:
            raise ValueError("once too often")
        return self.linear(x)


class SegfaultWhileMeasured(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and round_number() is not None:
            ctypes.string_at(0)
        return self.linear(x)


class NanEager(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * float("nan")


class NanCompiled(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y * float("nan") if torch.compiler.is_compiling() else y


class WrongCompiled(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y + 0.5 if torch.compiler.is_compiling() else y


class WrongEager(Healthy):
    """In any precision but the reference's, the result is three times as large."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y if y.dtype is torch.float64 else 3 * y


class GradientLost(Healthy):
    """Compiled, one parameter gets no gradient; all gradients lie below the tolerance."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.linear.bias
        if torch.compiler.is_compiling():
            bias = bias.detach() + 0 * bias
        return 1e-2 * torch.nn.functional.linear(x, self.linear.weight, bias)


class GradientScaled(Healthy):
    """Compiled, one parameter's gradient is a tenth too large; all gradients lie below the tolerance."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.linear.bias
        if torch.compiler.is_compiling():
            bias = 1.1 * bias - 0.1 * bias.detach()
        return 1e-2 * torch.nn.functional.linear(x, self.linear.weight, bias)


class RandomNumbers(Healthy):
    """No fault: it draws, and float64 draws other numbers from the same seed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y + 100 * torch.randn_like(y)


class Nondeterministic(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + int.from_bytes(os.urandom(4), "big") / 2**24  # never equal by chance


class AllocatesWithoutEnd(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        held = []
        while True:
            held.append(bytearray(b"x") * 20_000_000)
            time.sleep(0.001)  # whoever looks at the memory gets a core


class SegfaultInStep(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ctypes.string_at(0)
        return x


class HangsInC(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            ctypes.CDLL(None).pause()


class WakesWhenKilled(Healthy):
    """Hangs in the last round that it owes, and would still report when a signal wakes it up."""

    woken = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if round_number() == 2 and not self.woken:
            WakesWhenKilled.woken = True
            ctypes.CDLL(None).pause()
        return self.linear(x)


class Unfinished(Healthy):
    def __init__(self) -> None:
        super().__init__()
        raise NotImplementedError("the head is not written")


class OsExit(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(7)


class ExitsZero(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os._exit(0)


class SysExit(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sys.exit(0)


class DeviceOom(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("tried to allocate 999 GiB")


class KillsItself(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return x


class BusError(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGBUS)
        return x


class MapsMoreThanThereIs(Healthy):
    """A file with holes in the folder for temporary files, every page of which is then written."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        folder = _small_disk()
        size = _free_bytes(folder) + (1 << 20)
        with Path(folder, "mapped").open("w+b") as file:
            file.truncate(size)
            with mmap.mmap(file.fileno(), size) as pages:
                for place in range(0, size, mmap.PAGESIZE):
                    pages[place] = 1
        return x


class WritesMoreThanThereIs(Healthy):
    """The same by calls that can fail; what was written is given back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        folder = _small_disk()
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(0, _free_bytes(folder) + (1 << 20), 1 << 16):
                file.write(bytes(1 << 16))
        return x


def _small_disk() -> str:
    """The folder that TMPDIR names, where it is a small disk.

    `tempfile.gettempdir()` goes on to /tmp where that one is full, and would fill the disk of the machine.
    """
    folder = os.environ["TMPDIR"]
    there = os.statvfs(folder)
    if there.f_blocks * there.f_frsize > 1 << 28:
        message = f"{folder} is not a small disk: nothing is written to it"
        raise RuntimeError(message)
    return folder


def _free_bytes(folder: str) -> int:
    there = os.statvfs(folder)
    return there.f_bavail * there.f_frsize


class RecompilesEveryCall(Healthy):
    """Dynamo guards on ``calls``, which every call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) + 0.0 * self.calls


class CapturesNoGraph(Healthy):
    @torch._dynamo.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class RunsARnn(Healthy):
    """Dynamo skips the only frame, because it compiles no recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = torch.nn.GRU(FEATURES, FEATURES)
        self.state: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(1, FEATURES) if self.state is None else self.state
        y, state = self.rnn(x, state)
        self.state = state.detach()
        return self.linear(y)


class CachesANorm(Healthy):
    """Dynamo skips the frame of ``forward``, and compiles that of a norm that runs once."""

    @functools.cached_property
    def norm(self) -> torch.Tensor:
        return self.linear.weight.detach().norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) / self.norm


class SegfaultInCompiler(Healthy):
    """The operator has a kernel, but the compiler dies of asking for its shape."""

    def __init__(self) -> None:
        super().__init__()
        self.double = torch.library.custom_op(
            "faults::double", lambda x: x * 2, mutates_args=(), schema=SCHEMA
        )
        self.double.register_fake(lambda x: ctypes.string_at(0))

    def __deepcopy__(self, memo: object) -> SegfaultInCompiler:
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.faults.double(self.linear(x))


SCHEMA = "(Tensor x) -> Tensor"


class RaisesWhileProfiled(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.autograd.profiler._is_profiler_enabled:
            raise ValueError("not while somebody looks")
        return self.linear(x)


class HangsWhileProfiled(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while torch.autograd.profiler._is_profiler_enabled:
            time.sleep(3600)
        return self.linear(x)


class SegfaultWhileProfiled(Healthy):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.autograd.profiler._is_profiler_enabled:
            ctypes.string_at(0)
        return self.linear(x)


def round_number() -> int | None:
    """The timed round of the harness that is on the stack, or None outside of any."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_rounds":
            return frame.f_locals["number"]
        frame = frame.f_back
    return None


def prints_without_end() -> None:
    """Flood both streams."""
    line = b"all work and no play makes a dull log\n" * 25_000
    for _ in range(FLOOD_BYTES // len(line) + 1):
        view = memoryview(line)
        while view:
            view = view[os.write(1, view) :]
    print("the end of the flood", file=sys.stderr)


def daemon_child() -> None:
    """Leave a daemon behind that holds the streams open."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)


def closes_stdout() -> None:
    """Close both streams."""
    os.close(1)
    os.close(2)


AT_BUILD = {
    "segfault_in_build": lambda: ctypes.string_at(0),
    "missing_package": lambda: __import__("no_such_package"),
    "prints_without_end": prints_without_end,
    "daemon_child": daemon_child,
    "closes_stdout": closes_stdout,
    "result_then_crash": lambda: atexit.register(ctypes.string_at, 0),
    "hangs_at_exit": lambda: atexit.register(time.sleep, 3600),
}
MODULES = {
    "raises": Raises,
    "raises_in_training": RaisesInTraining,
    "raises_while_measured": RaisesWhileMeasured,
    "segfault_while_measured": SegfaultWhileMeasured,
    "nan_eager": NanEager,
    "nan_compiled": NanCompiled,
    "wrong_compiled": WrongCompiled,
    "wrong_eager": WrongEager,
    "gradient_lost": GradientLost,
    "gradient_scaled": GradientScaled,
    "random_numbers": RandomNumbers,
    "nondeterministic": Nondeterministic,
    "allocates_without_end": AllocatesWithoutEnd,
    "segfault_in_step": SegfaultInStep,
    "segfault_in_compiler": SegfaultInCompiler,
    "hangs_in_c": HangsInC,
    "wakes_when_killed": WakesWhenKilled,
    "os_exit": OsExit,
    "unfinished": Unfinished,
    "exits_zero": ExitsZero,
    "sys_exit": SysExit,
    "device_oom": DeviceOom,
    "kills_itself": KillsItself,
    "bus_error": BusError,
    "maps_more_than_there_is": MapsMoreThanThereIs,
    "writes_more_than_there_is": WritesMoreThanThereIs,
    "recompiles_every_call": RecompilesEveryCall,
    "captures_no_graph": CapturesNoGraph,
    "runs_a_rnn": RunsARnn,
    "caches_a_norm": CachesANorm,
    "raises_while_profiled": RaisesWhileProfiled,
    "hangs_while_profiled": HangsWhileProfiled,
    "segfault_while_profiled": SegfaultWhileProfiled,
}


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """The module that fails as ``workload.model`` says, or the healthy one."""
    if workload.model == "unsupported":
        raise NotImplementedError("this model has no such mode")
    AT_BUILD.get(workload.model, lambda: None)()
    torch.manual_seed(workload.seed)
    module = MODULES.get(workload.model, Healthy)()
    module.train(workload.mode == "training")
    inputs = torch.randn(workload.batch, FEATURES)
    return BuiltWorkload(module=module, args=(inputs,), loss=lambda out: out.square().mean(), item="row")
