"""Functions that other sources ask."""


def runs_there(device):
    """Whether the kernels are built for it."""
    if device.type == "cuda":
        return True
    return device.type == "xpu"


def refuse(what):
    """Say that it does not work."""
    raise NotImplementedError(f"{what} is not supported here")


def requires_device(*types):
    """A decorator for functions of some devices."""

    def made(function):
        return function

    return made
