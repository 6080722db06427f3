"""Why an upstream model does not run here: its exceptions told apart by what they mean; worker side only.

TorchBench says one thing in many ways: a data file that was not fetched is a ``FileNotFoundError``, a failed
assertion or an import of a folder that only exists elsewhere. What nothing here explains is the model's own.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.errors import (
    MissingDataError,
    MissingPackageError,
    NoNetworkError,
    NotOfferedError,
    TorchgaugeError,
    add_note,
)

_INTERNAL = "torchbenchmark."
_OFFLINE = {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "NetworkRefusedError"}
_NEEDS_DATA = re.compile(r"install\.py|data dir|\.data\b|manifold", re.IGNORECASE)
_NEEDS_HUB = re.compile(r"couldn't connect|offline mode|is not a local folder", re.IGNORECASE)
_OF_TORCH = {"triton"}
_NO_OPERATORS = "Couldn't load custom C++ ops"
_CUDA_ONLY = re.compile(
    r"not compiled with CUDA|no CUDA GPUs|Found no NVIDIA driver|requires? CUDA|CUDA is not available|"
    r"CUDA device type at start|cudaGetDeviceCount",
    re.IGNORECASE,
)


@dataclass
class Facts:
    """What is known of a model beforehand: its name, checkout, pip requirements and data.

    ``built_from`` is the folder that its code is read from where that is not the checkout; ``inputs`` says
    whether its inputs are real or synthetic, empty where upstream makes them itself.
    """

    name: str
    checkout: Path
    requirements: Sequence[str] = ()
    data: str = ""
    built_from: Path | None = None
    inputs: str = ""
    refused: list[str] = field(default_factory=list)

    def install(self, module: str) -> str:
        """What to type where ``module`` is missing: TorchBench's own requirement, else the model's."""
        root = module.partition(".")[0].lower()
        if root in _OF_TORCH:
            return f"a build of torch that brings {root}: kernels in it need a GPU"
        try:
            lines = (self.checkout / "requirements.txt").read_text(encoding="utf-8").split()
        except OSError:
            lines = []
        own = next((line for line in lines if root in line.lower()), None)
        if own is not None:
            return f"pip install {own}"
        wanted = " ".join(f'"{item}"' if set(item) & set("<>= ") else item for item in self.requirements)
        return f"pip install {wanted or root}"


@contextmanager
def explained(facts: Facts) -> Iterator[None]:
    """Turn what upstream's code raises into the error that names its reason; others pass unchanged."""
    try:
        yield
    except TorchgaugeError as error:
        _say_inputs(error, facts)
        raise
    except Exception as error:
        reason = explain(error, facts)
        _say_inputs(reason or error, facts)
        if reason is None:
            raise
        raise reason from error


def _say_inputs(error: Exception, facts: Facts) -> None:
    """Let the reason of ``error`` tell where the inputs came from."""
    if facts.inputs:
        add_note(error, f"inputs: {facts.inputs}")


def explain(error: BaseException, facts: Facts) -> TorchgaugeError | None:
    """The reason behind ``error``; None where it is a failure of the model itself."""
    chain = list(_chain(error))
    first = f"{type(error).__name__}: {_first_line(error)}"
    for link in chain:
        if isinstance(link, TorchgaugeError):
            return link
    if isinstance(error, NotImplementedError) and raised_in(error, facts.built_from or facts.checkout):
        return NotOfferedError(f"upstream: {_first_line(error) or 'NotImplementedError'}")
    if any(_CUDA_ONLY.search(str(link)) for link in chain):
        return NotOfferedError(f"its code asks for CUDA whatever the device: {first}")
    if _wants_data(chain, facts):
        return MissingDataError(
            f"it reads {facts.data or 'a file'}, which is not there ({first})",
            hint=f"cd {facts.checkout} && python install.py {facts.name}",
        )
    if facts.refused or any(_wants_network(link) for link in chain):
        where = facts.refused[0] if facts.refused else "a model hub"
        return NoNetworkError(
            f"it fetches from {where} and nothing is downloaded ({first})",
            hint="--pretrained on a machine with a network",
        )
    return _missing_package(chain, facts)


def raised_in(error: BaseException, folder: Path) -> bool:
    """Whether a ``raise`` in a file below ``folder`` made ``error``, and not an operator that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not Path(frames[-1].filename).is_relative_to(folder):
        return False
    return (frames[-1].line or "raise").lstrip().startswith("raise")


def _missing_package(chain: list[BaseException], facts: Facts) -> TorchgaugeError | None:
    for link in chain:
        if _NO_OPERATORS in str(link):
            return MissingPackageError(
                "torchvision's compiled operators do not load here: it was built for another torch",
                hint="pip install torchvision of the release and build (CPU or GPU) that fits your torch",
            )
        if isinstance(link, ModuleNotFoundError):
            missing = f"package {link.name!r} is not installed"
            return MissingPackageError(missing, hint=facts.install(str(link.name)))
        if isinstance(link, ImportError):
            return MissingPackageError(
                f"the installed versions of its packages do not fit together: {_first_line(link)}",
                hint=f"the pins of upstream: pip install -r {facts.checkout}/requirements.txt",
            )
    return None


def _wants_data(chain: list[BaseException], facts: Facts) -> bool:
    for link in chain:
        if isinstance(link, ModuleNotFoundError) and str(link.name).startswith(_INTERNAL):
            return True  # a folder that only exists in upstream's own builds, asked when data is missing
        if isinstance(link, FileNotFoundError):
            return True
        if isinstance(link, (AssertionError, RuntimeError)) and _NEEDS_DATA.search(str(link)):
            return bool(facts.data) or isinstance(link, AssertionError)
    return False


def _wants_network(error: BaseException) -> bool:
    if {kind.__name__ for kind in type(error).__mro__} & _OFFLINE:
        return True
    return isinstance(error, OSError) and bool(_NEEDS_HUB.search(str(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what led to it, the outermost first."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""
