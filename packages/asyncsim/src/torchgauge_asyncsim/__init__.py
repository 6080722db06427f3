"""An asynchronous PyTorch device without hardware, whose kernels take exactly as long as somebody planned.

PyTorch calls `autoload` through the `torch.backends` entry point at the end of `import torch`. It does
nothing unless the environment has TORCHGAUGE_SIMULATED_DEVICE=asyncsim, as a process has one such device.
"""

from __future__ import annotations

import warnings

from torchgauge_asyncsim.identity import chosen

__version__ = "0.1.0"
__all__ = ["__version__", "autoload"]


def autoload() -> None:
    """Register the device where it is asked for; with a torch that it does not know warn and do nothing."""
    if not chosen():
        return
    from torchgauge_asyncsim import registration

    try:
        registration.register()
    except registration.UnsupportedTorchError as problem:
        warnings.warn(str(problem), RuntimeWarning, stacklevel=2)
