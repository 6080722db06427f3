"""A PyTorch device without hardware, so that a harness for accelerators can be tested on any machine.

PyTorch calls `autoload` through the `torch.backends` entry point at the end of
`import torch`; nobody needs to import this package by name.
"""

from __future__ import annotations

import os
import warnings

__version__ = "0.1.0"
__all__ = ["__version__", "autoload"]

CHOICE_VARIABLE = "TORCHGAUGE_SIMULATED_DEVICE"


def autoload() -> None:
    """Register the device; on an unsupported torch warn and leave `import torch` working.

    Not where the environment asks for another simulated device: a process can have one such device only.
    """
    if os.environ.get(CHOICE_VARIABLE, "npusim") != "npusim":
        return
    from torchgauge_npusim import registration

    try:
        registration.register()
    except registration.UnsupportedTorchError as problem:
        warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
