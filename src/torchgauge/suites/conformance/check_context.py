"""What a check works with: the device under test, the host beside it, and words for what was found.

Worker side, for vendors' checks as well as ours: a check is a function of a :class:`CheckContext`,
marked with :func:`check`, in a module with a constant ``GROUP``::

    GROUP = "mydevice"

    @check("torch.mydevice.answer")
    def answers(context: CheckContext) -> None:
        '''The device answers what the host answers.'''
        context.same(context.send(x) + 1, x + 1)

The catalogue reads decorator, docstring and ``GROUP`` from the source, so they are written out literally.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from torchgauge.processes.python_command import OFF_THE_PATH
from torchgauge.records import Scalar
from torchgauge.suites.check import CheckSession, NotOnThisDeviceError, WrongAnswerError
from torchgauge.suites.suite import HOST

CHILD_S = 45.0
"""Seconds after which a process that a check started is killed: less than the deadline of the check."""
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)(: |$)")
"""The line of a traceback that names its exception."""
_ASSERTION = re.compile(r"\w* ?INTERNAL ASSERT FAILED at .*?, please report a bug to PyTorch\.\s*")
"""What torch puts before the message of a failed internal check."""


@dataclass
class CheckContext:
    """One device under test, for one check."""

    session: CheckSession
    facts: dict[str, Scalar] = field(default_factory=dict)

    @property
    def device(self) -> Any:
        """The ``torch.device`` under test; the host's has no index, as its tensors have none."""
        import torch

        found = self.session.torch_device
        return torch.device(HOST) if found.type == HOST else found

    @property
    def type(self) -> str:
        """Torch's name of the device type."""
        return str(self.device.type)

    @property
    def on_host(self) -> bool:
        """Whether the host itself is under test."""
        return self.type == HOST

    @property
    def in_tree(self) -> bool:
        """Whether the device is part of torch itself, so that no extension has to bring it."""
        import torch

        return bool(self.type != torch._C._get_privateuse1_backend_name())

    @property
    def module(self) -> Any:
        """``torch.<type>``; raises :class:`NotOnThisDeviceError` where the type has none."""
        import torch

        try:
            return torch.get_device_module(self.type)
        except RuntimeError as error:
            raise NotOnThisDeviceError(f"no module is registered as torch.{self.type}: {error}") from error

    @property
    def accelerator(self) -> Any:
        """``torch.accelerator``; raises :class:`NotOnThisDeviceError` on the host and before torch 2.6."""
        import torch

        self.not_on_host("torch.accelerator serves accelerators only")
        return self.need(torch, "accelerator")

    def not_on_host(self, why: str) -> None:
        """End the check with ``why`` where the host is under test."""
        if self.on_host:
            raise NotOnThisDeviceError(f"not applicable to the host: {why}")

    def need(self, owner: Any, name: str) -> Any:
        """The attribute ``name`` of ``owner``, or the end of the check where it is missing."""
        found = getattr(owner, name, None)
        if found is None:
            import torch

            self.unsupported(f"torch {torch.__version__} has no {getattr(owner, '__name__', owner)}.{name}")
        return found

    def unsupported(self, reason: str) -> NoReturn:
        """End the check: PyTorch or the device says that it does not have what is asked for."""
        raise NotOnThisDeviceError(reason)

    @contextmanager
    def unless_refused(self, what: str, *more: Any) -> Iterator[None]:
        """End the check with ``what`` where the device refuses what is inside: it says that it has it not.

        A refusal is a ``RuntimeError`` (``NotImplementedError`` is one) or one of ``more``; a lost device
        refuses nothing.
        """
        try:
            yield
        except (RuntimeError, *more) as error:
            if self.session.is_lost(error):
                raise
            self.unsupported(f"{what}: {brief(error)}")

    def numbers(self, *shape: int, dtype: Any = None, seed: int = 0, grad: bool = False) -> Any:
        """Normal numbers on the host, the same for the same ``shape`` and ``seed``; float32 by default."""
        import torch

        made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return made.to(dtype or torch.float32).requires_grad_(grad)

    def send(self, value: Any) -> Any:
        """A tensor or module on the device; a tensor keeps whether it wants a gradient, as a leaf."""
        import torch

        if isinstance(value, torch.Tensor):
            return value.detach().to(self.device).requires_grad_(value.requires_grad)
        return value.to(self.device)

    def same(self, actual: Any, expected: Any, what: str = "", **tolerance: float) -> None:
        """Compare with what the host gave, within PyTorch's tolerances, or ``rtol`` and ``atol``."""
        import torch

        def fetch(value: Any) -> Any:
            return value.detach().to(HOST) if isinstance(value, torch.Tensor) else value

        if isinstance(actual, torch.Tensor) and actual.device.type != self.type:
            raise AssertionError(f"{what or 'the result'} is on {actual.device}, not on {self.device}")
        try:
            torch.testing.assert_close(
                fetch(actual), fetch(expected), equal_nan=True, check_stride=False, **tolerance
            )
        except AssertionError as error:
            raise WrongAnswerError(f"{what + ': ' if what else ''}{error}") from error

    def compare(self, function: Callable[..., Any], *arguments: Any, **tolerance: float) -> None:
        """``function`` of the tensors ``arguments`` on the device against the same on the host."""
        expected = function(*arguments)
        self.same(function(*map(self.send, arguments)), expected, "", **tolerance)

    def expect(self, condition: object, sentence: str) -> None:
        """Raise ``AssertionError`` with ``sentence`` (what was found instead) unless ``condition`` holds."""
        if not condition:
            raise AssertionError(sentence)

    def raises(self, kinds: Any, call: Callable[[], Any], what: str) -> BaseException:
        """The error of one of ``kinds`` that ``call`` must raise; another one is an error of the check."""
        try:
            call()
        except kinds as error:
            return error  # type: ignore[no-any-return]
        raise AssertionError(f"{what} raised nothing")

    def child(self, code: str, **environment: str) -> str:
        """What a fresh interpreter prints that runs ``code``; raises ``AssertionError`` where it fails."""
        import os

        try:
            done = subprocess.run(
                [sys.executable, "-c", OFF_THE_PATH + code, self.type],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=CHILD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a fresh process did not end within {CHILD_S:g} s") from None
        if done.returncode:
            raise AssertionError(
                f"a fresh process ended with status {done.returncode}: {root_cause(done.stderr)}"
            )
        return done.stdout.strip()


def brief(error: BaseException) -> str:
    """The first line of what ``error`` says, without torch's request to report it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return _ASSERTION.sub("internal assertion: ", lines[0])[:200]


def root_cause(stderr: str) -> str:
    """The innermost exception of a traceback, which Python prints first; else the last line of ``stderr``."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    return raised[0] if raised else lines[-1] if lines else "no output on stderr"


CheckFunction = TypeVar("CheckFunction", bound=Callable[[CheckContext], None])


def check(api: str, *, tier: str = "standard") -> Callable[[CheckFunction], CheckFunction]:
    """Mark a function as a check of ``api``, the part of torch that it exercises.

    The ``tier`` ``smoke`` is for the quickest, ``full`` for those that take seconds.
    """

    def mark(function: CheckFunction) -> CheckFunction:
        function.torchgauge_check = (api, tier)  # type: ignore[attr-defined]
        return function

    return mark
