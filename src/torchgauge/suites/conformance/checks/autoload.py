"""Autoload: PyTorch finds, loads and names the device by itself, and lives without it."""

from __future__ import annotations

import os
from importlib import metadata

import torch

from torchgauge import registry
from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "autoload"
_LIVES = (
    "import time\nbegan = time.perf_counter()\nimport torch\nspent = time.perf_counter() - began\n"
    "assert (torch.ones(2) + 1).sum().item() == 4\nprint(spent)"
)
_REQUIRED = ("is_available", "device_count", "current_device", "set_device")
"""What a device module must have: the first table of PyTorch's chapter on devices."""


def _lives(context: CheckContext, **environment: str) -> None:
    """Import torch in a fresh process and compute there on the host; the seconds become a fact."""
    said = context.child(_LIVES, **environment)
    context.facts["import_s"] = float(said.split()[-1])


def _only_extensions(context: CheckContext) -> None:
    if context.in_tree:
        context.unsupported(f"not applicable: {context.type} is part of torch itself and needs no autoload")


def _may_be_of(point: metadata.EntryPoint, context: CheckContext) -> bool:
    """Whether ``point`` has the device's name, or the package that its module ``torch.NAME`` comes from.

    Other devices may be installed beside it. A module that shows no package of its own is anybody's.
    """
    package = getattr(getattr(torch, context.type, None), "__name__", "").partition(".")[0]
    if point.name == context.type or package in ("", "torch", context.type):
        return True
    others = metadata.packages_distributions()
    mine = point.module.partition(".")[0]
    return mine == package or bool(set(others.get(mine, ())) & set(others.get(package, ())))


@check("torch.backends (entry points)")
def entry_point(context: CheckContext) -> None:
    """An installed package registers the device under torch.backends."""
    _only_extensions(context)
    points = metadata.entry_points(group="torch.backends")
    found = [f"{point.name} = {point.value}" for point in points if _may_be_of(point, context)]
    context.facts["entry_points"] = ", ".join(found)
    context.expect(
        found,
        "no installed package declares a torch.backends entry point, so users must import the extension; "
        "see https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html",
    )


@check("import torch", tier="full")
def fresh_import(context: CheckContext) -> None:
    """A fresh process knows the device after import torch alone."""
    code = "import sys, torch; print(torch.ones(2, device=sys.argv[1]).add(1).sum().item())"
    said = context.child(code)
    context.expect(said == "4.0", f"ones(2).add(1).sum() in a fresh process gave {said!r}, not 4.0")


@check("TORCH_DEVICE_BACKEND_AUTOLOAD", tier="full")
def autoload_off(context: CheckContext) -> None:
    """With autoload switched off torch imports and does not know the device."""
    _only_extensions(context)
    code = (
        "import sys, torch\n"
        "try:\n    torch.empty(1, device=sys.argv[1])\n"
        "except (RuntimeError, NotImplementedError) as e:\n    print('unknown')\n"
        "else:\n    print('known')"
    )
    said = context.child(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    context.expect(said == "unknown", "the device is available with autoload off: something else loads it")


@check("import torch", tier="full")
def import_without_autoload(context: CheckContext) -> None:
    """Torch itself imports and computes on the host where no extension is loaded."""
    _lives(context, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


@check("import torch", tier="full")
def import_without_stack(context: CheckContext) -> None:
    """Torch imports and computes on the host where no device is visible and no driver's library is found."""
    hidden = {"LD_LIBRARY_PATH": ""} if os.environ.get("LD_LIBRARY_PATH") else {}
    for name in registry.names("torchgauge.devices"):
        variables = getattr(registry.load("torchgauge.devices", name), "visibility_variables", ())
        if context.on_host or name == context.session.name:
            hidden.update(dict.fromkeys(variables[:1], ""))
    context.facts["emptied"] = ", ".join(sorted(hidden))
    if not hidden:
        context.unsupported(
            "the device cannot be hidden: it has no visibility variable (such as CUDA_VISIBLE_DEVICES), "
            "and LD_LIBRARY_PATH is not set"
        )
    _lives(context, **hidden)


@check("torch.get_device_module", tier="smoke")
def device_module(context: CheckContext) -> None:
    """The module torch.<device> has the functions that PyTorch asks for."""
    missing = [name for name in _REQUIRED if not hasattr(context.module, name)]
    if context.on_host:
        missing = [name for name in missing if name not in ("device_count", "set_device")]
    context.expect(not missing, f"torch.{context.type} lacks {', '.join(missing)}")
    context.expect(context.module.is_available(), f"torch.{context.type}.is_available() is false")


@check("torch.accelerator.current_accelerator", tier="smoke")
def current_accelerator(context: CheckContext) -> None:
    """The device is the accelerator of this process."""
    found = context.accelerator.current_accelerator()
    context.expect(found is not None and found.type == context.type, f"the current accelerator is {found}")


@check("torch.utils.generate_methods_for_privateuse1_backend")
def tensor_methods(context: CheckContext) -> None:
    """Tensors and modules have the methods named after the device."""
    context.not_on_host("methods named after a device are for accelerators")
    host = context.numbers(3)
    for owner in (host, torch.nn.Linear(2, 2), host.untyped_storage()):
        context.expect(hasattr(owner, context.type), f"{type(owner).__name__} has no .{context.type}()")
    moved = getattr(host, context.type)()
    context.same(moved, host)
    flag = getattr(moved, f"is_{context.type}", None)
    context.expect(flag is True, f"is_{context.type} of a device tensor is {flag}")


@check("os.fork after import torch", tier="full")
def fork_after_import(context: CheckContext) -> None:
    """A process that imported torch and touched no device may fork, and the child computes on the host."""
    code = (
        "import os, torch\n"
        "pid = os.fork()\n"
        "if not pid:\n    os._exit(0 if (torch.ones(2) + 1).sum().item() == 4 else 3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    said = context.child(code)
    context.expect(said == "0", f"the forked child ended with status {said}")
