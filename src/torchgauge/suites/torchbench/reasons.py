"""Why an upstream model does not run here: its exceptions told apart by what they mean; worker side only.

TorchBench says one thing in many ways: data that was not fetched is a ``FileNotFoundError``, a failed
assertion or an import of a folder that only exists elsewhere. It is missing data only where a place that our
data file declares is not there. What nothing here explains is the model's own.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
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
from torchgauge.suites.lacking import absent_package, handed_on, raised_in, refusal

_INTERNAL = "torchbenchmark.util.framework.fb"
"""Package of upstream's internal builds; models import it when data is missing."""
_NEEDS_HUB = re.compile(
    r"couldn't connect|offline mode|is not a local folder and is not a valid model identifier", re.IGNORECASE
)
_OF_TORCH = {"triton"}
_TESTS = ("train", "eval")
"""Methods of upstream's models that their base class leaves to them."""
_NO_OPERATORS = "Couldn't load custom C++ ops"
_CUDA_ONLY = re.compile(
    r"not compiled with CUDA|no CUDA GPUs|Found no NVIDIA driver|CUDA is not available|"
    r"CUDA device type at start|cudaGetDeviceCount",
    re.IGNORECASE,
)


@dataclass
class Facts:
    """What is known of a model beforehand: its name, checkout, pip requirements and data.

    ``places`` are the paths below a checkout where that data lies. ``built_from`` is the folder that its code
    is read from where that is not the checkout; ``inputs`` says whether its inputs are real or synthetic,
    empty where upstream makes them itself.
    """

    name: str
    checkout: Path
    requirements: Sequence[str] = ()
    data: str = ""
    places: Collection[str] = ()
    built_from: Path | None = None
    inputs: str = ""
    refused: list[str] = field(default_factory=list)

    def install(self, module: str) -> str:
        """What to type where ``module`` is missing: TorchBench's own requirement, else the model's."""
        root = module.partition(".")[0].lower()
        if root in _OF_TORCH:
            return f"install a torch build with {root}; its kernels need a GPU"
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
    """Return the reason behind ``error``; None for a failure of the model itself."""
    chain = list(handed_on(error))
    first = f"{type(error).__name__}: {_first_line(error)}"
    if isinstance(error, NotImplementedError) and _refuses(error, facts.built_from or facts.checkout):
        return NotOfferedError(f"upstream: {_first_line(error) or 'NotImplementedError'}")
    if any(_CUDA_ONLY.search(str(link)) for link in chain):
        return NotOfferedError(f"the model's code requires CUDA on every device: {first}")
    if _wants_data(chain, facts):
        return MissingDataError(
            f"{facts.data} is not in the checkout: {first}",
            hint=f"cd {facts.checkout} && python install.py {facts.name}",
        )
    refused = refusal(error)
    if isinstance(refused, TorchgaugeError):
        return refused
    by_library = raised_in(error, facts.built_from or facts.checkout) is None
    no_hub = by_library and type(error) is OSError and _NEEDS_HUB.search(str(error))
    if refused is not None or (facts.refused and no_hub):
        where = facts.refused[-1] if facts.refused else "a model hub"
        return NoNetworkError(
            f"the model downloads from {where}, but downloads are off ({first})",
            hint="--pretrained on a machine with a network",
        )
    if any(_NO_OPERATORS in str(link) for link in chain):
        return MissingPackageError(
            "torchvision's compiled operators do not load: torchvision was built for another torch",
            hint="pip install torchvision==VERSION, with the VERSION and build (CPU or GPU) for your torch",
        )
    if absent := absent_package(error):
        return MissingPackageError(f"package {absent!r} is not installed", hint=facts.install(absent))
    return None


def _refuses(error: NotImplementedError, root: Path) -> bool:
    """Return whether ``error`` is how upstream's models refuse a test, a device or an option.

    Upstream's utilities refuse, and so do methods of ``Model`` that its base class declares. A constructor
    refuses only inside an ``if``: a model whose constructor always raises is broken.
    """
    frame = raised_in(error, root)
    if frame is None or raised_in(error, root / "torchbenchmark" / "util"):
        return frame is not None
    name, kinds = frame.f_code.co_name, type(frame.f_locals.get("self")).__mro__
    bases = [kind for kind in kinds if kind.__name__.endswith("BenchmarkModel")]
    if not bases or not (name in _TESTS or hasattr(bases[0], name)):
        return False
    at = frame.f_lineno - frame.f_code.co_firstlineno + 1
    code = ast.parse(textwrap.dedent(inspect.getsource(frame.f_code)))
    conditions = [node for node in ast.walk(code) if isinstance(node, ast.If)]
    return name != "__init__" or any(node.lineno <= at <= (node.end_lineno or at) for node in conditions)


def _wants_data(chain: Sequence[BaseException], facts: Facts) -> bool:
    """Return whether declared data of the model is missing, and ``chain`` reports that."""
    root = facts.built_from or facts.checkout
    declared = [root / place.format(model=facts.name) for place in facts.places]
    for place in (str(path) for path in declared if not path.exists()):
        for link in chain:
            if isinstance(link, FileNotFoundError) and Path(str(link.filename)).is_relative_to(place):
                return True
            if isinstance(link, ModuleNotFoundError) and str(link.name).startswith(_INTERNAL):
                return True
            if isinstance(link, AssertionError) and ("install.py" in str(link) or place in str(link)):
                return True
    return False


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""
