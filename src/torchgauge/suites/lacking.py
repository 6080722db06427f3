"""What this machine lacks for a case, as its exception shows it: the one rule of a skip; worker side.

A skip needs a positive cause: a package that is not installed, or a connection that was refused. A failing
import of an installed package is an error, and so is a failure after a refusal that a model has survived.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from urllib.error import HTTPError

_REFUSED = frozenset(
    {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "NetworkRefusedError", "NoNetworkError", "gaierror"}
)
_LIBRARIES = frozenset({"huggingface_hub", "urllib3", "httpx", "httpcore", "requests", "torchgauge"})
"""Packages whose exceptions pass a refusal on and are not all an ``OSError``."""


def handed_on(error: BaseException) -> Iterator[BaseException]:
    """Yield ``error`` and each exception that it hands on, the outermost first.

    It hands on what it was raised from. What was merely being handled is handed on by an ``ImportError`` or
    ``OSError`` in words alone: one with the name of a module, or with a number, is a failure of its own.
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
    """Return the package that is not installed and whose import ``error`` hands on; empty where none is."""
    for link in handed_on(error):
        if isinstance(link, ModuleNotFoundError) and link.name and not _is_installed(link.name):
            return link.name
    return ""


def refusal(error: BaseException, names: AbstractSet[str] = _REFUSED) -> BaseException | None:
    """Return the refused connection that ``error`` is, as itself or as its library words it, or None.

    ``names`` are those of the classes that a refusal may have.
    """
    for link in handed_on(error):
        if isinstance(link, HTTPError):  # that one is an answer
            return None
        if names & {kind.__name__ for kind in type(link).__mro__}:
            return link
        if not isinstance(link, OSError) and type(link).__module__.partition(".")[0] not in _LIBRARIES:
            return None
    return None


def _is_installed(module: str) -> bool:
    """Return whether the package of ``module`` is there, whatever it holds."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except ModuleNotFoundError:  # a hidden package is absent
        return False
    except ValueError:  # a module that something put there without a specification
        return True
