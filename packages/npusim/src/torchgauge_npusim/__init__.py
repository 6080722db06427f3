"""A PyTorch device without hardware, so that a harness for accelerators can be tested on any machine.

PyTorch calls `autoload` through the `torch.backends` entry point at the end of
`import torch`; nobody needs to import this package by name.
"""

from __future__ import annotations

import warnings

__version__ = "0.1.0"
__all__ = ["__version__", "autoload"]


def autoload() -> None:
    """Register the device; on an unsupported torch warn and leave `import torch` working."""
    from torchgauge_npusim import registration

    try:
        registration.register()
    except registration.UnsupportedTorchError as problem:
        warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
