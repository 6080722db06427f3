"""Any out-of-tree device, with no code of ours or of its vendor's: PrivateUse1 through the generic adapter.

Why: once a package registered its device with torch, the device's string works everywhere in torch, so the
shared session serves it under whatever name it has.
"""

from __future__ import annotations

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import Device, DeviceDescriptor
from torchgauge.devices.installed import ADD_ENTRY, provides, silent_packages, without_entry
from torchgauge.devices.probe import AUTOLOAD_VARIABLE, ProbeReport
from torchgauge.errors import InfrastructureError

BUILT_IN_SESSION = "torchgauge.devices.accelerator:AcceleratorSession"
SESSION = "torchgauge.devices.privateuse1:PrivateUse1Session"


def device_for(name: str, report: ProbeReport) -> Device:
    """The descriptor of the accelerator ``name`` as a probe found it.

    A device type that torch itself knows, but for which no adapter is registered, is served likewise. Forking
    is allowed only where the probe saw a forked child use the device.
    """
    facts = report.device(name)
    own = report.torch is not None and report.torch.privateuse1 == name
    model = facts.units[0].model if facts is not None and facts.units else ""
    return DeviceDescriptor(
        name=name,
        label=model or name,
        session=SESSION if own else BUILT_IN_SESSION,
        torch_type=name,
        fork_safe=facts is not None and facts.fork_safe is True,
        runner_labels=(name,),
        fixed_environment={AUTOLOAD_VARIABLE: "1"} if own else {},
    )


class PrivateUse1Session(AcceleratorSession):
    """The out-of-tree device; raises :class:`InfrastructureError` where this process has another one."""

    def __init__(self, name: str, index: int = 0) -> None:
        import torch

        registered = str(torch._C._get_privateuse1_backend_name())
        if registered != name:
            silent = [
                package
                for package in silent_packages(self.provision.distributions).items()
                if self.provision.distributions or provides(package[0], name)
            ]
            if silent:
                raise InfrastructureError(
                    f"device {name!r} is missing: {without_entry(*silent[0])}", hint=ADD_ENTRY
                )
            found = "none" if registered == "privateuseone" else repr(registered)
            raise InfrastructureError(
                f"device {name!r} is not registered with torch {torch.__version__}; registered here: {found}",
                hint=self.provision.install
                or f"install the package that provides it and leave {AUTOLOAD_VARIABLE} on",
            )
        super().__init__(name, index, torch_type=name)
