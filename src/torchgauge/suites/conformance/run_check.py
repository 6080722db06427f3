"""The worker's half of the suite ``conformance``: run one check by its name."""

from __future__ import annotations

import sys

from torchgauge.errors import MissingPackageError
from torchgauge.records import Workload
from torchgauge.registry import resolve
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError
from torchgauge.suites.conformance.catalogue import CheckEntry, catalogue
from torchgauge.suites.conformance.check_context import CheckContext


def run(workload: Workload, session: CheckSession) -> CheckOutcome:
    """Run the check that ``workload`` names; it passes where it returns.

    Raises what the check raises, and :class:`MissingPackageError` where this interpreter has no such check.
    """
    entry = catalogue().get(workload.model)
    if entry is None:
        raise MissingPackageError(
            f"the check {workload.model!r} is not installed in this interpreter",
            hint=f"{sys.executable} -m pip install PACKAGE, the plugin that provides this check",
        )
    context = CheckContext(session)
    run_entry(entry, context)
    return CheckOutcome(facts=tuple(sorted({"api": entry.api, **context.facts}.items())))


def run_entry(entry: CheckEntry, context: CheckContext) -> None:
    """Run ``entry`` from the same random state whatever ran before it.

    What PyTorch looks for in vain on the device's module becomes :class:`NotOnThisDeviceError`.
    """
    import torch

    function = resolve(f"{entry.module}:{entry.function}")
    grad, default = torch.is_grad_enabled(), torch.get_default_dtype()
    torch.manual_seed(0)
    try:
        function(context)
    except AttributeError as error:
        if getattr(error, "obj", None) is not getattr(torch, context.type, torch):
            raise
        raise NotOnThisDeviceError(
            f"torch.{context.type} has no {error.name}, which PyTorch requires"
        ) from error
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(default)
