"""The calling process as a place to measure in: its device's session, and what is put back afterwards."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchgauge import registry
from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.discover import GROUP, parse_target
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import MissingPackageError, UnknownNameError, UsageError
from torchgauge.harness.backends.prepared import restored
from torchgauge.suites.suite import HOST


def require_torch(what: str) -> None:
    """Import torch; raises :class:`MissingPackageError` where it is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(f"{what} needs torch: {error}", hint="pip install torch") from error


def open_session(device: str) -> DeviceSession:
    """Return a session of ``device``, NAME or NAME.INDEX, in this process.

    A type of device that registered itself with PyTorch needs no plugin. Raises :class:`UnknownNameError` and
    :class:`InfrastructureError`.
    """
    import torch

    target = parse_target(device.replace(":", "."))
    if target.name in registry.names(GROUP):
        session: DeviceSession = registry.resolve(registry.load(GROUP, target.name).session)(
            target.name, target.index
        )
        return session
    try:
        torch.device(target.name)
    except RuntimeError:
        raise UnknownNameError("device", target.name, registry.names(GROUP)) from None
    return AcceleratorSession(target.name, target.index)


def device_of(*values: Any) -> str:
    """Return the device, NAME.INDEX, that the tensors and modules below ``values`` are on; else the host.

    Raises :class:`UsageError` where they are on several accelerators.
    """
    import torch

    from torchgauge.suites.placing import tensors

    modules = [value for value in values if isinstance(value, torch.nn.Module)]
    held = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    given = [tensor for _, tensor in tensors([value for value in values if value not in modules], "")]
    places = {tensor.device for tensor in (*held, *given) if tensor.device.type not in (HOST, "meta")}
    if len(places) > 1:
        named = ", ".join(sorted(map(str, places)))
        raise UsageError(
            f"tensors are on several devices: {named}", hint='pass device="NAME", the device to time'
        )
    return next((f"{place.type}.{place.index or 0}" for place in places), HOST)


@contextmanager
def put_back(session: DeviceSession | None = None) -> Iterator[None]:
    """Put back what the code inside changes of this process, as the caller goes on in it.

    Random states of PyTorch, Python and numpy, variables of the environment, the working directory, threads,
    default dtype, precision, grad mode and the modes of PyTorch; with ``session`` its device's random state.
    """
    import torch

    drawn = torch.get_rng_state() if session is None else session.rng_state()
    python, numpy = random.getstate(), sys.modules.get("numpy")
    legacy = numpy.random.get_state() if numpy is not None else None
    variables = dict(os.environ)
    with restored([]):
        try:
            yield
        finally:
            torch.set_rng_state(drawn) if session is None else session.set_rng_state(drawn)
            random.setstate(python)
            if numpy is not None:
                numpy.random.set_state(legacy)
            for name in os.environ.keys() - variables.keys():
                del os.environ[name]
            for name, value in variables.items():
                if os.environ.get(name) != value:
                    os.environ[name] = value
