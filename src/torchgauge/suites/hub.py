"""Pretrained weights from a hub: what is said where they cannot be had; worker side only.

The libraries that fetch weights wrap the reason several times and differ from version to version, so it is
looked for by name along what they hand on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchgauge.errors import MissingDataError, NoNetworkError
from torchgauge.suites.lacking import refusal

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
        if (link := refusal(error, _UNREACHABLE)) is not None:
            raise NoNetworkError(
                f"the weights of {source} are not cached and the hub was not reached: {_first(link)}",
                hint="allow the network (unset HF_HUB_OFFLINE), or fetch them beforehand",
            ) from error
        if (link := refusal(error, _NOT_THERE)) is not None:
            raise MissingDataError(
                f"the hub does not give the weights of {source}: {_first(link)}",
                hint="accept the model's licence on the hub and log in",
            ) from error
        raise


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
