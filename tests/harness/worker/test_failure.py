"""Equal causes have equal fingerprints, and a missing operator is named."""

from __future__ import annotations

from socket import gaierror
from urllib.error import URLError

import pytest

from torchgauge.devices.fake import FakeSession
from torchgauge.errors import JudgeError
from torchgauge.harness.suspects import Remedies
from torchgauge.harness.worker.failure import describe, missing_op, normalise
from torchgauge.harness.worker.verdicts import outcome_of
from torchgauge.records import Cause, Phase, Status


def failed(message: str, kind: type[Exception] = RuntimeError, cause: Exception | None = None):
    """The failure record of an exception that was really raised."""

    def fail() -> None:
        raise kind(message) from cause

    try:
        fail()
    except kind as error:
        return describe(error)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tensor at 0x7f3a2c001e40 is gone", "tensor at 0x55d0c0ffee00 is gone"),
        ("expected size 128 but got 256", "expected size 4 but got 9"),
        ("shapes 302340x64 and 5x3", "shapes 24x64 and 5x3"),
    ],
)
def test_equal_causes_have_equal_fingerprints(first, second) -> None:
    """Addresses, paths, numbers and line breaks do not count."""
    assert failed(first).fingerprint == failed(second).fingerprint
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (failed("no kernel for gelu"), failed("no kernel for topk")),
        (failed("broken"), failed("broken", ValueError)),
        (failed("compile", cause=ValueError("a")), failed("compile", cause=ValueError("b"))),
    ],
)
def test_other_causes_have_other_fingerprints(first, second) -> None:
    """The message, the exception's type and the cause behind it do count."""
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("Could not run 'aten::gelu' with arguments from the 'X' backend. This could be", "aten::gelu"),
        ("The operator 'aten::foo' is not currently implemented for the X device. If you", "aten::foo"),
        ("\"addmm_impl_cpu_\" not implemented for 'Half'", "addmm_impl_cpu_"),
        ("aten::erfinv is not implemented for this device", "aten::erfinv"),
        ("the operator is not implemented", ""),
    ],
)
def test_a_missing_operator_is_named(message, operator) -> None:
    """All forms in which PyTorch reports a missing operator are understood, and no other message is."""
    assert missing_op(message) == operator


def test_a_missing_operator_is_found_behind_the_compiler() -> None:
    """The operator is read from the innermost cause, too."""
    inner = NotImplementedError("Could not run 'aten::gelu' with arguments from the 'X' backend")
    failure = failed("backend compiler failed", cause=inner)
    assert failure.missing_op == "aten::gelu"
    assert "caused by NotImplementedError" in failure.message


def after(error: Exception, handled: Exception, *, meant: bool = False) -> Exception:
    """``error`` as it is raised while ``handled`` is being handled, or from it where that is ``meant``."""
    error.__context__ = handled
    if meant:
        error.__cause__ = handled
    return error


@pytest.mark.parametrize(
    ("error", "phase", "status", "cause"),
    [
        (ModuleNotFoundError("no", name="x"), Phase.BUILD, Status.SKIPPED, Cause.MISSING_PACKAGE),
        (ModuleNotFoundError("no", name="x"), Phase.EAGER, Status.ERROR, None),
        (ModuleNotFoundError("no", name="torch.nn.x"), Phase.BUILD, Status.ERROR, None),
        (
            after(RuntimeError("needs x"), ModuleNotFoundError("no", name="x"), meant=True),
            Phase.BUILD,
            Status.SKIPPED,
            Cause.MISSING_PACKAGE,
        ),
        (after(RuntimeError("no"), ModuleNotFoundError("no", name="x")), Phase.BUILD, Status.ERROR, None),
        (
            after(ImportError("pip install x"), ModuleNotFoundError("no", name="x")),
            Phase.BUILD,
            Status.SKIPPED,
            Cause.MISSING_PACKAGE,
        ),
        (gaierror(-2, "unknown name"), Phase.BUILD, Status.SKIPPED, Cause.NO_NETWORK),
        (after(URLError("u"), gaierror(-2, "no")), Phase.BUILD, Status.SKIPPED, Cause.NO_NETWORK),
        (after(ValueError("bug"), gaierror(-2, "no")), Phase.BUILD, Status.ERROR, None),
        (ConnectionRefusedError(111, "its own server"), Phase.BUILD, Status.ERROR, None),
        (NotImplementedError("no such mode"), Phase.BUILD, Status.ERROR, None),
        (MemoryError(), Phase.EAGER, Status.OOM, Cause.DEVICE),
        (
            type("OfflineModeIsEnabled", (ConnectionError,), {})(),
            Phase.BUILD,
            Status.SKIPPED,
            Cause.NO_NETWORK,
        ),
        (ValueError("wrong"), Phase.MEASURE, Status.ERROR, None),
    ],
)
def test_an_exception_has_one_status(error, phase, status, cause) -> None:
    """What an exception means depends on its type and on the phase that raised it."""
    outcome = outcome_of(error, "case", phase, FakeSession(), Remedies())
    assert (outcome.status, outcome.cause, outcome.phase) == (status, cause, phase)
    assert outcome.reason


@pytest.mark.torch
def test_the_reason_names_what_a_worker_of_a_loader_raised() -> None:
    """PyTorch raises the worker's exception again, with its traceback in the message."""
    from torch._utils import ExceptionWrapper

    try:
        {}["label"]
    except KeyError:
        wrapper = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(KeyError) as raised:
        wrapper.reraise()
    outcome = outcome_of(raised.value, "case", Phase.BUILD, FakeSession(), Remedies())
    assert outcome.reason == "KeyError: Caught KeyError in DataLoader worker process 0. KeyError: 'label'"


@pytest.mark.torch
def test_the_reason_names_what_a_scripted_module_raised() -> None:
    """Its exception ends with the one of the operator, after the interpreter's traceback."""
    import torch

    with pytest.warns(DeprecationWarning, match="torch.jit.script"):
        module = torch.jit.script(torch.nn.Linear(4, 3))
    with pytest.raises(RuntimeError) as raised:
        module(torch.ones(1, 5))
    outcome = outcome_of(raised.value, "case", Phase.BUILD, FakeSession(), Remedies())
    assert "mat1 and mat2 shapes cannot be multiplied" in outcome.reason


@pytest.mark.torch
def test_a_failure_of_the_judge_is_ours() -> None:
    """Neither the model nor an operator of the device is to blame."""
    import torch

    from torchgauge.harness.worker.accuracy import nonfinite

    with pytest.raises(JudgeError) as raised:
        nonfinite({"out": torch.ones(2).to(torch.float8_e4m3fn)})
    outcome = outcome_of(raised.value, "case", Phase.ACCURACY, FakeSession(), Remedies())
    assert (outcome.status, outcome.failure) == (Status.INFRA, None)
    assert outcome.reason.startswith("the judge failed: NotImplementedError: ")
