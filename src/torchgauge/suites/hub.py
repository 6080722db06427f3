"""Pretrained weights from a hub, and the reasons why they are missing; worker side only.

The libraries that fetch weights wrap the reason several times and differ from version to version, so it is
found by class name in the exception chain.
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

    Raises :class:`NoNetworkError` where the connection failed, and :class:`MissingDataError` where the hub
    refuses them; every other error passes.
    """
    try:
        yield
    except Exception as error:
        if (link := refusal(error, _UNREACHABLE)) is not None:
            raise NoNetworkError(
                f"the weights of {source} are not in the cache, and the hub is unreachable: {_first(link)}",
                hint="unset HF_HUB_OFFLINE",
            ) from error
        if (link := refusal(error, _NOT_THERE)) is not None:
            raise MissingDataError(
                f"the hub refused the weights of {source}: {_first(link)}",
                hint="hf auth login, after you accept the licence of a gated model on its page",
            ) from error
        raise


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
