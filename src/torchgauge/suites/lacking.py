"""What this machine lacks for a case, as its exception shows it: the one rule of a skip; worker side.

A skip needs a positive cause: a package that is not installed, or a connection that was refused. A failing
import of an installed package is an error. So is that of a module which the importing program contains, and a
failure after a refusal that a model has survived.
"""

from __future__ import annotations

import difflib
import importlib.util
import traceback
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import FrameType, ModuleType
from urllib.error import HTTPError

from torchgauge.errors import MissingPackageError

_REFUSED = frozenset(
    {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "NetworkRefusedError", "NoNetworkError", "gaierror"}
)
_SIMILAR = 0.85
"""Ratio of ``difflib`` from which a missing module is a mistyped file, such as ``confg`` of ``config``."""
_LIBRARIES = frozenset({"huggingface_hub", "urllib3", "httpx", "httpcore", "requests", "torchgauge"})
"""Packages whose exceptions pass a refusal on and are not all an ``OSError``."""


def handed_on(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and the exceptions behind it, the outermost first.

    Follow ``__cause__``. Follow ``__context__`` only from an ``ImportError`` without ``name`` or an
    ``OSError`` without ``errno``: these report the handled exception.
    """
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        yield link
        seen.append(link)
        in_words = (isinstance(link, ImportError) and link.name is None) or (
            isinstance(link, OSError) and link.errno is None
        )
        link = link.__cause__ or (link.__context__ if in_words else None)


def absent_package(error: BaseException) -> str:
    """Return the first module behind ``error`` whose package is not installed; empty where there is none."""
    for link in handed_on(error):
        name = link.name if isinstance(link, ModuleNotFoundError) else None
        if name and not _is_installed(name) and not _is_own(link, name.partition(".")[0]):
            return name
    return ""


def _is_own(error: BaseException, name: str) -> bool:
    """Return whether the importing program contains the module ``name``.

    It does if a relative import failed before, if a file of this name lies near the importing file, or if a
    file of a similar name lies beside it.
    """
    sought = error.__context__
    if isinstance(sought, ModuleNotFoundError) and str(sought.name).endswith(f".{name}"):
        return True
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    files = [Path(each) for each in names if not each.startswith("<")]
    if not files or "site-packages" in files[-1].parts:
        return False
    siblings = [each.stem for each in files[-1].parent.iterdir()]
    if difflib.get_close_matches(name, siblings, 1, _SIMILAR):
        return True
    places = (f"{name}.py", f"*/{name}.py", f"{name}/__init__.py", f"*/{name}/__init__.py")
    return any(any(files[-1].parent.glob(place)) for place in places)


def refusal(error: BaseException, names: AbstractSet[str] = _REFUSED) -> BaseException | None:
    """Return the exception behind ``error``, or ``error``, that reports a refused connection, or None.

    ``names`` are the class names of such exceptions.
    """
    for link in handed_on(error):
        if isinstance(link, HTTPError):  # the server answered
            return None
        if names & {kind.__name__ for kind in type(link).__mro__}:
            return link
        if not isinstance(link, OSError) and type(link).__module__.partition(".")[0] not in _LIBRARIES:
            return None
    return None


def raised_in(error: BaseException, folder: Path) -> FrameType | None:
    """Return the frame in a file below ``folder`` whose ``raise`` made ``error``; None where none did."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not Path(frames[-1].filename).is_relative_to(folder):
        return None
    if not (frames[-1].line or "raise").lstrip().startswith("raise"):
        return None
    return list(traceback.walk_tb(error.__traceback__))[-1][0]


def _is_installed(module: str) -> bool:
    """Return whether the package of ``module`` is there, whatever it holds."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except ModuleNotFoundError:  # a hidden package is absent
        return False
    except ValueError:  # a module that something put there without a specification
        return True


def without_model(library: ModuleType, name: str, known: Iterable[str]) -> MissingPackageError:
    """Return the error of a ``library`` that has no model ``name`` among those that it has."""
    near = "".join(f" or {each}" for each in difflib.get_close_matches(name, known))
    hint = f"install another version of {library.__name__}"
    message = f"{library.__name__} {library.__version__} has no {name}"
    return MissingPackageError(message, hint=f"{near.removeprefix(' or ')}; or {hint}" if near else hint)
