"""Pretrained weights from a hub: what is said where they cannot be had; worker side only.

The libraries that fetch weights wrap the reason several times and differ from version to version, so it is
looked for by name along the chain of causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError

from torchgauge.errors import MissingDataError, NoNetworkError

_UNREACHABLE = {
    "LocalEntryNotFoundError",  # neither in the cache nor on a hub that answers
    "OfflineModeIsEnabled",
    "ConnectionError",
    "NetworkError",
    "TimeoutException",
    "Timeout",
    "URLError",
}
_NOT_THERE = {"GatedRepoError", "RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError"}


@contextmanager
def reaching_hub(source: str) -> Iterator[None]:
    """Load the weights of ``source`` inside it.

    Raises :class:`NoNetworkError` where the hub was not reached, and :class:`MissingDataError` where it does
    not give them; every other error passes.
    """
    try:
        yield
    except Exception as error:
        for link in _chain(error):
            names = {kind.__name__ for kind in type(link).__mro__}
            if names & _UNREACHABLE and not isinstance(link, HTTPError):  # that one is an answer
                raise NoNetworkError(
                    f"the weights of {source} are not cached and the hub was not reached: {_first(link)}",
                    hint="allow the network (unset HF_HUB_OFFLINE), or fetch them beforehand",
                ) from error
            if names & _NOT_THERE:
                raise MissingDataError(
                    f"the hub does not give the weights of {source}: {_first(link)}",
                    hint="accept the model's licence on the hub and log in",
                ) from error
        raise


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what led to it, the outermost first."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
