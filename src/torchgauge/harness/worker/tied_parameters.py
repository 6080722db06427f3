"""Parameters that one model has under several names, and devices on which `.to()` makes several of them.

Where PyTorch cannot put a device's tensor into an existing parameter, as on every out-of-tree device
(``torch._has_compatible_shallow_copy_type``), ``Module.to()`` makes a new parameter for each name: what was
tied is not, and an optimizer that was made before steps what nobody uses. A model that is measured there is
another one than on the host, and its reference must be that one.
"""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.placing import named

FACT = "untied_parameters"
"""The fact that names the parameters which `.to()` has untied."""


def tied(module: Any) -> tuple[str, ...]:
    """All names but the first of each parameter that ``module`` has under several."""
    if not isinstance(module, torch.nn.Module):
        return ()
    first = dict(module.named_parameters())
    return tuple(name for name, _ in module.named_parameters(remove_duplicate=False) if name not in first)


def unties(device: Any) -> bool:
    """Whether ``Module.to(device)`` makes a new parameter for each name: seen on the smallest model."""
    one, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    other.weight = one.weight
    torch.nn.Sequential(one, other).to(device)
    return one.weight is not other.weight


def untie(module: Any) -> None:
    """Give ``module`` a parameter of its own for each name, with the values that it has."""
    future = torch.__future__
    before = future.get_overwrite_module_params_on_conversion()
    future.set_overwrite_module_params_on_conversion(True)
    try:
        module._apply(torch.clone)
    finally:
        future.set_overwrite_module_params_on_conversion(before)


def told(names: tuple[str, ...]) -> str:
    """What a row says of ``names``."""
    return f"{named(names)}: `.to()` created new parameters"
